import GRDB
import TidemarkWire

/// The rows that a table held when it was captured for the first time, until they are held against the server's. Where
/// the table has one scope, each gets its shadow at once, as the insert that it is if the server has nothing yet: a
/// first device has its whole file of such rows. Where the server has something, each of them is held against its row
/// (``Inferred``).
enum FirstCapture {
    /// The one scope of a table whose rows wait; `nil` where none do.
    static func scope(_ db: Database, _ entity: String) throws -> String? {
        try Query(db, "SELECT uncompared FROM tidemark_table WHERE name = ?1")
            .first(db, [.text(entity)]) { $0.optionalText(0) } ?? nil
    }

    static func isAny(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_table WHERE uncompared = ?1 LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } ?? false
    }

    private static func set(_ db: Database, _ entity: String, _ scope: String?) throws {
        try Query(db, "UPDATE tidemark_table SET uncompared = ?2 WHERE name = ?1")
            .execute([.text(entity), .optional(scope)])
    }

    /// Makes all rows of a table that have no shadow rows of its first capture, and lets them wait.
    static func begin(_ db: Database, _ shape: TableSchema, in scope: Scope) throws {
        if try note(db, shape, in: scope) > 0 { try set(db, shape.name, scope.name) }
    }

    /// Makes all rows of the scope that have no shadow inserts of rows that are older than their capture. Returns how
    /// many there were.
    @discardableResult
    static func note(_ db: Database, _ shape: TableSchema, in scope: Scope) throws -> Int {
        let row = shape.columns.map { "t.\($0.sql)" }.joined(separator: ", ")
        let isRow = shape.key.map { "s.\($0.sql) = +t.\($0.sql)" }.joined(separator: " AND ")
        // Where a statement reads what it writes, SQLite copies all that it finds first.
        let isNew =
            try RecordTable(shape).hasShadows(db)
            ? "NOT EXISTS (SELECT 1 FROM \(shape.shadowSQL) AS s WHERE \(isRow))" : "1"
        let mark = try Pending.nextMark(db)
        try db.execute(
            sql: """
                INSERT INTO \(shape.shadowSQL)(
                  \(shape.columns.map(\.sql).joined(separator: ", ")), tidemark_state, tidemark_bases, tidemark_mark,
                  tidemark_since, tidemark_edited, tidemark_scope, tidemark_routing_scope)
                SELECT \(row), \(Shadow.State.absent.rawValue), \(literal(Shadow.seedBases)), \(mark),
                  (SELECT \(Pending.nowSQL)), \(Shadow.seedStamp), \(shape.scopeSQL("t")), \(shape.scopeSQL("t"))
                FROM \(shape.sql) AS t
                WHERE \(shape.isInSQL(scope, "t")) AND \(shape.isNamedSQL("t")) AND \(isNew)
                """)
        return db.changesCount
    }

    /// The record's unseen write, where it is one of the rows that wait.
    static func entry(_ db: Database, _ name: RecordName, in scope: String, _ shadow: Shadow?) throws -> Inferred.Entry?
    {
        guard shadow?.seed != nil, try Self.scope(db, name.entity) == scope else { return nil }
        return Inferred.Entry(
            scope: scope, entity: name.entity, record: name.record, kind: .seed, hash: nil, isHeld: false)
    }

    /// The first rows that wait, in the order of their records.
    static func entries(
        _ db: Database, _ scope: Scope, _ shape: TableSchema, limit: Int
    ) throws -> [Inferred.Entry] {
        guard try Self.scope(db, shape.name) == scope.name else { return [] }
        return try keys(db, shape, limit: limit).compactMap { entry(of: $0, shape, scope.name) }
            .sorted { $0.record < $1.record }
    }

    /// The server has nothing of the scope: the rows are inserts. Returns whether any have waited.
    static func end(_ db: Database, _ shape: TableSchema, in scope: Scope) throws -> Bool {
        guard try Self.scope(db, shape.name) == scope.name else { return false }
        try set(db, shape.name, nil)
        return true
    }

    /// Whether rows that wait are gone, and no trigger has noted it: a page of another scope may take them along.
    static func lacksRows(_ db: Database, _ shape: TableSchema) throws -> Bool {
        guard try scope(db, shape.name) != nil, try Pending.count(db, "SELECT count(*) FROM tidemark_scope") > 1
        else { return false }
        let isRow = shape.key.map { "t.\($0.sql) = +s.\($0.sql)" }.joined(separator: " AND ")
        return try Query(
            db,
            """
            SELECT 1 FROM \(shape.shadowSQL) AS s WHERE \(isUntouched)
            AND NOT EXISTS (SELECT 1 FROM \(shape.sql) AS t WHERE \(isRow)) LIMIT 1
            """
        ).first(db) { _ in true } ?? false
    }

    /// The table is in the file no more, or is looked through anew: none of its rows waits.
    static func forget(_ db: Database, _ entity: String) throws {
        guard try scope(db, entity) != nil else { return }
        try set(db, entity, nil)
        let shadow = TableSchema.shadowPrefix + entity
        if try FileTable.exists(shadow, db) { try becomeEdits(db, quoted(shadow)) }
    }

    /// Makes of the rows that wait one unseen write each, which is held against the server's row by itself. A row that
    /// nobody has touched since is without a shadow then; of one that was edited the shadow has what stood before.
    static func takeApart(_ db: Database, _ shape: TableSchema) throws {
        guard let scope = try scope(db, shape.name) else { return }
        try set(db, shape.name, nil)
        var last: Int64 = 0
        while true {
            let keys = try keys(db, shape, after: last, limit: together)
            try Inferred.note(db, keys.compactMap { entry(of: $0, shape, scope) })
            guard let next = keys.last?.row else { break }
            last = next
        }
        try becomeEdits(db, shape.shadowSQL)
    }

    /// Leaves a shadow to those rows alone that were edited since, with what stood before.
    private static func becomeEdits(_ db: Database, _ shadow: String) throws {
        try Query(db, "DELETE FROM \(shadow) WHERE \(isUntouched)").execute()
        try Query(
            db,
            """
            UPDATE \(shadow) SET tidemark_state = \(Shadow.State.known.rawValue), tidemark_bases = NULL WHERE \(isSeed)
            """
        ).execute()
    }

    /// Rows that are taken apart with one statement.
    private static let together = 1024
    private static let isSeed = "tidemark_bases = \(literal(Shadow.seedBases))"
    private static let isUntouched = "\(isSeed) AND tidemark_edited = \(Shadow.seedStamp) AND tidemark_gone IS NULL"

    private static func keys(
        _ db: Database, _ shape: TableSchema, after last: Int64 = 0, limit: Int
    ) throws -> [(row: Int64, key: [Cell])] {
        let columns = shape.key.map { ", \($0.sql)" }.joined()
        return try Query(
            db,
            """
            SELECT tidemark_row\(columns) FROM \(shape.shadowSQL)
            WHERE tidemark_row > ?1 AND \(isSeed) ORDER BY tidemark_row LIMIT ?2
            """
        ).rows(db, [.integer(last), .integer(Int64(limit))]) { ($0.integer(0), $0.cells(1..<(shape.key.count + 1))) }
    }

    private static func entry(
        of found: (row: Int64, key: [Cell]), _ shape: TableSchema, _ scope: String
    ) -> Inferred.Entry? {
        shape.recordID(found.key).map { id in
            Inferred.Entry(scope: scope, entity: shape.name, record: id.text, kind: .seed, hash: nil, isHeld: false)
        }
    }
}
