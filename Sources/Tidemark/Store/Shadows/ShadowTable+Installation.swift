import GRDB

/// How shadows follow the schema of their table.
extension ShadowTable {
    /// The key's only column has got another name.
    func renameKey(_ db: Database, from old: String) throws {
        try db.execute(sql: "ALTER TABLE \(sql) RENAME COLUMN \(quoted(old)) TO \(shape.key[0].sql)")
    }

    func dropColumn(_ db: Database, _ name: String) throws {
        try db.execute(sql: "ALTER TABLE \(sql) DROP COLUMN \(quoted(name))")
    }

    /// Adds a column of the table's, which is unedited in rows that were edited before it came; where the row had been
    /// deleted, what stands there was made anew.
    func addColumn(_ db: Database, _ column: TableSchema.Column) throws {
        try db.execute(sql: "ALTER TABLE \(sql) ADD COLUMN \(column.sql)")
        try db.execute(
            sql: """
                UPDATE \(sql) AS shadow SET \(column.sql) = (SELECT \(column.sql) FROM \(shape.sql) AS t
                WHERE \(shape.key.map { "t.\($0.sql) = shadow.\($0.sql)" }.joined(separator: " AND ")))
                WHERE tidemark_state <> \(Shadow.State.absent.rawValue) AND tidemark_gone IS NOT 1
                """)
    }

    /// Marks inserts that are sealed, which may be on their way without a column that came since.
    func markInserts(_ db: Database) throws {
        try db.execute(
            sql: """
                UPDATE \(sql) SET tidemark_mark = \(Marks.counterSQL)
                WHERE tidemark_mark IS NULL AND tidemark_state = \(Shadow.State.absent.rawValue)
                """)
    }

    /// Refreshes the routing scopes of edited rows from the rows themselves.
    func refreshRoutingScopes(_ db: Database) throws {
        let isRow = shape.key.map { "t.\($0.sql) = shadow.\($0.sql)" }.joined(separator: " AND ")
        try db.execute(
            sql: """
                UPDATE \(sql) AS shadow SET tidemark_routing_scope = coalesce(
                  (SELECT \(shape.scopeSQL("t")) FROM \(shape.sql) AS t WHERE \(isRow)), tidemark_routing_scope)
                WHERE tidemark_mark IS NOT NULL
                """)
    }

    /// Lets nothing wait of a table that is in the file no more.
    static func unmark(_ db: Database, of entity: String) throws {
        guard try exists(db, of: entity) else { return }
        try db.execute(
            sql: """
                UPDATE \(quoted(TableSchema.shadowPrefix + entity)) SET tidemark_mark = NULL, tidemark_since = NULL
                WHERE tidemark_mark IS NOT NULL
                """)
    }
}
