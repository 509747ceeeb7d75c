import GRDB

/// The ids that others are being put in the place of, as the values of a key's only column. The table has rows only
/// inside the transaction that does so.
enum RenamedIDs {
    /// SQL for whether a value is an id that is replaced.
    static func isOldSQL(_ value: String) -> String { "\(value) IN (SELECT old FROM tidemark_renaming)" }

    /// SQL for what replaces a value.
    static func newSQL(_ value: String) -> String { "(SELECT new FROM tidemark_renaming WHERE old = +\(value))" }

    static func note(_ db: Database, _ old: [Cell], _ new: [Cell]) throws {
        try Query(db, "INSERT OR REPLACE INTO tidemark_renaming(old, new) VALUES (?1, ?2)").execute(old + new)
    }

    static func successor(_ db: Database, of key: [Cell]) throws -> Cell? {
        try Query(db, "SELECT new FROM tidemark_renaming WHERE old = ?1").first(db, key) { $0.cell(0) }
    }

    static func clear(_ db: Database) throws { try Query(db, "DELETE FROM tidemark_renaming").execute() }
}
