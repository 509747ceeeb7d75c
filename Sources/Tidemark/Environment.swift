package import GRDB
package import TidemarkCore

/// What an engine asks of the world around it: the time, chance, waiting, and its turn at the app's file.
///
/// Nothing else in the client reads a clock, draws a random number or sleeps. A simulation puts a world of its own in
/// place for the tasks that it starts, and the same code runs from one seed.
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
    func use<Result: Sendable>(
        _ writer: any DatabaseWriter, _ access: FileAccess, _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result
    /// Calls `notify` after each commit of edits to the app's file, until what it returns is cancelled or gone.
    func watchEdits(
        of writer: any DatabaseWriter, _ notify: @escaping @Sendable () -> Void
    ) -> AnyDatabaseCancellable
}

extension DatabaseWriter {
    /// Every edit is counted, by the trigger that captures it; what the library applies is not.
    package func onEdits(_ notify: @escaping @Sendable () -> Void) -> AnyDatabaseCancellable {
        DatabaseRegionObservation(tracking: Table("tidemark_counter").select(Column("n")))
            .start(in: self, onError: { _ in }, onChange: { _ in notify() })
    }
}

/// How the app's file is used, as GRDB tells them apart.
package enum FileAccess: Hashable, Sendable {
    case read
    /// In one transaction.
    case write
    /// The body begins and ends its own transactions.
    case writeWithoutTransaction
}

/// The world that the present task runs in.
package enum Surroundings {
    /// The device itself, unless a simulation has put another one in place.
    @TaskLocal package static var current: any Environment = Platform()
}

/// The app's own database, as the engine reaches it.
struct AppFile: Sendable {
    let writer: any DatabaseWriter

    func read<Result: Sendable>(_ body: @escaping @Sendable (Database) throws -> Result) async throws -> Result {
        try await Surroundings.current.use(writer, .read, body)
    }

    func write<Result: Sendable>(_ body: @escaping @Sendable (Database) throws -> Result) async throws -> Result {
        try await Surroundings.current.use(writer, .write, body)
    }

    func writeWithoutTransaction<Result: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        try await Surroundings.current.use(writer, .writeWithoutTransaction, body)
    }
}

extension Database {
    /// Reads in one transaction. GRDB's own `read` also forbids writing meanwhile, by a pragma that makes SQLite
    /// prepare every statement of the connection anew (on a `DatabaseQueue`: the app's, and those of the exchange).
    package func consistently<Result>(_ body: (Database) throws -> Result) throws -> Result {
        // GRDB prepares its own anew for each transaction, which for a short reading is most of it.
        try cachedStatement(sql: "BEGIN DEFERRED TRANSACTION").execute()
        do {
            let result = try body(self)
            try cachedStatement(sql: "COMMIT TRANSACTION").execute()
            return result
        } catch {
            try? rollback()
            throw error
        }
    }
}

/// Milliseconds since 1970, for people to read; no rule depends on it.
func wallClockMilliseconds() -> Int64 { Surroundings.current.wallClock }

/// Random digits for the names of this file, of lanes and of groups.
func randomHex(bytes count: Int) -> String {
    let surroundings = Surroundings.current
    var text = ""
    for _ in 0..<count {
        let byte = UInt8(truncatingIfNeeded: surroundings.random() >> 56)
        text += String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
    }
    return text
}
