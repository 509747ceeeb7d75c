import GRDB

/// The numbers of marks: records are sealed in the order in which they were marked.
enum Marks {
    /// Milliseconds since 1970, as SQL: the time of the connection, which triggers see too.
    static let nowSQL = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
    /// How far the marks are numbered, as SQL.
    static let counterSQL = "(SELECT n FROM tidemark_counter)"
    /// The latest stamp that this device has given or heard of, as SQL.
    static let clockSQL = "(SELECT clock FROM tidemark_counter)"

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
        try announce(db)
        return try counter(db)
    }

    /// The latest stamp that this device has given or heard of.
    static func clock(_ db: Database) throws -> Int64 {
        try Query(db, "SELECT clock FROM tidemark_counter").first(db) { $0.integer(0) } ?? 0
    }

    /// Sets the clock to a stamp, so that later edits get later ones.
    static func setClock(_ db: Database, _ stamp: Int64) throws {
        try Query(db, "UPDATE tidemark_counter SET clock = ?1").execute([.integer(stamp)])
    }
}
