import TidemarkCore
import TidemarkWire

// MARK: - The brake on deletes

extension Push {
    /// Refuses a delete whose user has deleted more lately than an operator takes without a confirmation. A delete of a
    /// record that is gone passes.
    mutating func brake(
        _ operation: Operation, _ record: RecordID, _ declaration: EntityDeclaration
    ) throws -> Verdict.Refusal? {
        guard let brake = declaration.brake, isCounted(operation) else { return nil }
        let count = try tally(declaration).count(at: moment, within: brake.milliseconds)
        guard count >= brake.rows,
            try writer.newest(entity: operation.entity, record: record)?.payload != nil
        else { return nil }
        let minutes = max(1, brake.milliseconds / 60_000)
        return Verdict.Refusal(
            code: RejectionCode.deleteBrake,
            detail: "\(count) records of \(declaration.name) were deleted here by this user within \(minutes) minutes.",
            hint: "If that was meant, send the deletes again as confirmed; if not, discard them.")
    }

    /// Counts a delete that was made.
    mutating func count(_ operation: Operation, _ declaration: EntityDeclaration) throws {
        guard let brake = declaration.brake, isCounted(operation) else { return }
        var tally = try tally(declaration)
        tally.add(at: moment, within: brake.milliseconds)
        tallies[EntityKey(declaration.name)] = tally
    }

    /// A record that moves lives on, one that somebody was asked about is meant, and what a device replays to a
    /// store that has lost it was taken once.
    private func isCounted(_ operation: Operation) -> Bool {
        operation.kind == .delete && !operation.isMove && !operation.isConfirmed && operation.original == nil
    }

    private mutating func tally(_ declaration: EntityDeclaration) throws -> DeleteTally {
        let key = EntityKey(declaration.name)
        if let known = tallies[key] { return known }
        let tally = DeleteTally(stored: try writer.tally(by: access.principal, of: key.text) ?? [])
        tallies[key] = tally
        return tally
    }

    /// Written once, however many records were deleted.
    func storeTallies() throws {
        for (entity, tally) in tallies where tally.hasChanged {
            try writer.store(tally: tally.stored, by: access.principal, of: entity.text, at: moment)
        }
    }
}

extension DeleteBrake {
    fileprivate var milliseconds: Int64 { window.milliseconds }
}
