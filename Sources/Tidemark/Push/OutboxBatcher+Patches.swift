import GRDB
import TidemarkCore
import TidemarkWire

// MARK: - Large texts travel as patches

extension OutboxBatcher {
    /// The operation with patches for its large texts; `nil` where it travels as it is. The text before is the
    /// shadow's: the server's row at the version that the operation names as its base.
    func patched(
        _ operation: Operation, _ shape: TableSchema, _ declared: EntityDeclaration, _ shadow: Shadow
    ) throws -> Operation? {
        // A group would fall with a patch that the server cannot make out, and temporary ids are looked for in whole
        // fields: both travel whole.
        guard !declared.patch.isEmpty, operation.kind == .upsert, operation.baseVersion != nil, shadow.state == .known,
            operation.group == nil, operation.references.isEmpty
        else { return nil }
        var patches: [FieldPatch] = []
        for field in declared.patch {
            guard let index = shape.dataIndex(field), case .text(let old) = shadow.cells[index],
                let new = operation.fields.text(named: shape.data[index].canonicalName), Cell.text(old).isSendable,
                let patch = TextPatch.make(field: field, from: old, to: new)
            else { continue }
            patches.append(patch)
        }
        guard !patches.isEmpty, let id = operation.id, try !Outbox.wantsWhole(db, shape.name, id) else { return nil }
        var patched = operation
        let names = patches.map { DataObject.canonical($0.field)[...] }
        patched.kind = .patch
        patched.patches = patches
        patched.fields = operation.fields.filter { field in !names.contains(operation.fields.name(field)) }
        return patched
    }
}

extension Outbox {
    /// Whether the server could not make out what the record's last patch was made from.
    fileprivate static func wantsWhole(_ db: Database, _ entity: String, _ record: RecordID) throws -> Bool {
        try lastCode(db, entity: entity, record: record.text) == RejectionCode.patchBaseUnknown
    }
}
