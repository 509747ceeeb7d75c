import GRDB
import TidemarkWire

/// The rows that a table held when it was captured for the first time, until they are sealed. A first device has its
/// whole file of such rows, so that nothing is written for each of them: up to a thousand keys are one row of
/// `tidemark_first_capture`, in the order of the table's key.
///
/// Of such a table, from the first of these keys on:
/// - A row without a shadow is as it was captured, and goes out as the insert that it is.
/// - A row with a shadow that says `known` was edited or deleted since; the shadow has what stood before.
/// - A row with a shadow that says `absent` was made since.
///
/// The same holds of those that are sealed and have no verdict yet (``SealedRun``).
///
/// While `tidemark_table.uncompared` names a scope, the rows wait to be held against that scope's server. Once it is
/// seen to have nothing, they are sealed from their table (`OutboxBatcher+FirstCapture`). Every other event turns them
/// into records that are looked at one by one: into unseen writes where the server has something (``takeApart``), into
/// edits where it had nothing (``unfold``).
enum FirstCapture {
    /// Keys that lie between two of them, in their order.
    struct Part {
        var id: Int64
        var scope: String
        var first: Cell
        var last: Cell
        var mark: Int64
        var capturedAt: Int64

        var ends: [Cell] { [first, last] }
    }

    /// Whether a table's rows may be kept by their keys: each is in the one scope of the table, its id is its key's
    /// text and not another record's, which may get a new one, and neither a trigger of the app's nor bytes that it
    /// names have a say in its operation.
    static func mayKeep(_ shape: TableSchema, _ db: Database) throws -> Bool {
        guard !shape.isScopedByColumn, !shape.isGuarded, shape.attachments.isEmpty, shape.key.count == 1,
            try !Query(db, "PRAGMA foreign_key_list(\(shape.sql))").rows(db, [], { $0.text(3) })
                .contains(where: { shape.key[0].name.isSameName(as: $0) })
        else { return false }
        switch shape.key[0].affinity {
        case .integer, .text: return true
        case .blob, .real, .numeric: return false
        }
    }

    // MARK: What is left

    static func part(_ db: Database, _ entity: String) throws -> Part? {
        try Query(
            db,
            """
            SELECT id, scope, first, last, mark, captured_at FROM tidemark_first_capture WHERE entity = ?1
            ORDER BY id LIMIT 1
            """
        ).first(db, [.text(entity)]) {
            Part(
                id: $0.integer(0), scope: $0.text(1), first: $0.cell(2), last: $0.cell(3), mark: $0.integer(4),
                capturedAt: $0.integer(5))
        }
    }

