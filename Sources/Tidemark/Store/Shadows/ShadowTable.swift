import GRDB
import TidemarkWire

/// The shadows of one synced table, and the SQL over several of them. The shadow of one record is read and written by
/// ``RecordTable``, with statements that are made once for the table's shape (`RecordStatements`).
struct ShadowTable {
    let shape: TableSchema

    init(_ shape: TableSchema) { self.shape = shape }

    var name: String { shape.shadowName }
    var sql: String { shape.shadowSQL }
    var keyList: String { shape.key.map(\.sql).joined(separator: ", ") }

    /// The table's own rows and their shadows, as SQL: both have the columns of the table.
    var placesSQL: [String] { [shape.sql, sql] }

    // MARK: Which there are

    func exists(_ db: Database) throws -> Bool { try FileTable.isListed(name, db) }

    /// Whether a table of this name was ever synced.
    static func exists(_ db: Database, of entity: String) throws -> Bool {
        try FileTable.isListed(TableSchema.shadowPrefix + entity, db)
    }

    /// Whether a table of the file is one of these.
    static func isOne(_ name: String) -> Bool { name.hasPrefix(TableSchema.shadowPrefix) }

    /// The name of a table that was ever synced, as this file spells it; `nil` where there is none.
    static func spelling(_ db: Database, of entity: String) throws -> String? {
        try FileTable.named(TableSchema.shadowPrefix + entity, db).first(where: { !$0.isTemporary })
            .map { String($0.name.dropFirst(TableSchema.shadowPrefix.count)) }
    }

    /// The tables of the file that were ever synced, by name.
    static func entities(_ db: Database) throws -> [String] {
        try Query(
            db,
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'tidemark\\_shadow\\_%' ESCAPE '\\'"
        ).rows(db) { String($0.text(0).dropFirst(TableSchema.shadowPrefix.count)) }
    }

    static func drop(_ db: Database, of entity: String) throws {
        try db.execute(sql: "DROP TABLE IF EXISTS \(quoted(TableSchema.shadowPrefix + entity))")
    }

    func columns(_ db: Database) throws -> [String] {
        try Query(db, "PRAGMA table_info(\(sql))").rows(db) { $0.text(1) }
    }

    /// The columns by which the shadows name their records.
    func key(_ db: Database) throws -> [String] { try TableSchema.key(ofShadow: name, db) }

    // MARK: Keys

    private func keys(_ db: Database, _ statement: String, _ cells: [Cell] = []) throws -> [[Cell]] {
        try Query(db, statement).rows(db, cells) { $0.cells(0..<shape.key.count) }
    }

    /// The keys of all records that have a shadow.
    func keys(_ db: Database) throws -> [[Cell]] { try keys(db, "SELECT \(keyList) FROM \(sql)") }

    /// The keys of all records that have a row or a shadow.
    func keysWithRows(_ db: Database) throws -> [[Cell]] {
        try keys(db, "SELECT \(keyList) FROM \(shape.sql) UNION SELECT \(keyList) FROM \(sql)")
    }

    /// - Parameter isMeant: SQL over the table's own columns.
    func keys(_ db: Database, where isMeant: String) throws -> [[Cell]] {
        try keys(db, "SELECT \(keyList) FROM \(sql) WHERE \(isMeant)")
    }

    /// Keys of records with edits that have to do with a scope: whose they are, or who has to look at their marks.
    func keys(_ db: Database, concerning scope: Scope) throws -> [[Cell]] {
        let name = literal(scope.name)
        // A mark without a place may be of a row that stands in the scope.
        return try keys(
            db,
            where: shape.isScopedByColumn ? "tidemark_scope = \(name) OR tidemark_routing_scope IN (\(name), '')" : "1")
    }

    /// Keys of records that were deleted here, and whose delete is on its way.
    func deletedKeys(_ db: Database) throws -> [[Cell]] {
        let list = shape.key.map { "s.\($0.sql)" }.joined(separator: ", ")
        let isRow = shape.key.map { "t.\($0.sql) = s.\($0.sql)" }.joined(separator: " AND ")
        return try keys(
            db,
            """
            SELECT \(list) FROM \(sql) AS s WHERE s.tidemark_state = \(Shadow.State.known.rawValue)
            AND NOT EXISTS (SELECT 1 FROM \(shape.sql) AS t WHERE \(isRow))
            """)
    }

    /// Keys of records that may rest on a version after this one.
    func keys(_ db: Database, after version: Version) throws -> [[Cell]] {
        let list = shape.key.map { "here.\($0.sql)" }.joined(separator: ", ")
        return try keys(
            db,
            """
            SELECT \(list) FROM \(sql) AS here
            WHERE tidemark_version > ?1 OR tidemark_bases IS NOT NULL
            """, [.integer(version)])
    }

