import TidemarkWire

extension Merge {
    /// Whether a row that is older than its device's capture says more than what others made of the record nobody
    /// knows: theirs stands, and the device is told what gave way (W79).
    static func giveWay(_ operation: Operation, to current: Current) -> Outcome {
        var answer = Answer(status: .merged, needsRecord: true)
        guard let standing = current.data else {
            answer.losses = [Verdict.Loss(field: nil, rule: .firstCapture)]
            return .nothing(answer)
        }
        let (sent, known) = (operation.fields, standing.lookup)
        answer.losses = sent.fields.compactMap { field in
            guard let theirs = known[sent.name(field)], theirs != sent.value(field) else { return nil }
            return Verdict.Loss(field: sent.nameString(field), rule: .firstCapture)
        }
        // Nobody wrote a field that the record does not have.
        let new = sent.filter { known[sent.name($0)] == nil && sent.decoded($0) != .null }
        guard !new.fields.isEmpty else { return .nothing(answer) }
        return .write(standing.overlaid(with: new), written: .only(new.fields.map(new.name)), answer)
    }
}
