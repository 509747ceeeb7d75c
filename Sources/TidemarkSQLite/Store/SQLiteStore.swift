import Foundation
package import GRDB
public import TidemarkServer

/// A server's log in one SQLite file: WAL, one writer, durable before the answer, many readers.
///
/// Writes that arrive while a commit is under way share the next one, so a busy server makes few syncs to disk. A
/// store may be used from any task; ``close()`` blocks the thread that calls it.
///
/// ```swift
/// let store = try SQLiteStore(path: "sync.sqlite")
/// let server = SyncServer(store: store)
/// ```
public final class SQLiteStore: ChangeStore {
    /// Made with the file and kept in it.
    public let tokenKey: [UInt8]
    let pool: DatabasePool
    let files: BlobFiles
    private let commits: CommitQueue
    /// Turns at the readers (I14).
    private let readers = FairGate(
        capacity: SQLiteStore.readerCount, share: SQLiteStore.readerCount - 1, waitingLimit: SQLiteStore.waitingReads)

    private static let readerCount = 4
    /// Reads that may wait; those beyond are refused for now.
    private static let waitingReads = 10_000

    /// Opens a store, making the file where there is none, and begins a new incarnation (Protocol.md).
    ///
    /// - Throws: GRDB's `DatabaseError` where the file cannot be opened, or is not a Tidemark store; an error that says
    ///   so where a newer version has written it. The file stays as it was then.
    public convenience init(path: String) throws { try self.init(path: path) { _ in } }

    /// - Parameters:
    ///   - seed: what marks this opening, and the file where it is made now.
    ///   - prepare: what is set on each connection besides.
    package init(
        path: String, seed: StoreSeed = StoreSeed(), prepare: @escaping @Sendable (Database) throws -> Void
    ) throws {
        var configuration = Configuration()
        configuration.busyMode = .timeout(10)
        configuration.foreignKeysEnabled = false
        configuration.maximumReaderCount = Self.readerCount
        configuration.prepareDatabase { db in
            // Fewer, larger checkpoints of the WAL: half the time goes there at the default of 4 MB.
            try db.execute(sql: "PRAGMA wal_autocheckpoint = 16384")
            try db.execute(sql: "PRAGMA secure_delete = OFF")
            // In KiB, of each connection: five of them together stay well below what a small machine has.
            try db.execute(sql: "PRAGMA cache_size = -24576")
            try prepare(db)
        }
        pool = try DatabasePool(path: path, configuration: configuration)
        files = BlobFiles(database: path)
        // An acknowledged write survives a power cut (I1): every commit reaches the disk before its answer. Not above,
        // where connections are prepared: with its WAL the pool sets NORMAL on its writer, and that comes later.
        try pool.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA synchronous = FULL") }
        tokenKey = try Schema.prepare(pool, newKey: seed.tokenKey)
        commits = CommitQueue(pool: pool, incarnation: seed.incarnation)
    }

    private let isClosed = Guarded(false)

    /// How many reads wait for their turn at a reader, and how many writes for theirs at the writer.
    package var waiting: (reads: Int, writes: Int) { (readers.waitingCount, commits.waitingCount) }

