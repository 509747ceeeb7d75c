import TidemarkCore
import TidemarkWire

/// Brings an edit of a state record into the log, by the rule of ``Merge``: the one place where a row is written,
/// whether a device or the server's own program asks.
struct RecordWriter {
    let writer: any ScopeWriter
    let declaration: EntityDeclaration
    let limits: Limits
    /// The operator's own rules, where there are any for this entity.
    var ruling: Ruling?
    /// The cost of the request; `nil` where nobody asks.
    var cost: Cost?

    func apply(
        _ sent: Operation, to record: RecordID, isService: Bool, seen: Set<Version>, at moment: Int64
    ) throws -> (verdict: Verdict, isVerbatim: Bool) {
        let current = try current(sent.entity, record)
        let sent = sent.spelled(as: current?.data ?? current?.last?.data, or: declaration.fieldNames)
        var operation = sent
        var restored: Restored?
        var whole: (data: DataObject?, how: Restored)?
        if let original = sent.original {
            switch restore(sent, original, current) {
            case .goesOn(let edit, let how): (operation, restored) = (edit, how)
            case .stands(let verdict): return (verdict, false)
            case .write(let data, let how): whole = (data, how)
            }
        }
        var decided = DataObject.empty
        switch ruling?.judge(operation, record, current: current, declaration: declaration, seen: seen, at: moment) {
        case .decided(let fields)?: decided = fields
        case .refused(let refusal)?: return (Verdict(.rejected, refusal: refusal), false)
        case nil: break
        }
        // The sender alone says that the write was lost, so the rules were asked about it first.
        if let whole { return (try write(whole.data, whole.how, operation, record, current, at: moment), false) }
        let stamp = stamp(of: operation, on: current, at: moment)
        let isNew = current?.data == nil && operation.baseVersion == nil && restored?.begins != true
        let completed = isNew ? operation.completed(with: declaration.defaults) : operation
        let outcome = Merge.decide(
            completed, on: current, declaration: declaration, seen: seen, stamp: stamp, decided: decided,
            mayWriteServerFields: isService)
        switch outcome {
        case .refuse(let refusal, let row):
            var verdict = Verdict(.rejected, record: row, refusal: refusal)
            verdict.theirsAt = current?.time
            return (verdict, false)
        case .conflict(let row):
            var verdict = Verdict(.conflict, record: row)
            verdict.theirsAt = current?.time
            return (verdict, false)
        case .nothing(let answer):
            if let restored { return (try restored.note(answer, operation, record, current, self, at: moment), false) }
            let version = current?.version ?? writer.state.head
            return (verdict(answer, version: version, data: current?.data, met: current), false)
        case .write(let data, let writes, var answer):
            if restored != nil { answer.needsRecord = true }
            if let data, let refusal = tooLarge(data) { return (refusal, false) }
            let version = try append(
                data, writes, operation, record, current: current, unseenSince: answer.unseenSince, stamp: stamp,
                restored: restored, at: moment)
            return (
                verdict(answer, version: version, data: data, met: current),
                !answer.needsRecord && completed == operation
            )
        }
    }

    /// When the edit was made; one that does not say so was made just now. A record that stamped devices have edited
    /// goes on having stamps, whoever writes it.
    private func stamp(of operation: Operation, on current: Merge.Current?, at moment: Int64) -> EditStamp {
        guard declaration.conflict == .lastEditWins || current?.isStamped == true else { return .zero }
        guard let stamp = operation.editedAt.flatMap(EditStamp.init(text:)) else {
            return EditStamp(milliseconds: moment)
        }
        return stamp.clamped(from: operation.syncedAt, to: moment)
    }

    private func current(_ entity: String, _ record: RecordID) throws -> Merge.Current? {
        guard let stored = try writer.newest(entity: entity, record: record) else { return nil }
        let data = try stored.payload.map { try DataObject(stored: $0) }
        let last = data == nil ? LastState(stored: stored.fieldVersions) : nil
        var current = Merge.Current(
            version: stored.version, data: data,
            fieldVersions: last?.fieldVersions
                ?? FieldVersions(stored: stored.fieldVersions, rowVersion: stored.version),
            time: stored.time, last: last)
        current.originals = Originals(stored: stored.originals)
        return current
    }

