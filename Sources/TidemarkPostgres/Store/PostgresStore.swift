public import TidemarkServer

/// A server's log in PostgreSQL, for any number of nodes: none of them keeps anything that another does not see.
///
/// A version is taken while its scope's row is locked, in the transaction that commits it, so the order of versions is
/// the order of commits whatever node they come from. Writes that arrive at one node while a commit of their scope is
/// under way share the next one; scopes are written side by side over several connections. All calls that block run on
/// threads of the store's own. A store may be used from any task; ``close()`` blocks the thread that calls it.
///
/// A node survives restarts of the server: what cannot be done meanwhile is `StoreUnavailable`. After a connection was
/// lost at a commit, the server is asked what became of it.
///
/// ```swift
/// let store = try PostgresStore(url: "postgres://tidemark@db.internal/tidemark?sslmode=verify-full")
/// let server = SyncServer(store: store)
/// ```
public final class PostgresStore: ChangeStore {
    /// Made with the schema and kept in it: the same for all nodes.
    public let tokenKey: [UInt8]
    /// Into how many parts the tables of the log are divided, since the schema was made; 0: they are whole.
    package let partitions: Int
    let configuration: Configuration
    let reads: ReadQueue
    private let commits: CommitQueue
    private let workers = Workers()
    /// The node's name in the hints that it sends.
    private let node = String(UInt64.random(in: .min ... .max), radix: 36)
    private let hints: HintSender
    private let address: ServerAddress

    /// Connects, makes or migrates the schema where it has to be, and begins a new incarnation (Protocol.md). Blocks
    /// its thread until the server has answered.
    ///
    /// - Parameters:
    ///   - url: where the server is, as libpq has it: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=…`. Several
    ///     hosts may stand there; the one that takes writes is found.
    ///   - configuration: limits, and the schema's name.
    /// - Throws: ``PostgresError``.
    public convenience init(url: String, configuration: Configuration = Configuration()) throws {
        try self.init(url: url, configuration: configuration, seed: StoreSeed())
    }

    /// - Parameter seed: what marks this opening, and the schema where it is made now.
    package convenience init(url: String, configuration: Configuration, seed: StoreSeed) throws {
        try self.init(ServerAddress(url), configuration, seed)
    }

    private init(_ address: ServerAddress, _ configuration: Configuration, _ seed: StoreSeed) throws {
        guard configuration.hasPlainSchema else {
            throw PostgresError(.schema, "a schema's name has small letters, digits and underscores")
        }
        let range = Configuration.partitionRange
        guard range.contains(configuration.partitions) else {
            throw PostgresError(.schema, "a table has \(range.lowerBound) to \(range.upperBound) partitions")
        }
        var configuration = configuration
        var session = try Session(to: address, configuration)
        if configuration.schema == Configuration.newSchema, try Schema.isFormer(session) {
            configuration.schema = Configuration.formerSchema
            session = try Session(to: address, configuration)
        }
        (tokenKey, partitions) = try Schema.prepare(
            session, configuration.schema, Partitions(count: configuration.partitions), newKey: seed.tokenKey)
        self.address = address
        self.configuration = configuration
        let connector = Connector(address, configuration)
        // Hints that cannot be sent keep nobody else from trying.
        hints = HintSender(Connector(address, configuration), node: node)
        reads = ReadQueue(limit: configuration.waitingReads)
        commits = CommitQueue(
            limit: configuration.waitingWrites, incarnations: Incarnations(first: seed.incarnation), hints: hints)
        workers.start(configuration.readers, "reader", for: reads, connector)
        workers.start(configuration.writers, "writer", for: commits, connector)
    }

    deinit {
        reads.close()
        commits.close()
        hints.close()
    }

    /// Refuses what waits, finishes what is under way, and closes all connections.
    public func close() {
        reads.close()
        commits.close()
        hints.close()
        workers.waitForEnd()
        hints.waitForEnd()
    }

    func listener(_ hinted: HintedScopes) -> HintListener {
        HintListener(Connector(address, configuration), node: node, hinted)
    }

