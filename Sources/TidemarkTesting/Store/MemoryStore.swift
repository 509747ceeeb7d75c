import Synchronization
public import TidemarkServer

/// A server's log in memory, for tests: the real engine runs on it, and it behaves as a store on disk does in all that
/// can be seen through ``ChangeStore``. What it holds is gone with it, unless a ``Backup`` was taken.
///
/// It has no clock and no randomness of its own: the same calls after the same seed give the same answers, so a test
/// that failed fails again. It may be used from any task. Everything is done at once, on the caller's thread; on the
/// type itself nothing needs an `await`.
///
/// ```swift
/// let server = SyncServer(store: MemoryStore())
/// let transport = InProcessTransport(to: server) { _ in .readWrite(as: "ada") }
/// ```
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
public final class MemoryStore: ChangeStore {
    /// Derived from the seed of the store's first opening, and kept in its backups.
    public let tokenKey: [UInt8]
    private let incarnation: Int64
    private let log: Mutex<MemoryLog>

    /// Makes an empty store.
    ///
    /// - Parameter seed: what its token key and the id of its incarnation are derived from. Stores that are not to take
    ///   each other's tokens need different ones.
    public init(seed: UInt64 = 1) {
        var generator = SplitMix64(seed: seed)
        let seed = StoreSeed(from: &generator)
        (incarnation, tokenKey) = (seed.incarnation, seed.tokenKey)
        log = Mutex(MemoryLog())
    }

    /// Opens a store as it was when a backup was taken: the same token key and history, in a new incarnation, as when a
    /// file is opened again.
    ///
    /// - Parameters:
    ///   - backup: the store as it was.
    ///   - seed: what the id of the new incarnation is derived from. Each opening needs one of its own: by its
    ///     incarnations two stores are told apart that went on from one backup.
    public convenience init(_ backup: Backup, seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var seed = StoreSeed(from: &generator)
        while backup.log.knows(incarnation: seed.incarnation) { seed = StoreSeed(from: &generator) }
        self.init(tokenKey: backup.tokenKey, incarnation: seed.incarnation, log: backup.log)
    }

    private init(tokenKey: [UInt8], incarnation: Int64, log: MemoryLog) {
        self.tokenKey = tokenKey
        self.incarnation = incarnation
        self.log = Mutex(log)
    }

    /// Reads what the store held when the call came, on the caller's thread; others may write meanwhile.
    ///
    /// - Throws: what the body throws.
    public func read<Result: Sendable>(
        _ scope: Scope, for _: String, _ body: @escaping @Sendable (any ScopeReader) throws -> Result
    ) throws -> Result {
        let seen = log.withLock { $0 }
        return try body(MemoryScope(scope, in: seen, incarnation: incarnation))
    }

    /// Writes at once, on the caller's thread; other calls wait.
    ///
    /// - Throws: what the body throws; nothing of it is done then.
    public func write<Result: Sendable>(
        _ scope: Scope, for _: String, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) throws -> Result {
        try change { log in
            // Moved into the writer and back: a second reference would copy what is written to.
            let writer = MemoryScope(scope, in: log, incarnation: incarnation)
            log = MemoryLog()
            defer { log = writer.log }
            let result = try writer.attempt { try body(writer) }
            writer.finish()
            return result
        }
    }

    func look<Result: Sendable>(_ body: (MemoryLog) throws -> Result) rethrows -> Result {
        try body(log.withLock { $0 })
    }

    func change<Result: Sendable>(_ body: (inout MemoryLog) throws -> Result) rethrows -> Result {
        try log.withLock { try body(&$0) }
    }
}
