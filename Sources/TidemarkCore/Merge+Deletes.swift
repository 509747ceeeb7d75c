import TidemarkWire

/// Deletes against edits, as the entity declares it.
extension Meeting {
    func delete() -> Merge.Outcome {
        guard let current, let data = current.data else { return .nothing(Merge.Answer()) }
        var answer = Merge.Answer()
        // A delete that names no base refers to the record as it is.
        if let base = operation.baseVersion, isUnseen(data, current, base: base) {
            // A record that moves to another scope is not gone: its edits go where it went.
            switch operation.isMove ? .win : declaration.deletes {
            case .win: answer.unseenSince = base
            case .lose:
                answer.status = .merged
                answer.needsRecord = true
                answer.losses = [Verdict.Loss(field: nil, rule: .editWins)]
                return .nothing(answer)
            }
        }
        return .write(nil, written: .all, answer)
    }

    private func isUnseen(_ data: DataObject, _ current: Merge.Current, base: Version) -> Bool {
        guard current.version > base else { return false }
        if data.fields.isEmpty { return !seen.contains(current.version) }
        return data.fields.contains { !isSeen(data.name($0), in: current.fieldVersions, base: base) }
    }

    /// Merges an upsert with an id that nobody knows. Without a base it makes the record; with one, the record was
    /// deleted long ago.
    func onAbsent() -> Merge.Outcome {
        operation.baseVersion == nil ? insert() : refuse(nil)
    }

    /// Merges an upsert with a tombstone. Without a base it makes the record anew. With one, somebody deleted the
    /// record meanwhile: the edit is refused, or revives the record as it was, with its fields on top.
    func onTombstone(_ current: Merge.Current) -> Merge.Outcome {
        if operation.baseVersion == nil { return insert() }
        guard declaration.deletes == .lose, let last = current.last, !fields.fields.isEmpty else {
            return refuse(Verdict.Record(version: current.version, data: nil))
        }
        // Nobody can be shown a record that is gone, so fields that a person would decide about are merged.
        let policy = declaration.conflict == .manual ? .mergeFields : declaration.conflict
        let met =
            meet(last.data, last.fieldVersions, policy: policy) ?? Met(data: last.data, answer: Merge.Answer())
        var answer = met.answer
        answer.status = .merged
        answer.needsRecord = true
        answer.revived = current.version
        return .write(met.data, written: .only(met.changed), answer)
    }

    private func insert() -> Merge.Outcome {
        let answer = Merge.Answer(
            status: isAltered ? .merged : .applied, needsRecord: isAltered, losses: losses)
        return .write(fields, written: .all, answer)
    }

    private func refuse(_ record: Verdict.Record?) -> Merge.Outcome {
        let refusal = Verdict.Refusal(
            code: RejectionCode.recordDeleted, detail: "The record was deleted elsewhere.",
            hint: "The edit is kept; insert the record again to revive it.")
        return .refuse(refusal, record)
    }
}
