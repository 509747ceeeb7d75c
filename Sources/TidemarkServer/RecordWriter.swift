import TidemarkCore
import TidemarkWire

/// Brings an edit of a state record into the log, by the rule of ``Merge``: the one place where a row is written,
/// whether a device or the server's own program asks.
struct RecordWriter {
    let writer: any ScopeWriter
    let declaration: EntityDeclaration
    let limits: Limits

    func apply(
        _ operation: Operation, to record: RecordID, isService: Bool, seen: Set<Version>, at moment: Int64
    ) throws -> (verdict: Verdict, isVerbatim: Bool) {
        let current = try current(operation.entity, record)
        let completed = current?.data == nil ? operation.completed(with: declaration.defaults) : operation
        let outcome = Merge.decide(
            completed, on: current, declaration: declaration, seen: seen, mayWriteServerFields: isService)
        switch outcome {
        case .refuse(let refusal, let row):
            return (Verdict(.rejected, record: row, refusal: refusal), false)
        case .nothing(let answer):
            let version = current?.version ?? writer.state.head
            return (verdict(answer, version: version, data: current?.data), false)
        case .write(let data, let writes, let answer):
            if let data, data.bytes.count > limits.recordBytes { return (tooLarge(data), false) }
            let version = try append(
                data, writes, operation.entity, record, current: current, unseenSince: answer.unseenSince, at: moment)
            return (verdict(answer, version: version, data: data), !answer.needsRecord && completed == operation)
        }
    }

    private func current(_ entity: String, _ record: RecordID) throws -> Merge.Current? {
        guard let stored = try writer.newest(entity: entity, record: record) else { return nil }
        return Merge.Current(
            version: stored.version, data: try stored.payload.map { try DataObject(stored: $0) },
            fieldVersions: FieldVersions(stored: stored.fieldVersions, rowVersion: stored.version))
    }

    private func append(
        _ data: DataObject?, _ writes: Merge.Writes, _ entity: String, _ record: RecordID, current: Merge.Current?,
        unseenSince: Version?, at moment: Int64
    ) throws -> Version {
        let version = writer.state.head + 1
        var fieldVersions: [UInt8]?
        if case .only(let names) = writes, declaration.conflict == .mergeFields, let current {
            var versions = current.fieldVersions
            for name in names { versions.set(name, to: version) }
            fieldVersions = versions.stored(rowVersion: version)
        }
        return try writer.append(
            NewRow(
                entity: entity, record: record, kind: data == nil ? .delete : .upsert,
                payload: data?.bytes ?? unseenSince.map { Array(String($0).utf8) }, fieldVersions: fieldVersions),
            at: moment)
    }

    private func verdict(_ answer: Merge.Answer, version: Version, data: DataObject?) -> Verdict {
        var verdict = Verdict(answer.status, version: version)
        verdict.overwrites = answer.overwrites
        if answer.needsRecord { verdict.record = Verdict.Record(version: version, data: data) }
        return verdict
    }

    private func tooLarge(_ data: DataObject) -> Verdict {
        Verdict(
            .rejected,
            refusal: Verdict.Refusal(
                code: RejectionCode.recordTooLarge,
                detail: "The record would take \(data.bytes.count) bytes; \(limits.recordBytes) are allowed.",
                hint: "Keep large content apart from the record."))
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
