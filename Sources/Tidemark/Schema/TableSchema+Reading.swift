import GRDB
import TidemarkWire

extension TableSchema {
    /// Reads a table's shape and refuses what cannot be synced, saying what to change.
    ///
    /// - Parameter isChecked: whether it was seen already that this program can write to the table.
    init(_ db: Database, table: String, rule: SyncedTable.ScopeRule, isChecked: Bool = false) throws {
        let look = isChecked ? TableFlaw.ofShape : TableFlaw.all
        if let error = TableFlaw.error(try look(db, table, rule)) { throw error }
        let file = try FileTable.named(table, db).first
        let name = file?.name ?? table
        let columns = try FileTable.columns(db, name).map { column in
            (
                column: try Self.column(db, column, isStrict: file?.isStrict == true), keyPosition: column.keyPosition,
                isRequired: column.isRequired,
                isRowID: column.type.uppercased() == "INTEGER"
            )
        }
        let keyPairs = columns.filter { $0.keyPosition > 0 }.sorted { $0.keyPosition < $1.keyPosition }
        self.init(
            name: name, rule: rule, key: keyPairs.map(\.column),
            data: columns.filter { $0.keyPosition == 0 }.map(\.column), uniques: [], children: [], warnings: [])
        // The row's own number is never NULL; any other key may be, unless the schema says otherwise.
        // INTEGER PRIMARY KEY DESC is a key like any other, with an index of its own.
        let isRowID = try keyPairs.count == 1 && keyPairs[0].isRowID && FileTable.keyCollations(db, name).isEmpty
        if file?.hasRowIDs == true, !isRowID {
            let names = columns.map(\.column.name)
            rowNumber = ["rowid", "_rowid_", "oid"].first { number in !names.contains { $0.isSameName(as: number) } }
        }
        if isRowID { nextNumberSQL = try nextNumber(db) }
        mayLackKey = !isRowID && keyPairs.contains { !$0.isRequired }
        try readUniques(db)
        hasConflictClauses = try Self.declaration(db, name).contains(/on\s+conflict/.ignoresCase())
        children = try Self.references(db, to: name)
        statements = RecordStatements(of: self)
    }

    /// Reads a table's shape; `nil` where it cannot be synced as it stands.
    ///
    /// - Throws: `DatabaseError` where the app has interrupted the reading, which says nothing about the table.
    static func supported(_ db: Database, table: String, rule: SyncedTable.ScopeRule) throws -> TableSchema? {
        do { return try TableSchema(db, table: table, rule: rule) } catch let error as DatabaseError
            where error.isInterruptionError
        { throw error } catch { return nil }
    }

    private static func declaration(_ db: Database, _ name: String) throws -> String {
        try Query(db, "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?1")
            .first(db, [.text(name)]) { $0.text(0) } ?? ""
    }

    /// SQL for the next number: the largest number that is there, or that ever was, plus 1 (SQLite's manual,
    /// "Autoincrement"). NULL where there is none above it.
    private func nextNumber(_ db: Database) throws -> String {
        var largest = "(SELECT max(\(key[0].sql)) FROM \(sql))"
        // The word may stand in a comment too; only where SQLite counts for some table does it have a table for it.
        let counts = try Query(db, "SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'").first(db) { _ in true }
        if counts == true, try Self.declaration(db, name).contains(/\bautoincrement\b/.ignoresCase()) {
            let counted = "(SELECT max(seq) FROM sqlite_sequence WHERE name = \(literal(name)))"
            largest = "max(coalesce(\(largest), 0), coalesce(\(counted), 0))"
        }
        return """
            (SELECT CASE WHEN number IS NULL THEN 1 WHEN number < \(Int64.max) THEN number + 1 END \
            FROM (SELECT \(largest) AS number))
            """
    }

    private static func column(_ db: Database, _ column: FileTable.Column, isStrict: Bool) throws -> Column {
        // Elsewhere a word that says nothing makes numbers of what looks like them (SQLite's manual, "STRICT Tables").
        let isAny = isStrict && column.type.uppercased() == "ANY"
        let affinity = Affinity(declaredType: isAny ? "" : column.type)
        let defaultCell = try column.fallback.flatMap { try Self.evaluate(db, $0, affinity) } ?? .null
        return Column(
            name: column.name, affinity: affinity, defaultCell: defaultCell,
            returnsToDefault: column.fallback.map(Self.isConstant) ?? !column.isRequired,
            // A computed default is another value each time.
            replacement: column.isRequired && column.fallback.map(Self.isConstant) == true ? defaultCell : nil,
            wireName: DataObject.Builder.quoted(column.name))
    }

