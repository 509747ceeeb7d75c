/// The pure-SQL triggers that note which records were edited, whoever writes: this connection, another one, another
/// process or the sqlite3 shell.
///
/// A mark says only "look at this record"; what it became is read when it is sealed, so a mark too many costs nothing.
/// A trigger of the app's that is newer than these runs before them, and a temporary one always does. So the row before
/// an update is noted before any trigger can have changed it, and an insert puts right what was noted of its row
/// meanwhile.
///
/// Marks are written with ON CONFLICT clauses, because the OR clause of the app's own statement overrides an OR
/// clause inside a trigger, but not these.
struct CaptureTriggers {
    let shape: TableShape

    static let prefix = "tidemark_capture_"

    /// Triggers that every synced table has, by the ends of their names.
    static let standing = ["insert", "update", "rekey", "delete"]

    /// The table's name comes last: 'note' and 'note_evict0' have no trigger of one name.
    static func name(_ suffix: String, of table: String) -> String { "\(prefix)\(suffix)_\(table)" }

    /// Trigger name and the statement that makes it.
    func all() -> [(name: String, sql: String)] {
        var triggers = [insert(), update(), rekey(), delete()]
        for (index, unique) in shape.uniques.enumerated() {
            triggers.append(evictingInsert(unique, index))
            triggers.append(evictingUpdate(unique, index))
        }
        if let move = move() { triggers.append(move) }
        if let number = shape.rowNumber { triggers += replacing(number) }
        return triggers + (shape.isGuarded ? guards() : [])
    }

    /// While changes are applied, a row is noted as it was before the first trigger of the app's changed it
    /// (``TriggerGuard``).
    private func guards() -> [(name: String, sql: String)] {
        func note(_ row: String, was: Int) -> String {
            let cells = was == 1 ? shape.columns : shape.key
            let columns = cells.map(\.sql).joined(separator: ", ")
            let values = cells.map { "\(row).\($0.sql)" }.joined(separator: ", ")
            return """
                INSERT INTO \(shape.touchedSQL)(\(columns), tidemark_was) SELECT \(values), \(was) \
                WHERE \(shape.isNamedSQL(row)) ON CONFLICT(\(keyList)) DO NOTHING
                """
        }
        return [
            make("guard_insert", "AFTER INSERT", when: nil, whileApplying: true, [note("NEW", was: 0)]),
            make(
                "guard_update", "AFTER UPDATE", when: nil, whileApplying: true,
                [note("OLD", was: 1), note("NEW", was: 0)]),
            make("guard_delete", "AFTER DELETE", when: nil, whileApplying: true, [note("OLD", was: 1)]),
        ]
    }

    // MARK: What the triggers watch

    private func insert() -> (String, String) {
        make("insert", "AFTER INSERT", when: nil, [count, noteAbsent])
    }

    private func update() -> (String, String) {
        make("update", "BEFORE UPDATE", when: differs(shape.columns), [count, noteOld(gone: false)])
    }

    /// A new key is a delete under the old one, whose row is noted by `update`, and an insert under the new one.
    private func rekey() -> (String, String) {
        let place = shape.isScopedByColumn ? ", tidemark_place = \(placeOfGone)" : ""
        return make(
            "rekey", "AFTER UPDATE", when: differs(shape.key),
            [count, "UPDATE \(shape.shadowSQL) SET tidemark_gone = 1\(place) WHERE \(isRow("OLD"))", noteAbsent])
    }

    /// The scope where a row is now looks at its mark (ScopeRule.column).
    private func move() -> (String, String)? {
        guard let column = shape.scopeIndex.map({ shape.data[$0] }) else { return nil }
        let isSame = shape.key.map { "NEW.\($0.sql) IS OLD.\($0.sql)" }.joined(separator: " AND ")
        return make(
            "move", "AFTER UPDATE", when: "(\(differs([column]))) AND \(isSame)",
            ["UPDATE \(shape.shadowSQL) SET tidemark_place = \(shape.scopeSQL("NEW")) WHERE \(isRow("NEW"))"])
    }

