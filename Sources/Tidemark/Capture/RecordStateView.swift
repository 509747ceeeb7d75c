import GRDB

/// A table's view of its records that are not confirmed, which the app joins to the table by its key (`Showing.md`).
///
/// It names the library's tables alone: a view of the app's table would stop each migration that rebuilds that table. A
/// record that lacks a row there and is quarantined is therefore not in it.
struct RecordStateView {
    let shape: TableSchema

    static let prefix = "tidemark_state_"
    private var name: String { Self.prefix + shape.name }

    // MARK: In the file

    /// Makes the view, where the file has not just this one.
    func install(_ db: Database) throws {
        guard try !isInstalled(db) else { return }
        try drop(db)
        try db.execute(sql: sql)
    }

    /// Drops a view that is another one than this. To be called before the shadow's key gets another name.
    func dropOther(_ db: Database) throws { if try !isInstalled(db) { try drop(db) } }

    /// Drops the view of one table.
    static func drop(_ db: Database, table: String) throws {
        try db.execute(sql: "DROP VIEW IF EXISTS main.\(quoted(prefix + table))")
    }

    private func drop(_ db: Database) throws { try Self.drop(db, table: shape.name) }

    private func isInstalled(_ db: Database) throws -> Bool {
        try Query(db, "SELECT sql FROM main.sqlite_master WHERE type = 'view' AND name = ?1")
            .first(db, [.text(name)]) { $0.text(0) } == sql
    }

    // MARK: Its text

    /// A record's rows in several tables make one row of the view: that of the first rule, by the latest of its rows.
    var sql: String {
        let keys = shape.key.indices.map { "key\($0)" }.joined(separator: ", ")
        let isNamed = shape.key.indices.map { "key\($0) IS NOT NULL" }.joined(separator: " AND ")
        let columns = shape.key.map(\.sql).joined(separator: ", ")
        let rules = RecordStateRule.all.enumerated().map { rule($1, place: $0 + 1) }
        return """
            CREATE VIEW \(quoted(name))(\(columns), tidemark_state, tidemark_reason) AS
            SELECT \(keys), state, reason FROM (SELECT \(keys), state, reason, min(place) FROM (
            \(([marked] + (isPlain ? [first] : []) + rules).joined(separator: "\nUNION ALL "))
            ) WHERE \(isNamed) GROUP BY \(keys))
            """
    }

    /// The app compares the view's keys with its own columns. SQLite makes an index for that only where both columns
    /// have one affinity, which a CAST gives; values that a CAST would change are none of these keys.
    private var marked: String {
        let keys = shape.key.enumerated().map { "\(cast($1.sql, to: $1.affinity)) AS key\($0)" }
        let types = shape.key.map { isOfType("typeof(\($0.sql))", $0.affinity) }
        return select(
            keys, "'\(RecordStateRule.Name.pending.rawValue)' AS state, NULL AS reason, 0 AS place",
            from: shape.shadowSQL, where: types + [ShadowTable.isMarked])
    }

    /// Rows of the first capture, which are pending like edits (``FirstCapture``). The app's table is not named here:
    /// what is no row of it any more is in the view all the same.
    private var first: String {
        let key = FirstCapture.keySQL(isText: shape.key[0].affinity == .text)
        return select(
            [cast(key, to: shape.key[0].affinity)], "'\(RecordStateRule.Name.pending.rawValue)', NULL, 0",
            from: "tidemark_first_capture, json_each(keys)",
            where: ["entity = \(literal(shape.name))", "\(key) >= first"])
    }

    /// The plus keeps SQLite from the index by entity, which leads over all operations that are finished.
    private func rule(_ rule: RecordStateRule, place: Int) -> String {
        let keys = shape.key.indices.map { cast(key($0), to: shape.key[$0].affinity) }
        return select(
            keys, "'\(rule.state.rawValue)', \(rule.reason), (\(place) << 48) - \(rule.order)", from: rule.table,
            where: ["+entity = \(literal(shape.name))", isPlain ? nil : "json_valid(record)", rule.condition])
    }