    // MARK: Conditions of other statements

    /// SQL for whether no shadow `s` is the one that is meant.
    func noneSQL(where isMeant: String) -> String { "NOT EXISTS (SELECT 1 FROM \(sql) AS s WHERE \(isMeant))" }

    /// SQL for whether the key of a row, whose columns need no alias, is that of a shadow.
    var isKeyOfOneSQL: String { "(\(keyList)) IN (SELECT \(keyList) FROM \(sql))" }

    /// SQL for whether a server may have a record of which a row or a shadow, with the alias `here`, stands in one of
    /// ``placesSQL``.
    func mayBeServedSQL(in place: String) -> String {
        guard place != sql else { return "here.tidemark_state <> \(Shadow.State.absent.rawValue)" }
        let isRow = shape.key.map { "made.\($0.sql) = +here.\($0.sql)" }.joined(separator: " AND ")
        return """
            NOT EXISTS (SELECT 1 FROM \(sql) AS made
            WHERE \(isRow) AND made.tidemark_state = \(Shadow.State.absent.rawValue))
            """
    }

    /// SQL for whether a shadow holds the server's row (``Shadow/isRowKnown``).
    private var isRowKnownSQL: String {
        """
        tidemark_state = \(Shadow.State.known.rawValue)
        AND coalesce(instr(tidemark_bases, \(literal(Shadow.unknownBaseJSON))), 0) = 0
        """
    }

    /// SQL for rows of the server's beneath edits, in the order of `list`, with the alias `t`.
    func servedSQL(_ list: String, where isMeant: String, and isDone: String, in scope: Scope) -> String {
        """
        SELECT \(list) FROM \(sql) AS t WHERE \(isMeant)
        AND \(isRowKnownSQL) AND \(isDone)
        \(shape.isScopedByColumn ? "AND t.tidemark_scope = \(literal(scope.name))" : "")
        """
    }

    /// SQL for rows that bytes are looked for in, with their keys and whether each has a shadow; those with a mark are
    /// left out.
    ///
    /// - Parameter rows: a subquery that gives keys of rows.
    func unmarkedSQL(of rows: String) -> String {
        let isSame = shape.key.map { "shadow.\($0.sql) IS found.\($0.sql)" }.joined(separator: " AND ")
        return """
            SELECT \(keyList), EXISTS (SELECT 1 FROM \(sql) AS shadow WHERE \(isSame)) FROM (
              \(rows)) AS found
            WHERE NOT EXISTS (
              SELECT 1 FROM \(sql) AS shadow WHERE \(isSame) AND \(Self.isMarked))
            """
    }

    // MARK: Numbers

    /// How many records with a shadow have a row.
    func countEdited(_ db: Database) throws -> Int {
        try Query.count(db, "SELECT count(*) FROM \(sql) AS s WHERE \(hasRowSQL)")
    }

    /// How many shadows hold a row of the server's.
    func countKnown(_ db: Database) throws -> Int {
        try Query.count(db, "SELECT count(*) FROM \(sql) WHERE \(isRowKnownSQL)")
    }

    /// How many records with a shadow have no row and are to be deleted on the server.
    func countDeletes(_ db: Database) throws -> Int {
        // A row that stood here before the first capture and was deleted since is sent, and deleted there.
        let isAbsent = "tidemark_state = \(Shadow.State.absent.rawValue)"
        let isDelete = "(NOT \(isAbsent) OR tidemark_bases = \(literal(Shadow.seedBases)))"
        return try Query.count(db, "SELECT count(*) FROM \(sql) AS s WHERE \(isDelete) AND NOT \(hasRowSQL)")
    }

    private var hasRowSQL: String {
        let isRow = shape.key.map { "t.\($0.sql) = s.\($0.sql)" }.joined(separator: " AND ")
        return "EXISTS (SELECT 1 FROM \(shape.sql) AS t WHERE \(isRow))"
    }

    // MARK: Changes

    /// Lets a shadow be that of a record with another key.
    func move(_ db: Database, _ oldKey: [Cell], to newKey: [Cell]) throws {
        let sets = shape.key.enumerated().map { "\($1.sql) = ?\($0 + 1)" }.joined(separator: ", ")
        let isOld = shape.key.enumerated().map { "\($1.sql) = ?\($0 + 1 + shape.key.count)" }
        try Query(db, "UPDATE \(sql) SET \(sets) WHERE \(isOld.joined(separator: " AND "))")
            .execute(newKey + oldKey)
    }

    /// Changes columns of the table's own in the shadows.
    ///
    /// - Parameters:
    ///   - set: SQL, with its SET.
    ///   - isMeant: SQL.
    func update(_ db: Database, _ set: String, where isMeant: String) throws {
        try Query(db, "UPDATE \(sql) \(set) WHERE \(isMeant)").execute()
    }
}
