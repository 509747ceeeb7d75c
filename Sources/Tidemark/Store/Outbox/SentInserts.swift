import GRDB
import TidemarkWire

/// The inserts of this device that the server took, as far as the device remembers its operations: for one transaction
/// that asks for many of them.
final class SentInserts {
    private let db: Database
    private var packed: [Scope: PackedEdits] = [:]

    init(_ db: Database) { self.db = db }

    /// The insert of a record; `nil` where there is none.
    func insert(of name: RecordName, in scope: Scope) throws -> Operation? {
        let edits = packed[scope] ?? PackedEdits(db, scope)
        packed[scope] = edits
        let entries =
            try edits.operations(on: name, after: 0)
            + Outbox.taken(db, entity: name.entity, record: name.record, scope: scope, after: 0)
        return try entries.lazy.map { try $0.operation() }.last(where: \.isInsert)
    }
}
