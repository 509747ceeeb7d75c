import GRDB

/// An ordinary GRDB record; the library asks nothing of it but a primary key.
struct Note: Codable, Hashable, Identifiable, Sendable, FetchableRecord, PersistableRecord {
    var id: String
    var title: String

    static let migrator: DatabaseMigrator = {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in
            try db.create(table: "note") { table in
                table.primaryKey("id", .text)
                table.column("title", .text).notNull()
            }
        }
        return migrator
    }()
}
