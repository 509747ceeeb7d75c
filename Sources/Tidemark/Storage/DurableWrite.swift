import GRDB

extension AppFile {
    /// A write transaction that is on the disk when this returns, and all that was committed before it too, however the
    /// app has set up its connections: with a WAL, GRDB's pools leave the last commits to the next checkpoint.
    ///
    /// What leaves the device is written so. An operation whose key were lost with the power would be sealed under
    /// another one, and be made again over what others have done since (I8).
    func durably<Result: Sendable>(_ updates: @escaping @Sendable (Database) throws -> Result) async throws -> Result {
        try await writeWithoutTransaction { db in
            let usual = try Query(db, "PRAGMA synchronous").first(db) { $0.integer(0) } ?? Self.full
            // An app that syncs nothing has decided so.
            guard usual != Self.off else { return try db.committed(updates) }
            // EXTRA: else a journal that is deleted at the commit may be there again, and undo it.
            try db.execute(sql: "PRAGMA synchronous = EXTRA")
            defer { try? db.execute(sql: "PRAGMA synchronous = \(usual)") }
            return try db.committed(updates)
        }
    }

    private static var off: Int64 { 0 }
    private static var full: Int64 { 2 }
}

extension Database {
    fileprivate func committed<Result>(_ updates: (Database) throws -> Result) throws -> Result {
        var result: Result?
        try inTransaction {
            result = try updates(self)
            return .commit
        }
        guard let result else { throw DatabaseError(resultCode: .SQLITE_INTERNAL) }
        return result
    }
}
