package import Foundation
package import GRDB
package import TidemarkCore

/// The world around an engine: the time, chance, waiting, and its turn at the app's file.
///
/// Nothing else in the client sleeps, draws a random number or reads a clock, with three exceptions: the capture
/// triggers ask SQLite for the time, a process draws its own name (``EngineName``), and the age of a scope is reckoned
/// from the system's clock where the app names no moment (``SyncStatus/ScopeStatus/age(at:)``). A simulation puts a
/// world of its own in place for the tasks that it starts, and the same code runs from one seed.
package protocol Environment: Sendable {
    /// Milliseconds since 1970; no rule of ordering depends on it.
    var wallClock: Int64 { get }
    /// Milliseconds since some moment, never set back.
    var uptime: Instant { get }
    /// Random bits.
    func random() -> UInt64
    /// The bytes of the next UUID of version 7, above all that were made before it here.
    func nextUUID() -> [UInt8]
    /// Waits at least as long.
    func sleep(for duration: Duration) async throws
    /// Runs `body` on the app's file, off the caller's thread or on it.
    ///
    /// - Parameter point: what is written; `nil` for what only reads.
    func use<Result: Sendable>(
        _ writer: any DatabaseWriter, _ access: FileAccess, at point: WritePoint?,
        _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result
    /// Calls `notify` after each commit of edits to the app's file, until what it returns is cancelled or gone.
    func watchEdits(
        of writer: any DatabaseWriter, _ notify: @escaping @Sendable () -> Void
    ) -> AnyDatabaseCancellable
    /// Does a work to its end, also where the caller's task is cancelled.
    func uncancelled<Result: Sendable>(_ work: @escaping @Sendable () async throws -> Result) async throws -> Result
    /// A name for an engine that begins to run, which no other engine has.
    func engineName() -> String
    /// Notes that an engine runs no more, whether its name could be taken out of the file or not.
    func noteEnd(of engine: String)
    /// Whether an engine of that name may still be there; `false` only where it or its process is known to have ended.
    ///
    /// - Parameter isFirst: whether the engine that asks has found no other engine's name in the file yet.
    func mayBeThere(_ engine: String, isFirst: Bool) -> Bool
    /// Begins a work that outlives the task that asked for it.
    func begin(_ work: @escaping @Sendable () async -> Void) -> Task<Void, Never>
    /// Changes a file of an attachment.
    func use<Result>(_ file: URL, for use: FileUse, _ body: () throws -> Result) throws -> Result
    /// Whether files of attachments are brought to the disk: only a simulation loses no power.
    var fsyncsFiles: Bool { get }
    /// Keys of a first capture in one row of the file: a simulation takes few, so that its worlds have several rows.
    var firstCaptureKeys: Int { get }
}

extension Environment {
    package func engineName() -> String { EngineName.next().text }
    package func noteEnd(of engine: String) { EngineName.noteEnd(of: engine) }
    package func mayBeThere(_ engine: String, isFirst: Bool) -> Bool {
        EngineName.own.mayMeet(engine, isFirst: isFirst, hasOneProcess: hasOneProcess)
    }

    package func uncancelled<Result: Sendable>(
        _ work: @escaping @Sendable () async throws -> Result
    ) async throws -> Result { try await Task { try await work() }.value }

    package func begin(_ work: @escaping @Sendable () async -> Void) -> Task<Void, Never> { Task { await work() } }

    package func use<Result>(_: URL, for _: FileUse, _ body: () throws -> Result) throws -> Result { try body() }

    package var fsyncsFiles: Bool { true }
    /// As many as operations go with one request of ``SyncConfiguration/desktop``.
    package var firstCaptureKeys: Int { 1000 }
}

/// The uses of an attachment's file. A device can lose its power, or find its disk full, at each of them.
package enum FileUse: String, Hashable, Sendable, CaseIterable {
    /// Bytes are written to it.
    case fileWrite
    /// It comes to its place.
    case filePlace
    case fileRemove
}

/// How the app's file is used.
package enum FileAccess: Hashable, Sendable {
    /// In one transaction.
    case read
    /// The body begins and ends its own transactions, with `Database.committed`.
    case write
}

/// The library's writes to the app's file. A device can lose its power at each of them: the file then holds all of that
/// write, or nothing of it.
package enum WritePoint: String, Hashable, Sendable, CaseIterable {
    /// The triggers and tables of the library, and the scopes that are held; what has changed in its rules since, and
    /// what the operator declares.
    case install, rules
    /// A group of the app's own writes; what a call of the app's writes, such as a decision about an edit that was
    /// refused or met another.
    case group, decide
    /// Edits become operations, and are about to be sent.
    case seal
    /// An answer with its verdicts and page; a page of a snapshot; records that were asked for by name.
    case apply, page, records
    /// Writes that no trigger saw become edits, once the server's rows are known.
    case inferred
    /// The server goes on from elsewhere: a lane with a gap, a lost history, and what it said of that one.
    case repair, recover, lossProbe
    /// Operations that no server takes; records that are not asked for again; a scan that cannot be continued.
    case refuse, unwanted, restart
    /// The rows of a scope go: access to it was taken away, or the app has left it.
    case loss, leave
    /// Short notes of the engine's own: how often an exchange has failed and when the next is made, the lease, what
    /// came of the operator's remedy, and how attachments stand.
    case attempts
}

extension Database {
    /// Reads in one transaction. GRDB's own `read` also forbids writing meanwhile, by a pragma that makes SQLite
    /// prepare every statement of the connection anew (on a `DatabaseQueue`: the app's, and those of the exchange).
    package func consistently<Result>(_ body: (Database) throws -> Result) throws -> Result {
        // GRDB prepares its own anew for each transaction, which for a short reading is most of it.
        do {
            try cachedStatement(sql: "BEGIN DEFERRED TRANSACTION").execute()
            let result = try body(self)
            try cachedStatement(sql: "COMMIT TRANSACTION").execute()
            return result
        } catch {
            leaveTransaction()
            throw error
        }
    }

    /// Undoes a transaction that has failed. Some errors have undone it already; an interruption may hit the rollback
    /// itself, and a transaction that is left open would end the app.
    package func leaveTransaction() {
        for _ in 0..<Self.rollbackLimit where isInsideTransaction { try? rollback() }
    }

    private static var rollbackLimit: Int { 10 }
}
