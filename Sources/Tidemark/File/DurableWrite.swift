import GRDB
import GRDBSQLite

extension AppFile {
    /// A write transaction that is on the disk when this returns, and all that was committed before it too, however the
    /// app has set up its connections: with a WAL, GRDB's pools leave the last commits to the next checkpoint.
    ///
    /// Everything that leaves the device is written so. An operation whose key were lost with the power would be sealed
    /// under another one, and be made again over what others have done since (I8).
    func durably<Result: Sendable>(
        at point: WritePoint, _ updates: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        try await writeWithoutTransaction(at: point) { db in
            let usual = try Query(db, "PRAGMA synchronous").first(db) { $0.integer(0) } ?? Self.full
            // An app whose connections never wait for the disk (`synchronous = OFF`) has decided against durability.
            guard usual != Self.off else { return try db.committed(updates) }
            // GRDB refuses statements of a suspended database and of a cancelled task, some after they have taken
            // effect; and the app's own commits must not wait for the disk ever after.
            defer { sqlite3_exec(db.sqliteConnection, "PRAGMA synchronous = \(usual)", nil, nil, nil) }
            // EXTRA: else a journal that is deleted at the commit may be there again, and undo it.
            try db.execute(sql: "PRAGMA synchronous = EXTRA")
            return try db.committed(updates)
        }
    }

    private static var off: Int64 { 0 }
    private static var full: Int64 { 2 }
}

extension Database {
    /// By it an error is known to be the commit's.
    static let commitSQL = "COMMIT TRANSACTION"

    /// All or nothing, as GRDB's `inTransaction(.immediate)`; beginning and end are compiled once for a connection, and
    /// not for each transaction.
    func committed<Result>(_ updates: (Database) throws -> Result) throws -> Result {
        try UndoneStatements.replaying { try committedOnce(updates) }
    }

    private func committedOnce<Result>(_ updates: (Database) throws -> Result) throws -> Result {
        do {
            try cachedStatement(sql: "BEGIN IMMEDIATE TRANSACTION").execute()
            let result = try updates(self)
            try cachedStatement(sql: Self.commitSQL).execute()
            return result
        } catch {
            leaveTransaction()
            throw error
        }
    }
}
