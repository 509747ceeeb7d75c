import GRDB
import TidemarkWire

extension TableShape {
    /// Reads a table's shape and refuses what cannot be synced, saying what to change.
    init(_ db: Database, table: String, rule: SyncedTable.ScopeRule) throws {
        try Self.checkName(db, table)
        let columns = try Self.columns(db, table)
        let keyPairs = columns.filter { $0.keyPosition > 0 }.sorted { $0.keyPosition < $1.keyPosition }
        guard !keyPairs.isEmpty else {
            throw SyncError(
                .tableUnsupported, "Table '\(table)' has no primary key.",
                hint: "Declare a PRIMARY KEY: without one, two devices cannot name the same row.")
        }
        for column in columns {
            let lowered = column.column.name.lowercased()
            guard !lowered.hasPrefix("tidemark_"), !lowered.hasPrefix("$") else {
                throw SyncError(
                    .tableUnsupported, "Column '\(column.column.name)' of table '\(table)' has a reserved name.",
                    hint: "Rename it: names that begin with 'tidemark_' or '$' are taken.")
            }
        }
        self.init(
            name: table, rule: rule, key: keyPairs.map(\.column),
            data: columns.filter { $0.keyPosition == 0 }.map(\.column), uniques: [], children: [], warnings: [])
        let isRowID = keyPairs.count == 1 && keyPairs[0].isRowID
        mayLackKey = !isRowID && keyPairs.contains { !$0.isRequired }
        try checkRule()
        try readUniques(db)
        children = try Self.references(db, to: name)
        statements = RecordStatements(of: self)
    }

    private static func checkName(_ db: Database, _ table: String) throws {
        guard Identifier.isEntity(table), !table.lowercased().hasPrefix("tidemark_") else {
            throw SyncError(
                .tableUnsupported, "'\(table)' is not a table name that can be synced.",
                hint: "Use letters, digits and '_', at most 63, not beginning with a digit or 'tidemark_'.")
        }
        let found = try Query(
            db, "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE"
        ).first(db, [.text(table)]) { ($0.text(0), $0.text(1)) }
        guard let (name, sql) = found else {
            throw SyncError(
                .tableUnsupported, "There is no table '\(table)'.", hint: "Run the app's migrations before syncing.")
        }
        guard name == table else {
            throw SyncError(
                .tableUnsupported, "Table '\(table)' is spelled '\(name)' in the file.",
                hint: "Use the same spelling: it is the entity's name on every device.")
        }
        guard !sql.uppercased().hasPrefix("CREATE VIRTUAL") else {
            throw SyncError(
                .tableUnsupported, "Table '\(table)' is a virtual table.",
                hint: "Sync the ordinary table behind it and let a trigger keep the virtual one.")
        }
    }

    private typealias ColumnInfo = (column: Column, keyPosition: Int64, isRequired: Bool, isRowID: Bool)

    private static func columns(_ db: Database, _ table: String) throws -> [ColumnInfo] {
        let rows = try Query(db, "PRAGMA table_xinfo(\(quoted(table)))").rows(db) { row in
            (
                name: row.text(1), type: row.text(2), isRequired: row.integer(3) != 0, fallback: row.optionalText(4),
                key: row.integer(5), hidden: row.integer(6)
            )
        }
        // Generated columns (hidden 2 and 3) are computed on each device again.
        return rows.filter { $0.hidden == 0 }.map { row in
            let column = Column(
                name: row.name, affinity: Affinity(declaredType: row.type),
                defaultCell: row.fallback.flatMap { Self.evaluate(db, $0, Affinity(declaredType: row.type)) } ?? .null,
                returnsToDefault: row.fallback.map(Self.isConstant) ?? !row.isRequired,
                wireName: DataObject.Builder.quoted(row.name))
            return (column, row.key, row.isRequired, row.type.uppercased() == "INTEGER")
        }
    }

