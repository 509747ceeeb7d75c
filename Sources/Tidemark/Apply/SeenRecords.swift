import GRDB
import TidemarkWire

/// The records that a snapshot holds, while they are swapped in; a record that is here and not among them was deleted.
/// They stand in a temporary table of the connection, which is emptied after the swap and stays.
final class SeenRecords {
    private let insert: Query
    private var entity: String?

    init(_ db: Database) throws {
        // Asked first: even a CREATE that finds its table makes every statement of the connection be prepared anew.
        let isThere = try Query(db, "SELECT 1 FROM sqlite_temp_master WHERE name = 'tidemark_seen'")
        if try isThere.first(db, [], { _ in true }) == nil {
            try db.execute(
                sql: """
                    CREATE TEMP TABLE tidemark_seen(
                        entity TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (entity, record)) WITHOUT ROWID
                    """)
        }
        try Query(db, Self.clearing).execute()
        insert = try Query(db, "INSERT OR IGNORE INTO temp.tidemark_seen(entity, record) VALUES (?1, ?2)")
    }

    func note(_ change: IncomingChange, _ table: ApplyTable, _ reader: JSONReader) throws {
        insert.reset()
        if entity != table.shape.name {
            entity = table.shape.name
            insert.bind(.text(table.shape.name), at: 1)
        }
        if change.id.hasEscapes {
            insert.bind(.text(reader.unescaped(change.id)), at: 2)
        } else {
            insert.bind(text: UnsafeRawBufferPointer(rebasing: reader.bytes[change.id.range]), at: 2, copied: false)
        }
        try insert.execute()
    }

    func clear(_ db: Database) throws {
        insert.clear()
        try Query(db, Self.clearing).execute()
    }

    private static var clearing: String { "DELETE FROM temp.tidemark_seen" }

    static func contains(_ db: Database, _ entity: String, _ id: RecordID) throws -> Bool {
        try Query(db, "SELECT 1 FROM temp.tidemark_seen WHERE entity = ?1 AND record = ?2")
            .first(db, [.text(entity), .text(id.text)]) { _ in true } ?? false
    }

    /// Up to `limit` keys behind `last` that stand in a table of the shape's columns and were not seen.
    ///
    /// - Parameter unsent: whether records that were made here, and that no server has, are among them.
    static func others(
        _ db: Database, _ shape: TableSchema, in table: String, scope: Scope, unsent: Bool, after last: [Cell]?,
        limit: Int
    ) throws -> [[Cell]] {
        let keys = shape.key.map { "here.\($0.sql)" }.joined(separator: ", ")
        let marks = shape.key.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
        // Rows of the first capture that were not sent are in no snapshot.
        var conditions = [shape.isInSQL(scope, "here"), FirstCapture.isDoneSQL(shape, "here")]
        if let id = shape.idSQL("here") {
            conditions.append(
                """
                NOT EXISTS (SELECT 1 FROM temp.tidemark_seen AS seen
                WHERE seen.entity = \(literal(shape.name)) AND seen.record = \(id))
                """)
        }
        if !unsent { conditions.append(ShadowTable(shape).mayBeServedSQL(in: table)) }
        if last != nil { conditions.append("(\(keys)) > (\(marks))") }
        return try Query(
            db,
            """
            SELECT \(keys) FROM \(table) AS here WHERE \(conditions.joined(separator: " AND "))
            ORDER BY \(keys) LIMIT \(limit)
            """
        ).rows(db, last ?? []) { $0.cells(0..<shape.key.count) }
    }
}

extension TableSchema {
    /// SQL for a row's record id, where SQL can say it: not for keys that travel as JSON arrays.
    fileprivate func idSQL(_ row: String) -> String? {
        guard key.count == 1 else { return nil }
        switch key[0].affinity {
        case .text: return "\(row).\(key[0].sql)"
        case .integer: return "CAST(\(row).\(key[0].sql) AS TEXT)"
        case .blob, .real, .numeric: return nil
        }
    }
}
