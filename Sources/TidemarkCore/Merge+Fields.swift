import TidemarkWire

/// An edit of a record that is there: field by field, by the entity's policy.
extension Meeting {
    func onLive(_ current: Merge.Current) -> Merge.Outcome {
        guard let met = meet(current.data ?? .empty, current.fieldVersions, policy: declaration.conflict) else {
            return .conflict(Verdict.Record(version: current.version, data: current.data))
        }
        if met.changed.isEmpty { return .nothing(met.answer) }
        return .write(met.data, written: .only(met.changed), met.answer)
    }

    /// The outcome of an edit's merge with the record.
    struct Met {
        var data: DataObject
        /// The fields that the edit sets.
        var changed: [ArraySlice<UInt8>] = []
        var answer: Merge.Answer
    }

    /// The side whose value wins a field that both sides have set.
    private enum Winner { case mine, theirs, nobody }

    /// `nil`: the policy leaves the decision to the app.
    func meet(_ data: DataObject, _ versions: FieldVersions, policy: ConflictPolicy) -> Met? {
        var answer = Merge.Answer(losses: losses)
        var changed: [ArraySlice<UInt8>] = []
        let (standing, decided) = (data.lookup, decided.lookup)
        for field in fields.fields {
            let name = fields.name(field)
            let theirs = standing[name]
            let mine = fields.value(field)
            // Nobody wrote a field that the record does not have.
            let isSeen =
                theirs == nil || decided[name] != nil
                || self.isSeen(name, in: versions, base: operation.base(ofField: name))
            if isSeen {
                if theirs != mine { changed.append(name) }
                continue
            }
            let isEqual = theirs == mine
            switch winner(mine, theirs, name, versions, policy) {
            case .mine:
                changed.append(name)
                if !isEqual { answer.overwrites.append(overwrite(field, by: policy, versions, theirs)) }
            case .theirs:
                guard !isEqual else { continue }
                answer.losses.append(Verdict.Loss(field: fields.nameString(field), rule: .lastEditWins))
            case .nobody: return nil
            }
        }
        answer.needsRecord = isAltered || !answer.losses.isEmpty || hasNews(data, versions)
        answer.status = answer.needsRecord || !answer.overwrites.isEmpty ? .merged : .applied
        if isMadeAnew(versions) { answer.needsRecord = true }
        if changed.isEmpty { return Met(data: data, answer: answer) }
        let isWhole = changed.count == fields.fields.count
        let names = Set(isWhole ? [] : changed)
        let written = isWhole ? fields : fields.filter { names.contains(fields.name($0)) }
        return Met(data: data.overlaid(with: written), changed: changed, answer: answer)
    }

    private func winner(
        _ mine: ArraySlice<UInt8>, _ theirs: ArraySlice<UInt8>?, _ name: ArraySlice<UInt8>, _ versions: FieldVersions,
        _ policy: ConflictPolicy
    ) -> Winner {
        switch policy {
        case .mergeFields, .lastWriteWins: return theirs == mine ? .theirs : .mine
        case .manual: return theirs == mine ? .theirs : .nobody
        case .lastEditWins:
            let other = versions.stamp(of: name)
            if stamp != other { return stamp > other ? .mine : .theirs }
            // Two edits of one moment: the larger value stands, so that the order in which they come does not matter.
            guard let theirs else { return .mine }
            return theirs.lexicographicallyPrecedes(mine) ? .mine : .theirs
        }
    }

    /// Whether others have written fields that this edit does not name, and that its author has not seen.
    private func hasNews(_ data: DataObject, _ versions: FieldVersions) -> Bool {
        let sent = fields.lookup
        return data.fields.contains { field in
            let name = data.name(field)
            return sent[name] == nil && !isSeen(name, in: versions, base: operation.baseVersion)
        }
    }

    /// Whether the record was written whole since the row that the edit was made on: fields that only that row had are
    /// gone, which its author cannot know.
    private func isMadeAnew(_ versions: FieldVersions) -> Bool {
        guard let base = operation.baseVersion else { return false }
        return versions.common > base && !seen.contains(versions.common)
    }

    private func overwrite(
        _ field: DataObject.Field, by policy: ConflictPolicy, _ versions: FieldVersions, _ theirs: ArraySlice<UInt8>?
    ) -> Verdict.Overwrite {
        Verdict.Overwrite(
            field: fields.nameString(field), version: versions[fields.name(field)],
            theirs: theirs.flatMap(DataObject.decoded) ?? .null,
            rule: policy == .lastEditWins ? .lastEditWins : .lastWriteWins)
    }
}
