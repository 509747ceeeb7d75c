import TidemarkCore
import TidemarkWire

/// A changed row for a reader that holds the one before: patches for its large texts, and its other fields whole.
struct PatchedRow: Hashable {
    /// The version of the row that the reader holds.
    var base: Version
    var patches: [FieldPatch]
    var rest: DataObject
}

/// Makes patches for a reader whose state was whole at `complete`: it holds the rows that were live then. Only rows of
/// entities that declare such fields are looked at, and only while the store still has the row before.
struct RowPatcher {
    private struct Entity {
        var name: String
        var fields: [String]
    }

    private let reader: any ScopeReader
    private let complete: Version
    private let entities: [Entity]

    /// `nil` where there is nothing to patch.
    init?(_ reader: any ScopeReader, _ declarations: Declarations, complete: Version) {
        entities = declarations.entities.filter { !$0.patch.isEmpty }.map { Entity(name: $0.name, fields: $0.patch) }
        guard complete > 0, !entities.isEmpty else { return nil }
        self.reader = reader
        self.complete = complete
    }

    /// `nil` where the row travels whole.
    func row(for change: BorrowedChange) -> PatchedRow? {
        guard change.kind == .upsert, change.payload.count >= TextPatch.threshold,
            let entity = entities.first(where: { Identifier.isSameName($0.name.utf8, change.entity) }),
            let record = RecordID(String(decoding: change.record, as: UTF8.self)),
            // A row that cannot be read any more is no reason to fail: the change itself is at hand.
            let before = try? reader.row(
                entity: String(decoding: change.entity, as: UTF8.self), record: record, at: complete),
            let old = before.payload.flatMap({ try? DataObject(stored: $0) }),
            let new = try? DataObject(stored: Array(change.payload))
        else { return nil }
        var patches: [FieldPatch] = []
        for declared in entity.fields {
            let name = new.spelling(of: declared)
            let field = DataObject.string(canonical: name)
            guard let from = old.text(named: name), let to = new.text(named: name),
                let patch = TextPatch.make(field: field, from: from, to: to)
            else { continue }
            patches.append(patch)
        }
        guard !patches.isEmpty else { return nil }
        let patched = patches.map { DataObject.canonical($0.field)[...] }
        let rest = new.filter { field in !patched.contains(new.name(field)) }
        return PatchedRow(base: before.version, patches: patches, rest: rest)
    }
}