    /// A column's default as a row that is made now would hold it: `REAL DEFAULT 0` holds 0.0. One that SQLite does not
    /// work out counts as NULL; an interruption says nothing about it.
    private static func evaluate(_ db: Database, _ expression: String, _ affinity: Affinity) throws -> Cell? {
        // A table made to ask SQLite changes the schema, and all of the connection's statements are compiled anew.
        if let cell = affinity.plainDefault(expression) { return cell }
        // The pragma leaves out the parentheses that an expression needs, and a text in double quotes cannot have.
        for fallback in ["(\(expression))", expression] {
            do {
                try db.execute(
                    sql: "CREATE TEMP TABLE tidemark_default(value \(affinity.standardType) DEFAULT \(fallback))")
            } catch let error as DatabaseError where !error.isInterruptionError { continue }
            defer { try? db.execute(sql: "DROP TABLE temp.tidemark_default") }
            do {
                try db.execute(sql: "INSERT INTO temp.tidemark_default DEFAULT VALUES")
                return try Query(db, "SELECT value FROM temp.tidemark_default").first(db) { $0.cell(0) }
            } catch let error as DatabaseError where !error.isInterruptionError { return nil }
        }
        return nil
    }

    /// Literals are the same on every device; `CURRENT_TIMESTAMP` and whatever is in parentheses may not be.
    private static func isConstant(_ expression: String) -> Bool {
        let text = expression.trimmingPrefix { "+-".contains($0) }.uppercased()
        guard let first = text.first else { return false }
        return ["NULL", "TRUE", "FALSE"].contains(text) || first.isNumber || "'\".".contains(first)
            || text.hasPrefix("X'")
    }

    private mutating func readUniques(_ db: Database) throws {
        uniques = [UniqueIndex(name: "key", parts: key.map { .init(term: .column($0.name), collation: "BINARY") })]
        let indexes = try Query(db, "PRAGMA index_list(\(sql))").rows(db) { row in
            (name: row.text(1), isUnique: row.integer(2) == 1, origin: row.text(3))
        }
        // Generated columns too, but not the hidden ones of virtual tables.
        let names = try Query(db, "PRAGMA table_xinfo(\(sql))").rows(db) { ($0.text(1), $0.integer(6)) }
            .filter { $0.1 != 1 }.map(\.0)
        for index in indexes where index.isUnique && index.origin != "pk" {
            let statement =
                try Query(db, "SELECT sql FROM sqlite_master WHERE type = 'index' AND name = ?1")
                .first(db, [.text(index.name)]) { $0.optionalText(0) } ?? nil
            let text = statement.map(IndexText.init)
            let parts = try Query(db, "PRAGMA index_xinfo(\(quoted(index.name)))").rows(db) { row in
                (column: row.optionalText(2), collation: row.text(4), isKey: row.integer(5) == 1)
            }.filter(\.isKey)
            let watched = parts.enumerated().compactMap { place, part -> UniqueIndex.Part? in
                if let column = part.column { return .init(term: .column(column), collation: part.collation) }
                guard let term = text?.terms.dropFirst(place).first, mayWatch(db, term, names) else { return nil }
                return .init(term: .expression(term, of: names), collation: part.collation)
            }
            if watched.isEmpty {
                remarks.append(.hiddenUnique(index: index.name, table: name))
            } else {
                let condition = text?.condition.flatMap { isPlain(db, $0, names) ? $0 : nil }
                uniques.append(UniqueIndex(name: index.name, parts: watched, condition: condition))
            }
            let isReadable = watched.contains { part in columns.contains { $0.name == part.column } }
            hasHiddenUniques = hasHiddenUniques || !isReadable
        }
    }

