package import TidemarkWire

/// How one operation meets the record as the server has it: a pure rule, run in the transaction that commits it.
package enum Merge {
    /// The newest row of a record in the log.
    package struct Current: Hashable, Sendable {
        package var version: Version
        /// `nil`: a tombstone.
        package var data: DataObject?
        package var fieldVersions: FieldVersions

        package init(version: Version, data: DataObject?, fieldVersions: FieldVersions) {
            self.version = version
            self.data = data
            self.fieldVersions = fieldVersions
        }
    }

    package enum Outcome: Hashable, Sendable {
        /// A new row: the data (`nil`: a tombstone), the fields that it writes, and what to tell the device.
        case write(DataObject?, written: Writes, Answer)
        /// Everything asked for is so already; no row, no version.
        case nothing(Answer)
        /// Not acceptable, now or later.
        case refuse(Verdict.Refusal, Verdict.Record?)
    }

    /// Which fields the new row sets at its own version.
    package enum Writes: Hashable, Sendable {
        case all
        case only([ArraySlice<UInt8>])
    }

    package struct Answer: Hashable, Sendable {
        package var status: Verdict.Status = .applied
        /// Whether the resulting row has to travel back, because the reader could not work it out.
        package var needsRecord = false
        package var overwrites: [Verdict.Overwrite] = []
        /// A delete: the version that it was made on, where others had written since.
        package var unseenSince: Version?
    }

    /// - Parameters:
    ///   - seen: versions written by the chain of own operations that `baseNumber` names.
    ///   - mayWriteServerFields: whether the caller is one of the server's own programs (E4).
    package static func decide(
        _ operation: Operation, on current: Current?, declaration: EntityDeclaration, seen: Set<Version> = [],
        mayWriteServerFields: Bool
    ) -> Outcome {
        if operation.kind == .delete { return delete(operation, current, seen: seen) }
        let reserved = mayWriteServerFields ? [] : declaration.serverFields.map(DataObject.canonical)
        let fields = operation.fields.filter { field in !reserved.contains { $0[...] == operation.fields.name(field) } }
        let dropped = fields.fields.count < operation.fields.fields.count
        guard let current, let data = current.data else {
            return onAbsent(operation, fields: fields, dropped: dropped, tombstone: current)
        }
        return onLive(operation, fields: fields, dropped: dropped, current: current, data: data, seen: seen)
    }

    /// Deletes win. Where one covers edits that it did not see, the tombstone says so: their authors are told.
    private static func delete(_ operation: Operation, _ current: Current?, seen: Set<Version>) -> Outcome {
        guard let current, current.data != nil else { return .nothing(Answer()) }
        var answer = Answer()
        if let base = operation.baseVersion, current.version > base, !seen.contains(current.version) {
            answer.unseenSince = base
        }
        return .write(nil, written: .all, answer)
    }

    /// Without a base an upsert makes the record anew; with one, somebody deleted it meanwhile, and deletes win.
    private static func onAbsent(
        _ operation: Operation, fields: DataObject, dropped: Bool, tombstone: Current?
    ) -> Outcome {
        guard operation.baseVersion == nil else {
            let refusal = Verdict.Refusal(
                code: RejectionCode.recordDeleted, detail: "The record was deleted elsewhere.",
                hint: "The edit is kept; insert the record again to bring it back.")
            return .refuse(refusal, tombstone.map { Verdict.Record(version: $0.version, data: nil) })
        }
        return .write(fields, written: .all, Answer(status: dropped ? .merged : .applied, needsRecord: dropped))
    }

    private static func onLive(
        _ operation: Operation, fields: DataObject, dropped: Bool, current: Current, data: DataObject,
        seen: Set<Version>
    ) -> Outcome {
        func isSeen(_ name: ArraySlice<UInt8>, base: Version?) -> Bool {
            let version = current.fieldVersions[name]
            return base.map { version <= $0 } ?? false || seen.contains(version)
        }
        var answer = Answer()
        var changed: [ArraySlice<UInt8>] = []
        for field in fields.fields {
            let name = fields.name(field)
            guard let theirs = data.value(named: name), theirs == fields.value(field) else {
                changed.append(name)
                if !isSeen(name, base: operation.base(ofField: name)) {
                    answer.overwrites.append(overwrite(field, of: fields, current: current, data: data))
                }
                continue
            }
        }
        answer.needsRecord =
            dropped
            || data.fields.contains { field in
                let name = data.name(field)
                return fields.value(named: name) == nil && !isSeen(name, base: operation.baseVersion)
            }
        answer.status = answer.needsRecord || !answer.overwrites.isEmpty ? .merged : .applied
        if changed.isEmpty { return .nothing(answer) }
        return .write(data.overlaid(with: fields), written: .only(changed), answer)
    }

    private static func overwrite(
        _ field: DataObject.Field, of fields: DataObject, current: Current, data: DataObject
    ) -> Verdict.Overwrite {
        let name = fields.nameString(field)
        return Verdict.Overwrite(
            field: name, version: current.fieldVersions[fields.name(field)], theirs: data.value(name) ?? .null)
    }
}