    /// Whether ids are the key's own texts and numbers, and no arrays.
    private var isPlain: Bool { shape.key.count == 1 && [.text, .integer].contains(shape.key[0].affinity) }

    private func select(_ keys: [String], _ rest: String, from table: String, where conditions: [String?]) -> String {
        "SELECT \(keys.joined(separator: ", ")), \(rest) FROM \(table) WHERE "
            + conditions.compactMap { $0 }.joined(separator: " AND ")
    }

    private func cast(_ value: String, to affinity: Affinity) -> String {
        affinity == .blob ? value : "CAST(\(value) AS \(affinity.standardType))"
    }

    /// Whether a value of this type is what a column of this affinity keeps; `nil` where it keeps any.
    private func isOfType(_ type: String, _ affinity: Affinity) -> String? {
        switch affinity {
        case .text: "\(type) = 'text'"
        case .integer: "\(type) = 'integer'"
        case .real, .numeric: "\(type) IN ('integer', 'real')"
        case .blob: nil
        }
    }

    // MARK: The key out of a record's id

    /// SQL for one column of the key that `record` stands for (`TableSchema.recordID`, `KeyText`); NULL where the
    /// record's key is of another type.
    private func key(_ index: Int) -> String {
        let affinity = shape.key[index].affinity
        let isKeyText = "substr(record, -1) = char(10)"
        guard shape.key.count == 1 else { return element(index, affinity) }
        switch affinity {
        case .text: return "CASE WHEN \(isKeyText) THEN \(element(0, affinity)) ELSE record END"
        case .integer: return "CASE WHEN NOT \(isKeyText) THEN record END"
        case .blob, .real, .numeric: return element(0, affinity)
        }
    }

    /// SQL for an element of a JSON array. JSON's names for the types of numbers and texts are those of SQLite.
    private func element(_ index: Int, _ affinity: Affinity) -> String {
        let (type, value) = ("json_type(record, '$[\(index)]')", "json_extract(record, '$[\(index)]')")
        // An integer that JSON's numbers cannot hold stands as text in an object.
        let large = "CAST(json_extract(record, '$[\(index)].\"$int\"') AS INTEGER)"
        guard let condition = isOfType(type, affinity) else {
            let object = "coalesce(\(large), \(Self.blob(index)))"
            return "CASE \(type) WHEN 'object' THEN \(object) WHEN 'array' THEN NULL ELSE \(value) END"
        }
        return "CASE WHEN \(condition) THEN \(value)\(affinity == .text ? "" : " ELSE \(large)") END"
    }

    /// SQL for the bytes of a blob, which stands in ids as base64. SQLite cannot read that: four letters at a time are
    /// turned into three bytes, each of them taken from a row of all bytes.
    private static func blob(_ index: Int) -> String {
        let letters = (0..<4).map { "instr('\(alphabet)', substr(rest, \($0 + 1), 1)) - 1" }
        func byte(_ value: String, unless letter: Int? = nil) -> String {
            let byte = "substr(octets, \(value) + 1, 1)"
            return letter.map { "CASE WHEN substr(rest, \($0), 1) = '=' THEN '' ELSE \(byte) END" } ?? byte
        }
        return """
            (WITH RECURSIVE part(rest, bytes) AS (
              SELECT json_extract(record, '$[\(index)]."$blob"'), X''
              UNION ALL SELECT substr(rest, 5), CAST(bytes || \(byte("(\(letters[0])) * 4 + (\(letters[1])) / 16"))
                || \(byte("(\(letters[1])) % 16 * 16 + (\(letters[2])) / 4", unless: 3))
                || \(byte("(\(letters[2])) % 4 * 64 + \(letters[3])", unless: 4)) AS BLOB)
              FROM part, (SELECT \(Cell.blob(Array(0...255)).literal) AS octets) WHERE rest <> '')
            SELECT bytes FROM part WHERE rest = '')
            """
    }

    private static let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
}
