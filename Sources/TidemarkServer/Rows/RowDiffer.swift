import TidemarkCore
import TidemarkWire

/// The part of a changed row that travels to a reader that holds the row before.
struct RowDifference: Hashable {
    /// The version of the row that the reader holds, where texts of it are patched.
    var base: Version?
    var patches: [FieldPatch] = []
    /// The other fields, as a JSON object.
    var data: [UInt8]
    /// Whether `data` lacks fields that have not changed.
    var isPartial: Bool
}

/// Tells how rows differ from those that were live at `complete`, which a reader whose state was whole then holds.
/// Written fields are known from the row itself (W90); texts are compared with the row before (W49), of entities that
/// declare such fields, while the store still has it.
struct RowDiffer {
    private struct Entity {
        var name: String
        var fields: [String]
    }

    private let reader: any ScopeReader
    private let complete: Version
    private let takesFields: Bool
    private let entities: [Entity]

    init(_ reader: any ScopeReader, _ declarations: Declarations, _ takes: Differences, complete: Version) {
        self.reader = reader
        self.complete = complete
        // A reader that begins holds nothing.
        takesFields = takes.contains(.fields) && complete > 0
        entities =
            takes.contains(.patches) && complete > 0
            ? declarations.entities.filter { !$0.patch.isEmpty }.map { Entity(name: $0.name, fields: $0.patch) } : []
    }

    /// `nil` where the row travels whole.
    func row(for change: BorrowedChange) -> RowDifference? {
        guard change.kind == .upsert, takesFields || !entities.isEmpty else { return nil }
        let written = takesFields ? self.written(change) : nil
        if let patched = patched(change, written) { return patched }
        guard let written, let data = written.object(from: change.payload, all: true),
            data.count + Self.partialCost < change.payload.count
        else { return nil }
        return RowDifference(data: data, isPartial: true)
    }

    /// Bytes that `,"partial":true` takes.
    private static let partialCost = 15

    /// The fields that were written since the reader's state was whole.
    private func written(_ change: BorrowedChange) -> FieldSelection? {
        guard !change.fieldVersions.isEmpty else { return nil }
        let versions = FieldVersions(stored: Array(change.fieldVersions), rowVersion: change.version)
        return versions.written(after: complete).flatMap(FieldSelection.init(canonical:))
    }

    private func patched(_ change: BorrowedChange, _ written: FieldSelection?) -> RowDifference? {
        guard change.payload.count >= TextPatch.threshold,
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
            guard written?.contains(name) ?? true else { continue }
            let field = DataObject.string(canonical: name)
            guard let from = old.text(named: name), let to = new.text(named: name),
                let patch = TextPatch.make(field: field, from: from, to: to)
            else { continue }
            patches.append(patch)
        }
        guard !patches.isEmpty else { return nil }
        let patched = patches.map { DataObject.canonical($0.field)[...] }
        let rest = new.filter { field in
            let name = new.name(field)
            return !patched.contains(name) && written?.contains(name) ?? true
        }
        return RowDifference(base: before.version, patches: patches, data: rest.bytes, isPartial: written != nil)
    }
}