    func append(
        _ data: DataObject?, _ writes: Merge.Writes, _ operation: Operation, _ record: RecordID,
        current: Merge.Current?, unseenSince: Version?, stamp: EditStamp, restored: Restored? = nil, at moment: Int64
    ) throws -> Version {
        let version = writer.state.head + 1
        cost?.write(data?.bytes.count ?? 0)
        let note =
            data == nil
            ? lastState(current, operation, stamp)?.stored()
                ?? FieldVersions(common: version, stamp: stamp).stored(rowVersion: version)
            : fieldVersions(writes, current: current, stamp: stamp, restored: restored, at: version)?
                .stored(rowVersion: version)
        return try writer.append(
            NewRow(
                entity: operation.entity, record: record, kind: data == nil ? .delete : .upsert,
                payload: data?.bytes ?? tombstone(operation, unseenSince: unseenSince), fieldVersions: note,
                originals: originals(current, data, writes, operation, restored).stored),
            at: moment)
    }

    private func fieldVersions(
        _ writes: Merge.Writes, current: Merge.Current?, stamp: EditStamp, restored: Restored?, at version: Version
    ) -> FieldVersions? {
        guard declaration.conflict != .lastWriteWins else { return nil }
        guard case .only(let names) = writes, var versions = current?.fieldVersions else {
            return FieldVersions(common: version, stamp: stamp)
        }
        let known = (current?.data ?? current?.last?.data)?.lookup
        for name in names { versions.set(name, to: version, stamp: stamp, isNew: known?[name] == nil) }
        // The versions decide about later edits, so a row that is replayed keeps them. They do not tell a reader
        // how it differs from the row before.
        if restored != nil || current?.data == nil { versions.noteWhole(at: version) }
        return versions
    }

    /// The last state of a record, kept with its tombstone where an edit may revive the record.
    private func lastState(
        _ current: Merge.Current?, _ operation: Operation, _ stamp: EditStamp
    ) -> LastState? {
        guard declaration.deletes == .lose, !operation.isMove, let current else { return nil }
        // A record that is deleted once more stays what it was.
        guard let data = current.data else { return current.last }
        var last = LastState(data: data, fieldVersions: current.fieldVersions)
        last.deletedAt = stamp
        return last
    }

    /// The payload of a tombstone beside its version, as members on the wire; `nil` where there is none.
    private func tombstone(_ operation: Operation, unseenSince: Version?) -> [UInt8]? {
        var members: [String] = []
        if let unseenSince { members.append("\"base\":\(unseenSince)") }
        if operation.isMove { members.append("\"moved\":true") }
        return members.isEmpty ? nil : Array(members.joined(separator: ",").utf8)
    }

    func verdict(
        _ answer: Merge.Answer, version: Version, data: DataObject?, met current: Merge.Current?
    ) -> Verdict {
        var verdict = Verdict(answer.status, version: version)
        verdict.overwrites = answer.overwrites
        verdict.losses = answer.losses
        verdict.revived = answer.revived
        if !answer.overwrites.isEmpty || !answer.losses.isEmpty || answer.revived != nil {
            verdict.theirsAt = current?.time
        }
        if answer.needsRecord { verdict.record = Verdict.Record(version: version, data: data) }
        return verdict
    }

    func tooLarge(_ data: DataObject) -> Verdict? {
        let detail: String
        if data.bytes.count > limits.recordBytes {
            detail = "The record would take \(data.bytes.count) bytes; \(limits.recordBytes) are allowed."
        } else if data.fields.count > Limits.names {
            detail = "The record would have \(data.fields.count) fields; \(Limits.names) are allowed."
        } else {
            return nil
        }
        return Verdict(
            .rejected,
            refusal: Verdict.Refusal(
                code: RejectionCode.recordTooLarge, detail: detail, hint: "Keep large content apart from the record."))
    }
}

extension Merge.Current {
    /// Whether anything of it says when it was edited.
    fileprivate var isStamped: Bool {
        fieldVersions.newestStamp != .zero || last.map { $0.deletedAt != .zero } ?? false
    }
}

extension Operation {
    /// An insert with the fields that newer apps do not send any more (A19).
    fileprivate func completed(with defaults: [String: Value]) -> Operation {
        guard !defaults.isEmpty, kind == .upsert else { return self }
        var missing = DataObject.Builder()
        for (name, value) in defaults.sorted(by: { $0.key < $1.key }) where fields.value(name) == nil {
            missing.append(name, value)
        }
        guard !missing.isEmpty else { return self }
        var completed = self
        completed.fields = fields.overlaid(with: missing.finish())
        return completed
    }
}