    /// A column's default as a row that is made now would hold it: `REAL DEFAULT 0` holds 0.0. One that SQLite does not
    /// work out counts as NULL.
    private static func evaluate(_ db: Database, _ expression: String, _ affinity: Affinity) -> Cell? {
        // The pragma leaves out the parentheses that an expression needs, and a text in double quotes cannot have.
        for fallback in ["(\(expression))", expression] {
            do {
                try db.execute(
                    sql: "CREATE TEMP TABLE tidemark_default(value \(affinity.declaredType) DEFAULT \(fallback))")
            } catch { continue }
            defer { try? db.execute(sql: "DROP TABLE temp.tidemark_default") }
            try? db.execute(sql: "INSERT INTO temp.tidemark_default DEFAULT VALUES")
            return try? Query(db, "SELECT value FROM temp.tidemark_default").first(db) { $0.cell(0) }
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
        uniques = [UniqueIndex(name: "key", parts: key.map { .init(column: $0.name, collation: "BINARY") })]
        let indexes = try Query(db, "PRAGMA index_list(\(sql))").rows(db) { row in
            (name: row.text(1), isUnique: row.integer(2) == 1, origin: row.text(3))
        }
        for index in indexes where index.isUnique {
            let parts = try Query(db, "PRAGMA index_xinfo(\(quoted(index.name)))").rows(db) { row in
                (column: row.optionalText(2), collation: row.text(4), isKey: row.integer(5) == 1)
            }.filter(\.isKey)
            if index.origin == "pk" {
                // Ids are compared byte by byte on the wire: 'A' and 'a' are two records there.
                guard parts.allSatisfy({ $0.collation.uppercased() == "BINARY" }) else {
                    throw SyncError(
                        .tableUnsupported, "The primary key of '\(name)' has a collation other than BINARY.",
                        hint: "Give the key no COLLATE clause: ids are compared byte by byte on the wire.")
                }
                continue
            }
            let watched = parts.compactMap { part in
                part.column.map { UniqueIndex.Part(column: $0, collation: part.collation) }
            }
            let stored = watched.filter { part in columns.contains { $0.name == part.column } }
            hasHiddenUniques = hasHiddenUniques || stored.isEmpty
            // Without an expression's part the trigger marks a few rows too many, which costs nothing.
            if watched.isEmpty {
                warnings.append(
                    "Unique index '\(index.name)' of '\(name)' has only expressions: "
                        + "a REPLACE that evicts by it is not seen.")
            } else {
                uniques.append(UniqueIndex(name: index.name, parts: watched))
            }
        }
    }

    /// The foreign keys of any table in the file that refer to this one.
    static func references(_ db: Database, to parent: String) throws -> [Child] {
        let tables = try Query(
            db,
            """
            SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'tidemark\\_%' ESCAPE '\\'
            AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name
            """
        ).rows(db) { $0.text(0) }
        let key = try Query(db, "PRAGMA table_info(\(quoted(parent)))").rows(db) { ($0.text(1), $0.integer(5)) }
            .filter { $0.1 > 0 }.sorted { $0.1 < $1.1 }.map(\.0)
        var children: [Child] = []
        for table in tables {
            var byID: [Int64: Child] = [:]
            let parts = try Query(db, "PRAGMA foreign_key_list(\(quoted(table)))").rows(db) { row in
                (id: row.integer(0), parent: row.text(2), from: row.text(3), to: row.text(4), onDelete: row.text(6))
            }
            for part in parts where part.parent.lowercased() == parent.lowercased() {
                var child =
                    byID[part.id] ?? Child(table: table, columns: [], parentColumns: [], onDelete: part.onDelete)
                // A reference without column names means the parent's key.
                let implied = key.indices.contains(child.columns.count) ? key[child.columns.count] : ""
                child.columns.append(part.from)
                child.parentColumns.append(part.to.isEmpty ? implied : part.to)
                byID[part.id] = child
            }
            children += byID.sorted { $0.key < $1.key }.map(\.value)
        }
        return children
    }

    /// An app trigger that writes to a synced table while the server's changes are applied makes edits of its own on
    /// every device; it should ask for the flag row first. Triggers that keep a search index are left in peace.
    mutating func warnAboutTriggers(_ db: Database, synced: Set<String>) throws {
        let triggers = try Query(db, "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?1")
            .rows(db, [.text(name)]) { ($0.text(0), $0.text(1)) }
        for (trigger, sql) in triggers where !trigger.hasPrefix("tidemark_") && !sql.contains("tidemark_applying") {
            guard !Self.writtenTables(sql).isDisjoint(with: synced.map { $0.lowercased() }) else { continue }
            warnings.append(
                "Trigger '\(trigger)' on '\(name)' also runs for changes that come from the server, and writes to a "
                    + "synced table: add WHEN NOT EXISTS (SELECT 1 FROM tidemark_applying).")
        }
    }

    /// The tables that the app's triggers write to while changes are applied, in lower case.
    static func tablesWrittenByTriggers(_ db: Database) throws -> Set<String> {
        let triggers = try Query(
            db, "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name NOT LIKE 'tidemark\\_%' ESCAPE '\\'"
        ).rows(db) { $0.text(0) }
        return triggers.filter { !$0.contains("tidemark_applying") }.reduce(into: []) {
            $0.formUnion(writtenTables($1))
        }
    }

    /// The words that stand where a statement names the table it writes to.
    private static func writtenTables(_ sql: String) -> Set<String> {
        let words = sql.lowercased().split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init)
        var tables: Set<String> = []
        for (index, word) in words.enumerated() {
            let next = index + 1 < words.count ? words[index + 1] : ""
            switch word {
            case "into": tables.insert(next)
            case "from" where index > 0 && words[index - 1] == "delete": tables.insert(next)
            case "update" where next == "or": tables.insert(index + 3 < words.count ? words[index + 3] : "")
            case "update" where next != "of" && next != "on": tables.insert(next)
            default: continue
            }
        }
        return tables
    }
}
