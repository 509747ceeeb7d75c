import GRDB
import TidemarkWire

/// The rule by which each table's rows were last spread over scopes. It stays in the file, so that another rule in the
/// next version of the app is noticed (T27), and a table that the app no longer names is still known.
enum TableRules {
    static func all(_ db: Database) throws -> [String: SyncedTable.ScopeRule] {
        guard try FileTable.isListed("tidemark_table", db) else { return [:] }
        let rules = try Query(db, "SELECT name, rule FROM tidemark_table").rows(db) { row in
            SyncedTable.ScopeRule(row.text(1)).map { (row.text(0), $0) }
        }
        return Dictionary(rules.compactMap { $0 }, uniquingKeysWith: { $1 })
    }

    /// The tables that the file remembers, whether they are still in it.
    static func names(_ db: Database) throws -> [String] {
        guard try FileTable.isListed("tidemark_table", db) else { return [] }
        return try Query(db, "SELECT name FROM tidemark_table").rows(db) { $0.text(0) }
    }

    static func write(_ db: Database, _ table: String, _ rule: SyncedTable.ScopeRule) throws {
        try respell(db, table)
        try Query(
            db, "INSERT INTO tidemark_table(name, rule) VALUES (?1, ?2) ON CONFLICT(name) DO UPDATE SET rule = ?2"
        ).execute([.text(table), .text(rule.description)])
    }

    /// A synced table's name as this file spells it; `nil` where it has no such table.
    static func spelling(_ db: Database, of name: String) throws -> String? {
        try Query(db, "SELECT name FROM tidemark_table WHERE name = ?1 COLLATE NOCASE")
            .first(db, [.text(name)]) { $0.text(0) }
    }

    /// Forgets a table that is not synced any more.
    static func remove(_ db: Database, _ table: String) throws {
        try Query(db, "DELETE FROM tidemark_table WHERE name = ?1").execute([.text(table)])
    }

    /// A table whose name has changed in its case is the same one: what is noted of it goes by the new spelling.
    static func respell(_ db: Database, _ table: String) throws {
        let former = try Query(db, "SELECT name FROM tidemark_table WHERE name = ?1 COLLATE NOCASE AND name <> ?1")
            .rows(db, [.text(table)]) { $0.text(0) }
        // Blocks hold the names of tables too.
        if !former.isEmpty { try OutboxHistory.restoreAll(db) }
        for name in former {
            for place in LibraryTable.all where place.columns.contains(.entity) {
                try place.respell(db, entity: name, as: table)
            }
            try Query(db, "UPDATE OR REPLACE tidemark_table SET name = ?2 WHERE name = ?1")
                .execute([.text(name), .text(table)])
        }
    }
}
