import GRDB
import TidemarkWire

/// An edit that is refused or taken back leaves the row as the server has it.
extension RecordTable {
    /// Makes the row the server's again, or deletes it where the server has none. The record has no shadow then.
    ///
    /// - Parameters:
    ///   - scope: the scope of an edit that was never sent.
    ///   - sent: inserts that were sent, to which rows may refer.
    ///   - putsBack: whether rows of a table that is named are put back too.
    func undoEdit(
        _ db: Database, _ key: [Cell], _ shadow: Shadow, in scope: Scope, now: Int64, _ schema: SyncSchema,
        _ sent: SentInserts, puttingBack putsBack: @escaping (TableSchema) -> Bool = { _ in false }
    ) throws {
        if shadow.isRowKnown, let id = shape.recordID(key) {
            try putBack(db, key, id, shadow, in: scope, schema)
        } else {
            if shadow.isRowUnknown, let id = shape.recordID(key) {
                try RefetchQueue.note(db, shadow.scope.flatMap { Scope($0) } ?? scope, shape.name, id.text)
            }
            try undoInsert(db, key, shadow, in: scope, now: now, schema, sent, puttingBack: putsBack)
        }
        try dropShadow(db, key)
    }

    /// Makes the row the server's again. Where others stand in its way, it finds its place as any row of the server's
    /// does.
    func putBack(
        _ db: Database, _ key: [Cell], _ id: RecordID, _ shadow: Shadow, in scope: Scope, _ schema: SyncSchema
    ) throws {
        try CaptureSuppression.whileApplying(db, schema) {
            try writeOrQuarantine(db, key, id, shadow.cells, scope: shadow.scope ?? scope.name)
        }
    }

    /// Deletes the row of a refused edit that the server does not have, also where it is quarantined. Of a record that
    /// was deleted elsewhere the children are looked after when the scan has ended (``CascadeRepair``). Of one that
    /// another scope holds they stay.
    private func undoInsert(
        _ db: Database, _ key: [Cell], _ shadow: Shadow, in scope: Scope, now: Int64, _ schema: SyncSchema,
        _ sent: SentInserts, puttingBack putsBack: @escaping (TableSchema) -> Bool
    ) throws {
        let (id, place) = (shape.recordID(key), shadow.place(in: scope))
        let quarantined = try id.flatMap { try QuarantinedRow.edited(db, shape, $0, shadow, place) }
        if let id, quarantined != nil { try QuarantinedRow.remove(db, shape.name, id.text, place) }
        let isElsewhere = try id.map { try QuarantinedRow.exists(db, shape.name, $0.text) } ?? false
        if shadow.state == .deleted || isElsewhere {
            try CaptureSuppression.whileApplying(db, schema) { try deleteRow(db, key) }
        } else if let row = try row(db, key) ?? quarantined {
            try DeleteActions(db: db, schema: schema, scope: scope, now: now, sent: sent, putsBack: putsBack)
                .delete(self, key, row)
        }
    }
}