    /// Whether a term can be worked out of a new row. A row's own number is not given yet when the trigger fires.
    private func mayWatch(_ db: Database, _ term: String, _ names: [String]) -> Bool {
        let numbers =
            ["rowid", "_rowid_", "oid"] + (key.count == 1 && key[0].affinity == .integer ? [key[0].name] : [])
        let words = term.split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init)
        return isPlain(db, term, names) && !numbers.contains { number in words.contains { $0.isSameName(as: number) } }
    }

    /// Whether SQL of an index can stand in a trigger. One that does not compile there would fail every write of the
    /// app's: SQLite takes `t.b` and a text in double quotes in an index, on connections that refuse both elsewhere.
    private func isPlain(_ db: Database, _ text: String, _ names: [String]) -> Bool {
        let quoted = text.matches(of: /"([^"]*)"/).map { String($0.1) }
        guard quoted.allSatisfy({ name in names.contains { $0.isSameName(as: name) } }) else { return false }
        return (try? Query(db, "SELECT 1 FROM \(sql) AS evicted WHERE (\(text)) LIMIT 0")) != nil
    }

    /// The foreign keys of any table in the file that refer to this one.
    static func references(_ db: Database, to parent: String) throws -> [Child] {
        let tables = try FileTable.own(db)
        let key = try Query(db, "PRAGMA table_info(\(quoted(parent)))").rows(db) { ($0.text(1), $0.integer(5)) }
            .filter { $0.1 > 0 }.sorted { $0.1 < $1.1 }.map(\.0)
        var children: [Child] = []
        for table in tables {
            var byID: [Int64: Child] = [:]
            let parts = try Query(db, "PRAGMA foreign_key_list(\(quoted(table)))").rows(db) { row in
                (id: row.integer(0), parent: row.text(2), from: row.text(3), to: row.text(4), onDelete: row.text(6))
            }
            for part in parts where part.parent.isSameName(as: parent) {
                var child =
                    byID[part.id]
                    ?? Child(table: table, columns: [], parentColumns: [], collations: [], onDelete: part.onDelete)
                // A reference without column names means the parent's key.
                let implied = key.indices.contains(child.columns.count) ? key[child.columns.count] : ""
                child.columns.append(part.from)
                let column = part.to.isEmpty ? implied : part.to
                child.parentColumns.append(column)
                child.collations.append(db.declaredCollation(of: column, in: parent) ?? "BINARY")
                byID[part.id] = child
            }
            children += byID.sorted { $0.key < $1.key }.map(\.value)
        }
        return children
    }

    /// Warns of triggers of the app's that write to a synced table while the server's changes are applied: what they
    /// write then is taken back (``TriggerGuard``), so they should look for the row of `tidemark_applying` first.
    /// Triggers that keep a search index get no warning.
    mutating func warnAboutTriggers(_ db: Database, synced: Set<String>) throws {
        let synced = Set(synced.map(SQLName.init))
        let triggers = try Query(
            db,
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE ORDER BY name"
        ).rows(db, [.text(name)]) { ($0.text(0), $0.text(1)) }
        hasTriggers = triggers.contains { !$0.0.hasPrefix("tidemark_") }
        for (trigger, sql) in triggers where !trigger.hasPrefix("tidemark_") && !sql.contains("tidemark_applying") {
            guard !SQLWords(sql).writtenTables.isDisjoint(with: synced) else { continue }
            remarks.append(.trigger(trigger, table: name))
        }
    }

    /// The tables that the app's triggers write to while changes are applied. Nothing is applied to a view: its
    /// triggers fire only where another one that fires writes to it. Temporary triggers are not among them: they come
    /// and go with a connection, and this is the file's.
    static func tablesWrittenByTriggers(_ db: Database) throws -> Set<SQLName> {
        let triggers = try Query(
            db,
            """
            SELECT t.sql, t.tbl_name, v.name IS NOT NULL FROM sqlite_master t
            LEFT JOIN sqlite_master v ON v.type = 'view' AND v.name = t.tbl_name COLLATE NOCASE
            WHERE t.type = 'trigger' AND t.name NOT LIKE 'tidemark\\_%' ESCAPE '\\'
            """
        ).rows(db) { row in
            (sql: row.text(0), table: SQLName(row.text(1)), isOnView: row.integer(2) != 0)
        }.filter { !$0.sql.contains("tidemark_applying") }
        var written: Set<SQLName> = []
        var waiting = triggers
        while let next = waiting.firstIndex(where: { !$0.isOnView || written.contains($0.table) }) {
            written.formUnion(SQLWords(waiting.remove(at: next).sql).writtenTables)
        }
        return written
    }
}
