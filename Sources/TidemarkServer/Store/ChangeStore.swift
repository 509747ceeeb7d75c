public import TidemarkWire

/// Where a server keeps its log: the seam between the engine and a database.
///
/// A store gives transactions and rows; every rule is the engine's. All implementations behave alike, so the seam is
/// small and each of its promises is tested by one suite for all stores.
///
/// Its functions are called from any task, several at once. Bodies run on a thread of the store's choice, which they
/// hold up while they run; the calls throw what the body throws, ``StoreUnavailable`` for what passes by itself, and an
/// error of the store's own for the rest.
public protocol ChangeStore: HistoryStore, RejectionStore, FleetStore, WatchedStore {
    /// A random key that was made with the store and lives in it; it marks checkpoints as this store's.
    var tokenKey: [UInt8] { get }

    /// Runs `body` on a consistent view of one scope, on a thread of the store's choice. Other scopes and writers are
    /// not held up. A body may run again, where the store was lost meanwhile. Readers that wait take turns by
    /// `caller`: whom the read is for, and empty for the server itself.
    ///
    /// - Throws: what the body throws; ``StoreUnavailable`` for what passes by itself, and where too many calls wait
    ///   already; `CancellationError` in a cancelled task; an error of the store's own for the rest.
    func read<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeReader) throws -> Result
    ) async throws -> Result

    /// Runs `body` as the only writer of one scope, on a thread of the store's choice, and returns when all that it
    /// wrote is durable.
    ///
    /// Bodies that arrive together may share one commit; an error thrown by one undoes that one alone. A body may run
    /// more than once, as long as nothing of its former run is there: it has no effect but through its writer. Those
    /// who wait take turns, by `caller`; one whose task was cancelled before its turn is not run.
    ///
    /// - Throws: what the body throws; ``StoreUnavailable`` for what passes by itself, and where too many calls wait
    ///   already; `CancellationError` in a cancelled task; an error of the store's own for the rest.
    func write<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result
}

extension ChangeStore {
    /// Reads for the server itself. The body runs on a thread of the store's choice.
    ///
    /// - Throws: as the store's ``read(_:for:_:)``.
    public func read<Result: Sendable>(
        _ scope: Scope, _ body: @escaping @Sendable (any ScopeReader) throws -> Result
    ) async throws -> Result { try await read(scope, for: "", body) }

    /// Writes for the server itself. The body runs on a thread of the store's choice.
    ///
    /// - Throws: as the store's ``write(_:for:_:)``.
    public func write<Result: Sendable>(
        _ scope: Scope, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result { try await write(scope, for: "", body) }
}

/// Thrown by a store that cannot do its work for a while: its disk is full or does not answer, or somebody else has
/// locked it for too long. It may be asked for again, and nothing of it is done but where ``mayBeDone`` says so.
public struct StoreUnavailable: Error, Hashable, Sendable, CustomStringConvertible {
    /// The store's own message, for the operator's log.
    public var description: String
    /// Whether the work may be done all the same: the store was lost at the commit, and could not be asked since. A
    /// device that asks again finds its lane's mark; a program has to look what is there.
    public var mayBeDone: Bool

    /// Makes an error with what the store says.
    public init(_ description: String, mayBeDone: Bool = false) {
        self.description = description
        self.mayBeDone = mayBeDone
    }
}