    private func delete() -> (String, String) {
        make("delete", "AFTER DELETE", when: nil, [count, noteOld(gone: true)])
    }

    /// A REPLACE evicts rows without firing their delete trigger, so they are noted before it can.
    private func evictingInsert(_ unique: TableShape.UniqueIndex, _ index: Int) -> (String, String) {
        let rows = evicted(by: unique)
        return make(
            "evict\(index)_insert", "BEFORE INSERT",
            when: "EXISTS (SELECT 1 FROM \(shape.sql) AS evicted WHERE \(rows))", [count, noteExisting(rows)])
    }

    private func evictingUpdate(_ unique: TableShape.UniqueIndex, _ index: Int) -> (String, String) {
        let isOther = "NOT (" + shape.key.map { "evicted.\($0.sql) IS OLD.\($0.sql)" }.joined(separator: " AND ") + ")"
        let rows = "\(evicted(by: unique)) AND \(isOther)"
        return make(
            "evict\(index)_update", "BEFORE UPDATE",
            when: "EXISTS (SELECT 1 FROM \(shape.sql) AS evicted WHERE \(rows))", [count, noteExisting(rows)])
    }

    /// A REPLACE by the row's own number evicts the row that has it, whatever its key.
    private func replacing(_ number: String) -> [(name: String, sql: String)] {
        let rows = "evicted.\(number) = NEW.\(number)"
        let exists = "EXISTS (SELECT 1 FROM \(shape.sql) AS evicted WHERE \(rows))"
        return [
            make("evict_row_insert", "BEFORE INSERT", when: exists, [count, noteExisting(rows)]),
            make(
                "evict_row_update", "BEFORE UPDATE", when: "NEW.\(number) <> OLD.\(number) AND \(exists)",
                [count, noteExisting(rows)]),
        ]
    }

    // MARK: Parts

    private func make(
        _ suffix: String, _ event: String, when: String?, whileApplying: Bool = false, _ body: [String]
    ) -> (String, String) {
        let name = Self.name(suffix, of: shape.name)
        let isDue = (whileApplying ? "" : "NOT ") + "EXISTS (SELECT 1 FROM tidemark_applying)"
        let condition = (when.map { "(\($0)) AND " } ?? "") + isDue
        let statements = body.map { "  \($0);\n" }.joined()
        let head = "CREATE TRIGGER \(quoted(name)) \(event) ON \(shape.sql) WHEN \(condition)"
        return (name, "\(head)\nBEGIN\n\(statements)END")
    }

    private var count: String { Self.count }

    /// Numbers the edit and stamps it, as `HybridClock.tick` does.
    static let count = "UPDATE tidemark_counter SET n = n + 1, clock = max(clock + 1, \(now) << 16)"

    /// The edit's place in the order, when its record was first edited, and the edit's own stamp.
    private let marks = "(SELECT n FROM tidemark_counter), \(now), (SELECT clock FROM tidemark_counter)"

    /// Milliseconds since 1970.
    private static let now = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"

    private var keyList: String { shape.key.map(\.sql).joined(separator: ", ") }
    private var columnList: String { shape.columns.map(\.sql).joined(separator: ", ") }

    private var markColumns: String {
        "tidemark_state, tidemark_mark, tidemark_since, tidemark_edited"
            + (shape.isScopedByColumn ? ", tidemark_scope, tidemark_place" : "")
    }

    /// The first mark keeps its place in the order; the shadow keeps the row from before the first edit.
    ///
    /// - Parameters:
    ///   - gone: SQL for `tidemark_gone`: 1 where the row is gone, NULL where it is here and always was; any other
    ///     number says that it may have been gone meanwhile.
    ///   - more: further columns that are set.
    private func keepFirst(place: String, gone: String, _ more: String = "") -> String {
        """
        ON CONFLICT(\(keyList)) DO UPDATE SET tidemark_mark = coalesce(tidemark_mark, excluded.tidemark_mark), \
        tidemark_since = coalesce(tidemark_since, excluded.tidemark_since), \
        tidemark_edited = excluded.tidemark_edited, tidemark_gone = \(gone)\(more)
        """ + (shape.isScopedByColumn ? ", tidemark_place = \(place)" : "")
    }