    /// Ends all work and closes the file, its WAL folded in; does nothing the second time.
    ///
    /// - Throws: GRDB's `DatabaseError` where the WAL cannot be folded in: another process reads for longer than 10
    ///   seconds, or the disk fails.
    public func close() throws {
        // The last connection to close is a reader, which cannot fold the WAL in; so the writer does it first, and the
        // one file is the whole store.
        try end { try pool.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) } }
    }

    /// Ends all work as ``close()`` does, and leaves the WAL as it is: whoever writes to the file in another process
    /// would wait for as long as it is folded in.
    ///
    /// - Throws: GRDB's `DatabaseError` where the disk fails.
    package func leave() throws { try end {} }

    private func end(_ prepare: () throws -> Void) throws {
        let wasClosed = isClosed.withLock { isClosed in
            defer { isClosed = true }
            return isClosed
        }
        guard !wasClosed else { return }
        try prepare()
        try pool.close()
    }

    /// Reads in one snapshot of the database. The body runs on a reader's queue.
    ///
    /// - Throws: what the body throws; `StoreUnavailable` where the disk or another process stands in the way for now,
    ///   or too many calls wait already; GRDB's `DatabaseError` for anything else.
    public func read<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeReader) throws -> Result
    ) async throws -> Result {
        try await Unavailability.told {
            try await readers.pass(for: caller, in: scope) {
                try await pool.read { db in try body(try SQLiteScope(db, scope)) }
            }
        }
    }

    /// Queues a write; it returns after the commit that holds it is on disk. The body runs on the writer's queue.
    ///
    /// - Throws: what the body throws; `StoreUnavailable` where the disk or another process stands in the way for now,
    ///   or too many calls wait already; GRDB's `DatabaseError` for anything else.
    public func write<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result {
        try await Unavailability.told { try await commits.run(scope, for: caller, body) }
    }

    /// Writes in a transaction of its own.
    func writing<Result: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        try await Unavailability.told { try await pool.write(body) }
    }

    /// Reads in one snapshot, ahead of nobody's turn.
    func reading<Result: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        try await Unavailability.told { try await pool.read(body) }
    }

    /// Removes superseded rows in one bounded transaction.
    ///
    /// - Throws: `StoreUnavailable` where the disk or another process stands in the way for now; GRDB's `DatabaseError`
    ///   for anything else.
    public func sweep(supersededBefore moment: Int64, limit: Int) async throws -> Int {
        try await Unavailability.told {
            try await pool.write { db in try Sweep.run(db, supersededBefore: moment, limit: limit) }
        }
    }

    /// Writes the file anew without what was removed, and empties the WAL. Readers go on, writers wait; it takes as
    /// much room again as the file has.
    ///
    /// - Throws: `StoreUnavailable` where the disk is full, or another process reads or writes for too long; GRDB's
    ///   `DatabaseError` for anything else.
    public func purge() async throws {
        try await Unavailability.told {
            try await pool.writeWithoutTransaction { db in
                try db.execute(sql: "VACUUM")
                // A reader of another process may stand in the WAL: then this waits for as long as for any lock.
                _ = try db.checkpoint(.truncate)
            }
        }
    }

    /// Counts the devices that are asked for, and reads the rows of one page.
    ///
    /// - Throws: `StoreUnavailable` where the disk or another process stands in the way for now; GRDB's `DatabaseError`
    ///   for anything else.
    public func devices(_ query: FleetQuery) async throws -> FleetPage {
        try await Unavailability.told { try await pool.read { db in try DeviceReports.page(db, query) } }
    }

    /// Reads names along their index.
    ///
    /// - Throws: `StoreUnavailable` where the disk or another process stands in the way for now; GRDB's `DatabaseError`
    ///   for anything else.
    public func scopes(after scope: Scope?, limit: Int) async throws -> [Scope] {
        try await Unavailability.told {
            try await pool.read { db in
                try String.fetchAll(
                    db, sql: "SELECT name FROM scope WHERE name > ? ORDER BY name LIMIT ?",
                    arguments: [scope?.name ?? "", limit]
                ).compactMap { Scope($0) }
            }
        }
    }

    /// Reads the time that was kept, in milliseconds since 1970.
    ///
    /// - Throws: `StoreUnavailable` where the disk or another process stands in the way for now; GRDB's `DatabaseError`
    ///   for anything else.
    public func ageClock() async throws -> Int64? {
        try await Unavailability.told {
            try await pool.read { db in try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE key = 'age_clock'") }
        }
    }

    /// Keeps the time, in milliseconds since 1970, with the store, so that every server on it ages history alike.
    ///
    /// - Throws: `StoreUnavailable` where the disk or another process stands in the way for now; GRDB's `DatabaseError`
    ///   for anything else.
    public func setAgeClock(_ moment: Int64) async throws {
        try await Unavailability.told {
            try await pool.write { db in
                try db.execute(sql: "INSERT OR REPLACE INTO meta VALUES ('age_clock', ?)", arguments: [moment])
            }
        }
    }

    /// Reads the bounded list.
    ///
    /// - Throws: `StoreUnavailable` where the disk or another process stands in the way for now; GRDB's `DatabaseError`
    ///   for anything else.
    public func rejections(in scope: Scope?, id: Int64?, limit: Int) async throws -> [StoredRejection] {
        try await Unavailability.told {
            try await pool.read { db in try Rejections.newest(db, in: scope, id: id, limit: limit) }
        }
    }

    /// Removes one row of the bounded list.
    ///
    /// - Throws: `StoreUnavailable` where the disk or another process stands in the way for now; GRDB's `DatabaseError`
    ///   for anything else.
    public func discardRejection(_ id: Int64) async throws -> Bool {
        try await Unavailability.told { try await pool.write { db in try Rejections.discard(db, id) } }
    }
}

/// Tells what passes by itself, or once the operator has made room, from what is broken.
enum Unavailability {
    static func told<Result>(_ work: () async throws -> Result) async throws -> Result {
        do { return try await work() } catch let error as DatabaseError where error.mayPass {
            // The statement is left out: the description is for a log, and the statement may hold row data.
            throw StoreUnavailable("SQLite error \(error.extendedResultCode.rawValue): \(error.message ?? "unknown")")
        }
    }
}

extension DatabaseError {
    fileprivate var mayPass: Bool {
        switch resultCode {
        case .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_BUSY, .SQLITE_CANTOPEN: true
        default: false
        }
    }
}
