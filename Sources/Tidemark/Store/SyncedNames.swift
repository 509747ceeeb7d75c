package import GRDB
package import TidemarkWire

/// The names of what a file syncs, for a tool that opens a file and does not know its app. A file that was never
/// synced has none.
package enum SyncedNames {
    /// The synced tables in the file, by name: those that it remembers, whether their triggers stand or a rebuild took
    /// them away, and those whose triggers came with them to a new name.
    ///
    /// - Throws: GRDB's `DatabaseError` where the file cannot be read.
    package static func tables(_ db: Database) throws -> [String] {
        let (known, present) = (try TableRules.names(db), try listed(db))
        let captured = try Query(
            db, "SELECT tbl_name FROM main.sqlite_master WHERE type = 'trigger' AND name GLOB 'tidemark_*'"
        ).rows(db) { $0.text(0) }
        return Set(captured).union(present.intersection(known)).sorted()
    }

    /// The tables that were synced once and are in the file no more, by name.
    ///
    /// - Throws: GRDB's `DatabaseError` where the file cannot be read.
    package static func missingTables(_ db: Database) throws -> [String] {
        try Set(TableRules.names(db)).subtracting(listed(db)).sorted()
    }

    /// As the file spells them: a table whose name has changed in its case is known by the new one from the next sync
    /// on.
    private static func listed(_ db: Database) throws -> Set<String> {
        Set(try Query(db, "SELECT name FROM main.sqlite_master WHERE type = 'table'").rows(db) { $0.text(0) })
    }

    /// The scopes that the file has synced, by name, without their sub-scopes.
    ///
    /// - Throws: GRDB's `DatabaseError` where the file cannot be read.
    package static func scopes(_ db: Database) throws -> [Scope] {
        guard try LibrarySchema.isInstalled(db) else { return [] }
        return Set(try ScopeRecord.all(db).map(\.parent)).sorted { $0.name < $1.name }
    }
}
