import GRDB
import TidemarkWire

/// The rows of a synced table that a deleted parent takes along. What cannot travel is on this device alone, and stays;
/// an edit that the server did not have when the parent was deleted is listed, because the device that deleted the
/// parent cannot have seen it.
struct OwnRows {
    struct Row {
        var id: RecordID
        var key, cells: [Cell]
        var isUnsent: Bool
    }

    private let db: Database
    private let scope: Scope
    private let now: Int64
    private let shape: TableSchema
    private let deletion: Version
    private let packed: PackedEdits
    /// The rows that can travel.
    private(set) var rows: [Row] = []

    /// - Parameters:
    ///   - deletion: the parent's.
    ///   - condition: SQL that names the rows, with `cells` as its parameters.
    init(
        _ db: Database, _ shape: TableSchema, _ packed: PackedEdits, _ scope: Scope, _ now: Int64,
        after deletion: Version,
        where condition: String, _ cells: [Cell]
    ) throws {
        (self.db, self.scope, self.now, self.shape, self.deletion) = (db, scope, now, shape, deletion)
        self.packed = packed
        let keys = shape.key.map(\.sql).joined(separator: ", ")
        let table = RecordTable(shape)
        let found = try Query(db, "SELECT \(keys) FROM \(shape.sql) WHERE \(condition)")
            .rows(db, cells) { $0.cells(0..<shape.key.count) }
        for key in found {
            guard let id = shape.recordID(key), let row = try table.row(db, key), row.allSatisfy(\.isSendable),
                try !Outbox.hasLocalRefusal(db, entity: shape.name, record: id.text, after: 0)
            else { continue }
            rows.append(Row(id: id, key: key, cells: row, isUnsent: try isUnsent(table, id, key)))
        }
    }

    /// The row by the names of its columns.
    func values(_ row: Row) -> ByName<Cell> {
        var values = ByName<Cell>()
        for (column, cell) in zip(shape.columns, row.key + row.cells) { values[column.name] = cell }
        return values
    }

    /// Deletes one of them.
    func delete(_ row: Row) throws {
        try Query(db, shape.statements.rowDelete).execute(row.key)
    }

    private func isUnsent(_ table: RecordTable, _ id: RecordID, _ key: [Cell]) throws -> Bool {
        if let shadow = try table.shadowHead(db, key), shadow.mark != nil { return true }
        if try Outbox.hasLater(db, entity: shape.name, record: id.text, scope, than: deletion) { return true }
        let name = RecordName(entity: shape.name, record: id.text)
        if try packed.contains(name, after: deletion) { return true }
        if try FirstCapture.contains(db, shape, key) { return true }
        return try Inferred.contains(db, shape.name, id.text)
    }

    /// Whether the row is not there any more.
    func isGone(_ row: Row) throws -> Bool { try RecordTable(shape).row(db, row.key) == nil }

    /// Lists an edit as a conflict that can be undone (F8), where its row has gone, or is another now. Returns how many
    /// were listed.
    func list(_ row: Row) throws -> Int {
        guard row.isUnsent else { return 0 }
        let standing = try RecordTable(shape).row(db, row.key)
        guard standing != row.cells else { return 0 }
        var conflict = Conflict(seed: row.cells, of: shape, row.id, in: scope, under: standing, at: now)
        conflict.rule = .deleteWins
        try Conflicts.add(db, conflict)
        if standing == nil { try Inferred.decided(db, shape.name, row.id.text) }
        return 1
    }
}