    /// The plus takes the column's affinity away, for the shadow's index has none.
    private func isRow(_ row: String) -> String {
        shape.key.map { "\($0.sql) = +\(row).\($0.sql)" }.joined(separator: " AND ")
    }

    /// A row that was not there before. What is noted of it as one that others know, and that was not gone, was noted
    /// by an update that a newer trigger made of it just now; only a row that is kept outside the table was edited
    /// before.
    private var noteAbsent: String {
        let isNew = """
            tidemark_state = 1 AND tidemark_gone IS NULL AND tidemark_mark IS NOT NULL AND tidemark_version IS NULL \
            AND NOT EXISTS (SELECT 1 FROM tidemark_parked WHERE entity = \(literal(shape.name)))
            """
        let state = ", tidemark_state = CASE WHEN \(isNew) THEN 0 ELSE tidemark_state END"
        let scope = ", tidemark_scope = CASE WHEN \(isNew) THEN '' ELSE tidemark_scope END"
        let key = shape.key.map { "NEW.\($0.sql)" }.joined(separator: ", ")
        return """
            INSERT INTO \(shape.shadowSQL)(\(keyList), \(markColumns)) \
            SELECT \(key), 0, \(marks)\(scopes("''", place: shape.scopeSQL("NEW"))) WHERE \(shape.isNamedSQL("NEW")) \
            \(keepFirst(place: "excluded.tidemark_place", gone: "NULL", state + (shape.isScopedByColumn ? scope : "")))
            """
    }

    /// Who has to look at the mark of a row that is gone: the scope that has it.
    private let placeOfGone = "CASE tidemark_state WHEN 0 THEN '' ELSE tidemark_scope END"

    /// An update may be that of a newer trigger, within the insert that has made the row anew.
    private let isHere = "CASE WHEN tidemark_gone IS NULL THEN NULL ELSE 3 END"

    /// The row as it was.
    private func noteOld(gone: Bool) -> String {
        let old = shape.columns.map { "OLD.\($0.sql)" }.joined(separator: ", ")
        let place = shape.scopeSQL("OLD")
        return """
            INSERT INTO \(shape.shadowSQL)(\(columnList), tidemark_gone, \(markColumns)) \
            SELECT \(old), \(gone ? "1" : "NULL"), 1, \(marks)\(scopes(place, place: place)) \
            WHERE \(shape.isNamedSQL("OLD")) \
            \(keepFirst(place: gone ? placeOfGone : "excluded.tidemark_place", gone: gone ? "1" : isHere))
            """
    }

    /// Whether the row will be gone is not known yet (2), so any scope may look.
    private func noteExisting(_ condition: String) -> String {
        let existing = shape.columns.map { "evicted.\($0.sql)" }.joined(separator: ", ")
        let scope = shape.scopeSQL("evicted")
        return """
            INSERT INTO \(shape.shadowSQL)(\(columnList), tidemark_gone, \(markColumns)) \
            SELECT \(existing), 2, 1, \(marks)\(scopes(scope, place: scope)) FROM \(shape.sql) AS evicted \
            WHERE \(condition) AND \(shape.isNamedSQL("evicted")) \
            \(keepFirst(place: "''", gone: "1"))
            """
    }

    private func scopes(_ scope: String, place: String) -> String {
        shape.isScopedByColumn ? ", \(scope), \(place)" : ""
    }

    private func evicted(by unique: TableShape.UniqueIndex) -> String {
        unique.parts.map { "evicted.\(quoted($0.column)) = NEW.\(quoted($0.column)) COLLATE \(quoted($0.collation))" }
            .joined(separator: " AND ")
    }

    /// Byte by byte: a column's own collation would hide a change of case, and `1 IS 1.0`.
    private func differs(_ columns: [TableShape.Column]) -> String {
        anySQL(
            columns.map {
                "OLD.\($0.sql) IS NOT NEW.\($0.sql) COLLATE BINARY OR typeof(OLD.\($0.sql)) <> typeof(NEW.\($0.sql))"
            })
    }
}
