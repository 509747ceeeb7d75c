import TidemarkCore
import TidemarkWire

/// Turns a device's patches into the fields that they stand for: a patch is a way to travel, and what meets the record
/// is an edit like any other.
struct PatchedOperation {
    let reader: any ScopeReader
    let declaration: EntityDeclaration
    /// Versions written by the chain of own operations that `baseNumber` names.
    let seen: Set<Version>

    /// The upsert; `nil` where the text before is not known here, or is another one.
    func whole(_ operation: Operation, of record: RecordID) throws -> Operation? {
        var upsert = operation
        upsert.kind = .upsert
        upsert.patches = []
        // Temporary ids were looked for in whole fields.
        let isResolved = !operation.references.contains { reference in
            operation.patches.contains { $0.field == reference.place.field }
        }
        guard let given = operation.baseVersion, isResolved else { return nil }
        let base = max(given, seen.max() ?? 0)
        let newest = try reader.newest(entity: operation.entity, record: record)
        // Of a record that is gone for good nothing has to be made out: the edit is refused for that. After a loss the
        // record may come back later.
        if newest?.payload == nil, declaration.deletes == .win, operation.original == nil { return upsert }
        var texts = DataObject.Builder(capacity: 4096)
        for patch in operation.patches {
            let name: ArraySlice<UInt8> = DataObject.canonical(patch.field)[...]
            guard
                let old = try newest.flatMap({ try text(name, of: $0, at: base) })
                    ?? past(name, operation.entity, record, at: base),
                let new = TextPatch.apply(patch, to: old)
            else { return nil }
            texts.append(name: DataObject.Builder.quoted(patch.field)) { (writer: inout JSONWriter) in
                new.withUnsafeBytes { writer.string(utf8: $0) }
            }
        }
        upsert.fields = operation.fields.overlaid(with: texts.finish())
        return upsert
    }

    /// The text in the row that was live at the base, while the window holds it.
    private func past(
        _ name: ArraySlice<UInt8>, _ entity: String, _ record: RecordID, at base: Version
    ) throws -> [UInt8]? {
        guard let payload = try reader.row(entity: entity, record: record, at: base)?.payload else { return nil }
        return try DataObject(stored: payload).text(named: name)
    }

    /// The text in the newest row, where nobody has written it since the base.
    private func text(_ name: ArraySlice<UInt8>, of newest: StoredRecord, at base: Version) throws -> [UInt8]? {
        guard let payload = newest.payload else {
            guard let last = LastState(stored: newest.fieldVersions), last.fieldVersions[name] <= base else {
                return nil
            }
            return last.data.text(named: name)
        }
        let versions = FieldVersions(stored: newest.fieldVersions, rowVersion: newest.version)
        guard versions[name] <= base else { return nil }
        return try DataObject(stored: payload).text(named: name)
    }
}