    /// How many calls wait for one of the store's readers, and how many for one of its writers.
    package var waiting: (reads: Int, writes: Int) { (reads.waitingCount, commits.waitingCount) }

    /// Reads in one snapshot of the database. The body runs on the thread of one of the store's readers.
    ///
    /// - Throws: what the body throws; `StoreUnavailable` for what passes by itself, and where too many calls wait
    ///   already; ``PostgresError`` for the rest.
    public func read<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeReader) throws -> Result
    ) async throws -> Result {
        try await reads.run(for: caller, in: scope) { line in
            try line.read { session in try body(PostgresScope(session, scope, ScopeRow.read(session, scope))) }
        }
    }

    /// Queues a write; it returns after the commit that holds it is durable. The body runs on the thread of one of the
    /// store's writers.
    ///
    /// - Throws: what the body throws; `StoreUnavailable` for what passes by itself, and where too many calls wait
    ///   already; ``PostgresError`` for the rest.
    public func write<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result {
        try await commits.run(scope, for: caller, body)
    }

    /// Removes superseded rows in bounded transactions, unless another node is at it.
    ///
    /// - Throws: `StoreUnavailable` for what passes by itself; ``PostgresError`` for the rest.
    public func sweep(supersededBefore moment: Int64, limit: Int) async throws -> Int {
        try await reads.run { line in try Sweep.run(line, supersededBefore: moment, limit: limit) }
    }

    /// Reads names along their index.
    ///
    /// - Throws: `StoreUnavailable` for what passes by itself; ``PostgresError`` for the rest.
    public func scopes(after scope: Scope?, limit: Int) async throws -> [Scope] {
        try await reads.run { line in
            try line.read { session in
                let answer = try session.ask(
                    Self.names, .text(scope?.name ?? ""), .integer(Int64(max(0, limit))))
                return (0..<answer.count).compactMap { Scope(answer.text($0, 0)) }
            }
        }
    }

    /// Reads the time that was kept, in milliseconds since 1970.
    ///
    /// - Throws: `StoreUnavailable` for what passes by itself; ``PostgresError`` for the rest.
    public func ageClock() async throws -> Int64? {
        try await reads.run { line in
            try line.read { session in
                let answer = try session.ask(Self.ageClock)
                return answer.count > 0 ? try answer.integer(0, 0) : nil
            }
        }
    }

    /// Keeps the time, in milliseconds since 1970, with the store, so that every node ages history alike.
    ///
    /// - Throws: `StoreUnavailable` for what passes by itself; ``PostgresError`` for the rest.
    public func setAgeClock(_ moment: Int64) async throws {
        try await reads.run { line in
            try line.write { session in try session.write(Self.setAgeClock, .integer(moment)) }
        }
    }

    /// Reads the bounded list.
    ///
    /// - Throws: `StoreUnavailable` for what passes by itself; ``PostgresError`` for the rest.
    public func rejections(in scope: Scope?, id: Int64?, limit: Int) async throws -> [StoredRejection] {
        try await reads.run { line in
            try line.read { session in try Rejections.newest(session, in: scope, id: id, limit: limit) }
        }
    }

    /// Removes one row of the bounded list.
    ///
    /// - Throws: `StoreUnavailable` for what passes by itself; ``PostgresError`` for the rest.
    public func discardRejection(_ id: Int64) async throws -> Bool {
        try await reads.run { line in try line.write { session in try Rejections.discard(session, id) } }
    }

    private static let names = Statement(
        "scopes", "SELECT name FROM scope WHERE name > $1 ORDER BY name LIMIT $2")
    private static let ageClock = Statement("age clock", "SELECT number FROM meta WHERE key = 'age_clock'")
    private static let setAgeClock = Statement(
        "set age clock",
        """
        INSERT INTO meta (key, number) VALUES ('age_clock', $1)
        ON CONFLICT (key) DO UPDATE SET number = excluded.number
        """)
}
