/// The pure-SQL triggers that note which records were edited, whoever writes: this connection, another one, another
/// process or the sqlite3 shell.
///
/// A mark says only "look at this record"; what it became is read when it is sealed, so a mark too many costs nothing.
/// A trigger of the app's that is newer than these runs before them, and a temporary one always does: it may write to
/// the very row, even put it back. So a row is noted BEFORE it is written, when no trigger AFTER it can have run, and
/// what is noted afterwards depends on whether the row is there.
///
/// Marks are written with ON CONFLICT clauses, because the OR clause of the app's own statement overrides an OR
/// clause inside a trigger, but not these.
struct CaptureTriggers {
    let shape: TableSchema

    static let prefix = "tidemark_capture_"
    private static let absent = Shadow.State.absent.rawValue

    /// Triggers that every synced table has, by the ends of their names.
    static let standing = ["insert", "update", "rekey", "delete"]

    /// The table's name comes last: 'note' and 'note_evict0' have no trigger of one name.
    static func name(_ suffix: String, of table: String) -> String { "\(prefix)\(suffix)_\(table)" }

    /// Trigger name and the statement that makes it.
    func all() -> [(name: String, sql: String)] {
        var triggers = [insert(), beforeInsert(), update(), rekey(), beforeRekey(), delete(), afterDelete()]
        triggers += evictions.map { make($0.suffix, $0.event, when: $0.condition, [count, noteExisting($0.rows)]) }
        if let move = move() { triggers.append(move) }
        return triggers + (shape.isGuarded ? guards() : []) + AttachmentCapture(shape: shape).triggers()
    }

    /// While changes are applied, a row is noted as it was before the first trigger of the app's changed it
    /// (``TriggerGuard``).
    private func guards() -> [(name: String, sql: String)] {
        func noteRow(_ row: String, was: Int, from: String = "WHERE") -> String {
            let cells = was == 1 ? shape.columns : shape.key
            let columns = cells.map(\.sql).joined(separator: ", ")
            let values = cells.map { "\(row).\($0.sql)" }.joined(separator: ", ")
            return """
                INSERT INTO \(shape.touchedSQL)(\(columns), tidemark_was) SELECT \(values), \(was) \
                \(from) \(shape.isNamedSQL(row)) ON CONFLICT(\(keyList)) DO NOTHING
                """
        }
        func noteEvicted(by rows: String) -> String {
            noteRow("evicted", was: 1, from: "FROM \(shape.sql) AS evicted WHERE (\(rows)) AND")
        }
        return [
            make(
                "guard_before_insert", "BEFORE INSERT", when: nil, whileApplying: true,
                [noteEvicted(by: evicted(by: shape.uniques[0])), noteRow("NEW", was: 0, from: "WHERE \(isGiven) AND")]),
            // A row whose key SQLite gives can be noted only after its insert.
            make("guard_insert", "AFTER INSERT", when: nil, whileApplying: true, [noteRow("NEW", was: 0)]),
            make(
                "guard_update", "BEFORE UPDATE", when: nil, whileApplying: true,
                [noteRow("OLD", was: 1), noteRow("NEW", was: 0)]),
            make("guard_delete", "BEFORE DELETE", when: nil, whileApplying: true, [noteRow("OLD", was: 1)]),
        ]
            + evictions.map { eviction in
                // No trigger runs for a row that a REPLACE of the app's trigger evicts.
                make(
                    "guard_\(eviction.suffix)", eviction.event, when: eviction.condition, whileApplying: true,
                    [noteEvicted(by: eviction.rows)])
            }
    }

    // MARK: What the triggers watch

    /// Notes the row of that key that a REPLACE evicts, or else a row that is not there yet.
    private func beforeInsert() -> (String, String) {
        let evicted = noteExisting(evicted(by: shape.uniques[0]))
        return make("before_insert", "BEFORE INSERT", when: nil, [count, evicted, noteNew])
    }

