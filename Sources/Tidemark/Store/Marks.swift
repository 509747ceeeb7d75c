import GRDB

/// The numbers of marks: records are sealed in the order in which they were marked.
package enum Marks {
    /// Milliseconds since 1970, as SQL: the time of the connection, which triggers see too.
    static let nowSQL = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"

    /// How far the marks are numbered: one cheap read tells whether anybody wrote.
    static func counter(_ db: Database) throws -> Int64 {
        try Query(db, "SELECT n FROM tidemark_counter").first(db) { $0.integer(0) } ?? 0
    }

    /// Lets other scopes hear that there may be something for them to send.
    static func announce(_ db: Database) throws {
        try Query(db, "UPDATE tidemark_counter SET n = n + 1").execute()
    }

    /// A place among the marks, behind all others.
    static func next(_ db: Database) throws -> Int64 {
        try Query(db, "UPDATE tidemark_counter SET n = n + 1").execute()
        return try counter(db)
    }
}
