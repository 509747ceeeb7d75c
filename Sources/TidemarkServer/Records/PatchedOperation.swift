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
        // Temporary ids were looked for in whole fields.
        let isResolved = !operation.references.contains { reference in
            operation.patches.contains { patch in
                reference.place.field.map { Identifier.isSameName($0, patch.field) } ?? false
            }
        }
        guard let given = operation.baseVersion, isResolved else { return nil }
        let base = max(given, seen.max() ?? 0)
        let newest = try reader.newest(entity: operation.entity, record: record)
        let present = try newest.flatMap(Row.init)
        let operation = operation.spelled(as: present?.data, or: declaration.fieldNames)
        var upsert = operation
        upsert.kind = .upsert
        upsert.patches = []
        // The edit of a record that is gone for good is refused, so its text need not be made out. After a loss the
        // record may come back later.
        if newest?.payload == nil, declaration.deletes == .win, operation.original == nil { return upsert }
        var texts = DataObject.Builder(capacity: 4096)
        // The row before is read where it is needed, and once.
        lazy var past = Result {
            try reader.row(entity: operation.entity, record: record, at: base)?.payload
                .map { try DataObject(stored: $0).lookup }
        }
        for patch in operation.patches {
            let name: ArraySlice<UInt8> = DataObject.canonical(patch.field)[...]
            guard
                let old = try present?.text(name, at: base) ?? past.get()?.text(name),
                let new = TextPatch.apply(patch, to: old)
            else { return nil }
            texts.append(name: DataObject.Builder.quoted(patch.field)) { (writer: inout JSONWriter) in
                new.withUnsafeBytes { writer.string(utf8: $0) }
            }
        }
        upsert.fields = operation.fields.overlaid(with: texts.finish())
        return upsert
    }

    /// The newest row, or what is left of a deleted one.
    private struct Row {
        let data: DataObject
        let fields: FieldLookup
        let versions: FieldVersions

        /// `nil` where nothing is left.
        init?(_ stored: StoredRecord) throws {
            if let payload = stored.payload {
                data = try DataObject(stored: payload)
                fields = data.lookup
                versions = FieldVersions(stored: stored.fieldVersions, rowVersion: stored.version)
            } else {
                guard let last = LastState(stored: stored.fieldVersions) else { return nil }
                (data, fields, versions) = (last.data, last.data.lookup, last.fieldVersions)
            }
        }

        /// The text, where nobody has written it since the base.
        func text(_ name: ArraySlice<UInt8>, at base: Version) -> [UInt8]? {
            versions[name] <= base ? fields.text(name) : nil
        }
    }
}