    /// Notes an insert after it happened, unless the note from before it still holds, as it does for most. A row that
    /// another trigger has taken away again is noted as gone.
    private func insert() -> (String, String) {
        let isPlaced = shape.isScopedByColumn ? " AND tidemark_routing_scope IS \(shape.scopeSQL("NEW"))" : ""
        let isNoted = """
            EXISTS (SELECT 1 FROM \(shape.shadowSQL) WHERE \(isRow("NEW")) AND tidemark_state = \(Self.absent) \
            AND tidemark_mark IS NOT NULL AND tidemark_gone IS NULL\(isPlaced))
            """
        return make("insert", "AFTER INSERT", when: "NOT \(isNoted)", [count, noteAbsent])
    }

    private func update() -> (String, String) {
        make("update", "BEFORE UPDATE", when: differs(shape.columns), [count, noteOld(mayGo: differs(shape.key))])
    }

    /// A new key is a delete under the old one, whose row is noted by `update`, and an insert under the new one.
    private func rekey() -> (String, String) {
        make("rekey", "AFTER UPDATE", when: differs(shape.key), [count, noteGone, noteAbsent])
    }

    private func beforeRekey() -> (String, String) {
        let isFree = "(\(differs(shape.key))) AND NOT \(exists("NEW"))"
        return make("before_rekey", "BEFORE UPDATE", when: isFree, [count, noteNew])
    }

    /// The scope where a row is now looks at its mark (ScopeRule.column).
    private func move() -> (String, String)? {
        guard let column = shape.scopeIndex.map({ shape.data[$0] }) else { return nil }
        let isSame = shape.key.map { "NEW.\($0.sql) IS OLD.\($0.sql)" }.joined(separator: " AND ")
        return make(
            "move", "AFTER UPDATE", when: "(\(differs([column]))) AND \(isSame)",
            ["UPDATE \(shape.shadowSQL) SET tidemark_routing_scope = \(shape.scopeSQL("NEW")) WHERE \(isRow("NEW"))"])
    }

    private func delete() -> (String, String) {
        make("delete", "BEFORE DELETE", when: nil, [count, noteOld(mayGo: "1")])
    }

    private func afterDelete() -> (String, String) { make("after_delete", "AFTER DELETE", when: nil, [noteGone]) }

    /// A statement that may evict rows of the table.
    private struct Eviction {
        var suffix: String
        var event: String
        /// SQL: whether there is such a row.
        var condition: String
        /// SQL: whether the row called `evicted` is one.
        var rows: String
    }