    static func isLeft(_ db: Database, in scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_first_capture WHERE scope = ?1 LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } ?? false
    }

    /// Whether rows of these tables are left.
    static func isLeft(_ db: Database, _ schema: SyncSchema, _ scope: Scope) throws -> Bool {
        try isLeft(db, in: scope) && schema.shapes(in: scope).contains { try part(db, $0.name) != nil }
    }

    /// How many rows are left that were not edited or deleted since, how many were, as their shadows tell, and when the
    /// rows were captured.
    ///
    /// - Parameter rows: how many it is enough to count, where there are more: a request does not look at all parts, of
    ///   which there may be one for each request.
    static func left(
        _ db: Database, _ entity: String, upTo rows: Int? = nil
    ) throws -> (untouched: Int, touched: Int, since: Int64?) {
        // A file of an older version may be read before it is brought up to date.
        guard try FileTable.isListed("tidemark_first_capture", db) else { return (0, 0, nil) }
        // Of the first part some may be sealed.
        let parts = rows.map { Int64($0 / max(1, Dependencies.current.firstCaptureKeys)) + 2 } ?? .max
        let counted: [Cell] = [.text(entity), .integer(parts)]
        let found = try Query(
            db,
            """
            SELECT sum(records), min(captured_at) FROM (
              SELECT records, captured_at FROM tidemark_first_capture WHERE entity = ?1 ORDER BY id LIMIT ?2)
            """
        ).first(db, counted) { ($0.optionalInteger(0), $0.optionalInteger(1)) }
        // Behind the parts that are counted.
        let next = "(SELECT first FROM tidemark_first_capture WHERE entity = ?1 ORDER BY id LIMIT 1 OFFSET ?2)"
        guard let records = found?.0,
            let touched = try ShadowTable.countTouched(
                db, of: entity, where: { key in "\(isLeftSQL(entity, key)) AND (\(key) >= \(next)) IS NOT 1" }, counted)
        else { return (0, 0, nil) }
        return (max(0, Int(records) - touched), touched, found?.1)
    }

    /// Whether a key lies among those that are left.
    static func contains(_ db: Database, _ shape: TableSchema, _ key: [Cell]) throws -> Bool {
        guard key.count == 1, try FileTable.isListed("tidemark_first_capture", db) else { return false }
        return try Query(db, "SELECT \(isLeftSQL(shape.name, "?1"))").first(db, key) { $0.integer(0) == 1 } ?? false
    }

    /// SQL: whether a key lies before all rows of the first capture that the server lacks, sealed or not.
    static func isDoneSQL(_ shape: TableSchema, _ row: String) -> String {
        shape.key.count == 1 ? "(\(isLackedSQL(shape.name, "\(row).\(shape.key[0].sql)")) IS NOT 1)" : "1"
    }

    private static func isLackedSQL(_ entity: String, _ key: String) -> String {
        "(\(key) >= coalesce(\(SealedRun.firstKeySQL(entity)), \(firstKeySQL(entity))))"
    }

    private static func isLeftSQL(_ entity: String, _ key: String) -> String { "(\(key) >= \(firstKeySQL(entity)))" }

    private static func firstKeySQL(_ entity: String) -> String {
        "(SELECT first FROM tidemark_first_capture WHERE entity = \(literal(entity)) ORDER BY id LIMIT 1)"
    }

    /// The shadow of a record as it is once the row is looked at by itself.
    static func shadow(
        _ db: Database, _ shape: TableSchema, _ key: [Cell], row: [Cell]?, _ found: Shadow?
    ) throws -> Shadow? {
        guard key.count == 1, try SealedRun.isThere(db), try scope(db, shape.name) == nil,
            try Query(db, "SELECT \(isLackedSQL(shape.name, "?1"))").first(db, key, { $0.integer(0) == 1 }) == true
        else { return found }
        let mark: Int64? = try contains(db, shape, key) ? 1 : nil
        let untouched = row.map { Shadow(state: .known, cells: $0, mark: mark, edited: Shadow.seedStamp) }
        guard var shadow = found ?? untouched, shadow.state == .known else { return found }
        (shadow.state, shadow.bases) = (.absent, [Shadow.seedBase: 0])
        return shadow
    }

    // MARK: Waiting for the server

    /// The one scope of a table whose rows wait; `nil` where none do.
    static func scope(_ db: Database, _ entity: String) throws -> String? {
        try Query(db, "SELECT uncompared FROM tidemark_table WHERE name = ?1")
            .first(db, [.text(entity)]) { $0.optionalText(0) } ?? nil
    }

    static func isWaiting(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_table WHERE uncompared = ?1 LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } ?? false
    }

    private static func set(_ db: Database, _ entity: String, _ scope: String?) throws {
        try Query(db, "UPDATE tidemark_table SET uncompared = ?2 WHERE name = ?1")
            .execute([.text(entity), .optional(scope)])
    }

    /// Lets the rows wait whose keys are kept.
    static func begin(_ db: Database, _ shape: TableSchema, in scope: Scope) throws {
        guard try part(db, shape.name) != nil else { return }
        try set(db, shape.name, scope.name)
        try Marks.announce(db)
    }

    /// The record's unseen write, where it is one of the rows that wait.
    static func entry(
        _ db: Database, _ shape: TableSchema, _ id: RecordID, _ key: [Cell], in scope: String, row: [Cell]?,
        _ shadow: Shadow?
    ) throws -> Inferred.Entry? {
        guard row != nil || shadow != nil, shadow?.state ?? .known == .known,
            try Self.scope(db, shape.name) == scope, try contains(db, shape, key)
        else { return nil }
        return entry(id.text, shape, scope)
    }

    /// The first rows that wait, in the order of their records.
    static func entries(
        _ db: Database, _ scope: Scope, _ shape: TableSchema, limit: Int
    ) throws -> [Inferred.Entry] {
        guard try Self.scope(db, shape.name) == scope.name, let part = try part(db, shape.name) else { return [] }
        return try Query(
            db,
            """
            SELECT prefix || value FROM tidemark_first_capture, json_each(keys)
            WHERE tidemark_first_capture.id = ?1 LIMIT ?2
            """
        ).rows(db, [.integer(part.id), .integer(Int64(limit))]) { entry($0.text(0), shape, scope.name) }
            .sorted { $0.record < $1.record }
    }

    private static func entry(_ record: String, _ shape: TableSchema, _ scope: String) -> Inferred.Entry {
        Inferred.Entry(
            scope: scope, entity: shape.name, record: record, kind: .seed, hash: nil, awaitsConfirmation: false)
    }

    /// The server has nothing of the scope: the rows are inserts. Returns whether any have waited.
    static func end(_ db: Database, _ shape: TableSchema, in scope: Scope) throws -> Bool {
        guard try Self.scope(db, shape.name) == scope.name else { return false }
        try set(db, shape.name, nil)
        return true
    }

    // MARK: One by one

    /// The table is in the file no more, or is looked through anew: none of its rows is kept by its key.
    static func forget(_ db: Database, _ entity: String) throws {
        if try scope(db, entity) != nil { try set(db, entity, nil) }
        try Query(db, "DELETE FROM tidemark_first_capture WHERE entity = ?1").execute([.text(entity)])
    }

    /// Makes records of a table's rows that are looked at one by one.
    static func materialize(_ db: Database, _ shape: TableSchema) throws {
        try takeApart(db, shape)
        try unfold(db, shape)
    }

    /// Makes of the rows that wait one unseen write each, which is held against the server's row by itself. A row
    /// without a later edit has no shadow; of an edited one the shadow has what stood before.
    static func takeApart(_ db: Database, _ shape: TableSchema) throws {
        guard let scope = try scope(db, shape.name) else { return }
        let key = shape.key[0].sql
        let keys = try Query(
            db,
            """
            SELECT t.\(key) FROM \(shape.sql) AS t
            WHERE t.\(key) BETWEEN ?1 AND ?2 AND \(shape.isNamedSQL("t")) AND \(isNew(shape))
            UNION ALL \(ShadowTable(shape).touchedKeysSQL)
            """)
        while let part = try part(db, shape.name) {
            let ids = try keys.rows(db, part.ends) { shape.recordID($0.cells(0..<1)) }
            try Inferred.note(db, ids.compactMap { $0.map { entry($0.text, shape, scope) } })
            try drop(db, part)
        }
        try set(db, shape.name, nil)
    }

    /// Makes records of rows before rows of a scope are written: its pages may write any row, and take along rows of
    /// other scopes' tables.
    ///
    /// - Parameter scope: `nil`: rows that wait are taken apart elsewhere.
    static func materialize(_ db: Database, _ schema: SyncSchema, writing scope: Scope?) throws {
        try SealedRun.unfold(db, schema)
        guard try Query(db, "SELECT 1 FROM tidemark_first_capture LIMIT 1").first(db, [], { _ in true }) != nil
        else { return }
        for shape in schema.shapes {
            if let scope, shape.rule.mayHaveRows(in: scope) { try takeApart(db, shape) }
            try unfold(db, shape)
        }
    }

    /// Makes edits with shadows and marks of the rows that are left, where they do not wait for the server.
    static func unfold(_ db: Database, _ shape: TableSchema) throws {
        try SealedRun.unfold(db, shape)
        guard let part = try part(db, shape.name), try scope(db, shape.name) == nil else { return }
        let key = shape.key[0].sql
        try ShadowTable(shape).becomeSeeds(db, where: "\(key) >= ?1", [part.first])
        try insertSeeds(db, shape, part, where: "t.\(key) >= ?1")
        try forget(db, shape.name)
    }

    /// Makes all rows of the scope that have no shadow inserts of rows that are older than their capture.
    static func insertSeeds(_ db: Database, _ shape: TableSchema, in scope: Scope) throws {
        try insertSeeds(db, shape, nil, where: shape.isInSQL(scope, "t"))
    }

    /// - Parameters:
    ///   - part: what the marks are made of; `nil`: they are behind all others, and of now.
    ///   - isMeant: SQL, in which ?1 is the part's first key.
    private static func insertSeeds(_ db: Database, _ shape: TableSchema, _ part: Part?, where isMeant: String) throws {
        // The rows of a part are in one scope, and no column names it.
        let place = part == nil ? shape.scopeSQL("t") : "NULL"
        let areEdited = try RecordTable(shape).hasShadows(db)
        try ShadowTable(shape).insertSeeds(
            db, mark: part?.mark ?? Marks.next(db), since: part.map { String($0.capturedAt) } ?? Marks.nowSQL,
            place: place, where: "\(isMeant) AND \(shape.isNamedSQL("t")) \(isNew(shape, ifAny: areEdited))",
            part.map { [$0.first] } ?? [])
    }

    // MARK: On the way out

    /// Lets the shadows of a part's edited and deleted rows say that the server has no such rows. Returns whether any
    /// row between the part's ends has a shadow.
    static func meetEdits(_ db: Database, _ shape: TableSchema, _ part: Part) throws -> Bool {
        let shadows = ShadowTable(shape)
        guard try shadows.isAny(db, between: part.ends) else { return false }
        try shadows.becomeSeeds(db, between: part.ends)
        return true
    }

    /// The rows of a part that have no shadow: their keys and data, in the order of the keys.
    ///
    /// - Parameter areEdited: whether some have one.
    static func rows(_ shape: TableSchema, areEdited: Bool) -> String {
        let key = shape.key[0].sql
        let columns = (shape.key + shape.data).map { "t.\($0.sql)" }.joined(separator: ", ")
        return """
            SELECT \(columns) FROM \(shape.sql) AS t
            WHERE t.\(key) BETWEEN ?1 AND ?2 \(isNew(shape, ifAny: areEdited)) ORDER BY t.\(key)
            """
    }

    static func drop(_ db: Database, _ part: Part) throws {
        try Query(db, "DELETE FROM tidemark_first_capture WHERE id = ?1").execute([.integer(part.id)])
    }

    /// Notes that all before a key of the part is sealed.
    static func goOn(_ db: Database, _ shape: TableSchema, _ part: Part, from next: Cell) throws {
        let (key, column) = (keySQL(isText: shape.key[0].affinity == .text), shape.key[0].sql)
        let isOpen = """
            \(key) >= ?2 AND EXISTS (SELECT 1 FROM \(shape.sql) AS t WHERE t.\(column) = \(key))
            AND \(ShadowTable(shape).noneSQL(where: "s.\(column) = \(key)"))
            """
        try Query(
            db,
            """
            UPDATE tidemark_first_capture SET first = ?2,
              records = (SELECT count(*) FROM json_each(keys) WHERE \(isOpen)) WHERE id = ?1
            """
        ).execute([.integer(part.id), next])
    }

    // MARK: SQL

    /// A key out of a part's array, beside that array's element.
    static func keySQL(isText: Bool) -> String { isText ? "(prefix || value)" : "CAST(value AS INTEGER)" }

    private static func isNew(_ shape: TableSchema) -> String {
        let isRow = shape.key.map { "s.\($0.sql) = +t.\($0.sql)" }.joined(separator: " AND ")
        return ShadowTable(shape).noneSQL(where: isRow)
    }

    /// Where a statement reads what it writes, SQLite copies all that it finds first: so no shadow is looked for where
    /// there is none.
    private static func isNew(_ shape: TableSchema, ifAny areEdited: Bool) -> String {
        areEdited ? "AND \(isNew(shape))" : ""
    }
}