    /// A REPLACE evicts rows without firing their delete trigger, so they are noted before it can. A REPLACE by rowid
    /// evicts the row that has that number, under any key.
    private var evictions: [Eviction] {
        func isAny(_ rows: String) -> String { "EXISTS (SELECT 1 FROM \(shape.sql) AS evicted WHERE \(rows))" }
        let isOther = "NOT (" + shape.key.map { "evicted.\($0.sql) IS OLD.\($0.sql)" }.joined(separator: " AND ") + ")"
        var found: [Eviction] = []
        for (index, unique) in shape.uniques.enumerated() {
            let rows = evicted(by: unique)
            let others = "\(rows) AND \(isOther)"
            // By the key, which is first: `beforeInsert`.
            if index > 0 {
                found.append(
                    Eviction(
                        suffix: "evict\(index)_insert", event: "BEFORE INSERT", condition: isAny(rows), rows: rows))
            }
            found.append(
                Eviction(
                    suffix: "evict\(index)_update", event: "BEFORE UPDATE", condition: isAny(others), rows: others))
        }
        if let number = shape.rowNumber {
            let rows = "evicted.\(number) = NEW.\(number)"
            let isMoved = "NEW.\(number) <> OLD.\(number) AND \(isAny(rows))"
            found += [
                Eviction(suffix: "evict_row_insert", event: "BEFORE INSERT", condition: isAny(rows), rows: rows),
                Eviction(suffix: "evict_row_update", event: "BEFORE UPDATE", condition: isMoved, rows: rows),
            ]
        }
        return found
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
    private let marks = "\(Marks.counterSQL), \(now), \(Marks.clockSQL)"

    private static let now = Marks.nowSQL

    private var keyList: String { shape.key.map(\.sql).joined(separator: ", ") }
    private var columnList: String { shape.columns.map(\.sql).joined(separator: ", ") }

    private var markColumns: String {
        "tidemark_state, tidemark_mark, tidemark_since, tidemark_edited"
            + (shape.isScopedByColumn ? ", tidemark_scope, tidemark_routing_scope" : "")
    }

    /// The first mark keeps its place in the order; the shadow keeps the row from before the first edit.
    ///
    /// - Parameters:
    ///   - gone: SQL for `tidemark_gone`: 1 where the row is gone, NULL where it is here and always was; any other
    ///     number says that it may have been gone meanwhile.
    ///   - more: further columns that are set.
    private func keepFirst(_ place: String, gone: String, _ more: String = "") -> String {
        """
        ON CONFLICT(\(keyList)) DO UPDATE SET tidemark_mark = coalesce(tidemark_mark, excluded.tidemark_mark), \
        tidemark_since = coalesce(tidemark_since, excluded.tidemark_since), \
        tidemark_edited = excluded.tidemark_edited, tidemark_gone = \(gone)\(more)
        """ + (shape.isScopedByColumn ? ", tidemark_routing_scope = \(place)" : "")
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
            tidemark_state = \(Shadow.State.known.rawValue) AND tidemark_gone IS NULL AND tidemark_mark IS NOT NULL \
            AND tidemark_version IS NULL \
            AND NOT EXISTS (SELECT 1 FROM tidemark_quarantine WHERE entity = \(literal(shape.name)))
            """
        let state = ", tidemark_state = CASE WHEN \(isNew) THEN \(Self.absent) ELSE tidemark_state END"
        let scope = ", tidemark_scope = CASE WHEN \(isNew) THEN '' ELSE tidemark_scope END"
        let key = shape.key.map { "NEW.\($0.sql)" }.joined(separator: ", ")
        let gone = "CASE WHEN \(exists("NEW")) THEN NULL ELSE 1 END"
        return """
            INSERT INTO \(shape.shadowSQL)(\(keyList), tidemark_gone, \(markColumns)) \
            SELECT \(key), \(gone), 0, \(marks)\(scopes("''", place: shape.scopeSQL("NEW"))) \
            WHERE \(shape.isNamedSQL("NEW")) \
            \(keepFirst("excluded.tidemark_routing_scope", gone: gone, state + (shape.isScopedByColumn ? scope : "")))
            """
    }

    /// The scope that has to look at the mark of a deleted row: the one that has the row.
    private let placeOfGone = "CASE tidemark_state WHEN \(Self.absent) THEN '' ELSE tidemark_scope END"

    /// An update may be that of a newer trigger, within the insert that has made the row anew.
    private let isHere = "CASE WHEN tidemark_gone IS NULL THEN NULL ELSE 3 END"

    /// The row as it was.
    ///
    /// - Parameter mayGo: SQL: whether the row may not be there afterwards, which is not known yet.
    private func noteOld(mayGo: String) -> String {
        let old = shape.columns.map { "OLD.\($0.sql)" }.joined(separator: ", ")
        let place = shape.scopeSQL("OLD")
        return """
            INSERT INTO \(shape.shadowSQL)(\(columnList), tidemark_gone, \(markColumns)) \
            SELECT \(old), CASE WHEN \(mayGo) THEN 2 END, 1, \(marks)\(scopes(place, place: place)) \
            WHERE \(shape.isNamedSQL("OLD")) \
            \(keepFirst("excluded.tidemark_routing_scope", gone: "coalesce(excluded.tidemark_gone, \(isHere))"))
            """
    }

    /// The row that is gone, unless a trigger has put it back.
    private var noteGone: String {
        let place = shape.isScopedByColumn ? ", tidemark_routing_scope = \(placeOfGone)" : ""
        return """
            UPDATE \(shape.shadowSQL) SET tidemark_gone = 1\(place) WHERE \(isRow("OLD")) AND NOT \(exists("OLD"))
            """
    }

    /// A row that comes. Of a row that is there, and of a record that is noted already, it says nothing. A key that
    /// SQLite is going to give is foreseen; a wrong one is a mark too many.
    private var noteNew: String {
        let given = shape.key.map { "NEW.\($0.sql)" }.joined(separator: ", ")
        let foreseen = shape.nextNumberSQL.map { "(SELECT CASE WHEN \(isGiven) THEN \(given) ELSE \($0) END AS key)" }
        return """
            INSERT INTO \(shape.shadowSQL)(\(keyList), \(markColumns)) \
            SELECT \(foreseen == nil ? given : "key"), 0, \(marks)\(scopes("''", place: shape.scopeSQL("NEW"))) \
            \(foreseen.map { "FROM \($0) WHERE key IS NOT NULL" } ?? "WHERE \(shape.isNamedSQL("NEW"))") \
            ON CONFLICT(\(keyList)) DO NOTHING
            """
    }

    /// Whether there is a row of that key.
    private func exists(_ row: String) -> String {
        let isSame = shape.key.map { "here.\($0.sql) = \(row).\($0.sql)" }.joined(separator: " AND ")
        return "EXISTS (SELECT 1 FROM \(shape.sql) AS here WHERE \(isSame))"
    }

    /// Whether the key is known before the row is written. Where SQLite is to give it, it is -1.
    private var isGiven: String { shape.nextNumberSQL == nil ? "1" : "NEW.\(shape.key[0].sql) <> -1" }

    /// Whether the row will be gone is not known yet (2), so any scope may look.
    private func noteExisting(_ condition: String) -> String {
        let existing = shape.columns.map { "evicted.\($0.sql)" }.joined(separator: ", ")
        let scope = shape.scopeSQL("evicted")
        return """
            INSERT INTO \(shape.shadowSQL)(\(columnList), tidemark_gone, \(markColumns)) \
            SELECT \(existing), 2, 1, \(marks)\(scopes(scope, place: scope)) FROM \(shape.sql) AS evicted \
            WHERE \(condition) AND \(shape.isNamedSQL("evicted")) \
            \(keepFirst("''", gone: "1"))
            """
    }

    private func scopes(_ scope: String, place: String) -> String {
        shape.isScopedByColumn ? ", \(scope), \(place)" : ""
    }

    /// SQL: whether the row called `evicted` holds what a REPLACE of the new one evicts by. The condition of a partial
    /// index is what lets SQLite use it here.
    private func evicted(by unique: TableSchema.UniqueIndex) -> String {
        let parts = unique.parts.map { part in
            switch part.term {
            case .column(let name):
                "evicted.\(quoted(name)) = \(replaced(name)) COLLATE \(quoted(part.collation))"
            case .expression(let term, let columns):
                "(\(term)) = (SELECT (\(term)) FROM \(fresh(columns, in: term))) COLLATE \(quoted(part.collation))"
            }
        }
        return (parts + (unique.condition.map { ["(\($0))"] } ?? [])).joined(separator: " AND ")
    }

    /// The new row's columns under their own names, as far as an expression may name them.
    private func fresh(_ columns: [String], in expression: String) -> String {
        let expression = expression.lowercased()
        // A quote in a name is spelled in more than one way.
        let named = columns.filter { $0.contains("\"") || expression.contains($0.lowercased()) }
        return "(SELECT "
            + (named.isEmpty ? columns : named).map { "\(replaced($0)) AS \(quoted($0))" }
            .joined(separator: ", ") + ")"
    }

    /// The new row's value: where NULL stands for a default, a REPLACE puts that in its place.
    private func replaced(_ column: String) -> String {
        let value = "NEW.\(quoted(column))"
        guard let cell = shape.columns.first(where: { $0.name == column })?.replacement else { return value }
        return "coalesce(\(value), \(cell.literal))"
    }

    /// Whether triggers that stand watch just these unique indexes, besides the key. A REPLACE evicts unseen by an
    /// index that came after them.
    func watchesUniques(_ installed: [String]) -> Bool {
        shape.uniques.dropFirst().allSatisfy { unique in
            let rows = evicted(by: unique)
            return installed.contains { $0.contains("WHERE \(rows))") }
        }
    }

    /// Byte by byte: a column's own collation would hide a change of case, and `1 IS 1.0`.
    private func differs(_ columns: [TableSchema.Column]) -> String {
        anySQL(
            columns.map {
                "OLD.\($0.sql) IS NOT NEW.\($0.sql) COLLATE BINARY OR typeof(OLD.\($0.sql)) <> typeof(NEW.\($0.sql))"
            })
    }
}
