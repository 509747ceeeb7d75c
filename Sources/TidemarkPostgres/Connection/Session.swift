import TidemarkCore

/// A connection with the settings of this store, and the state of its transaction. Belongs to one thread.
///
/// An error of a statement ends the transaction: from then on everything throws it, also where a body has caught it
/// and goes on, so that nothing is committed which only half happened.
final class Session {
    private var connection: Connection
    /// The row by which the server is asked about this connection's commits, from its first write on.
    private var trace: Int64?
    private var failure: PostgresError?
    /// The parts of the transaction that may fail alone, and whether the server knows of them.
    private var savepoints: [Bool] = []

    /// Rows that are written and not sent.
    private var batches: [RowBatch] = []
    /// Names of statements that are made of names of the catalogue, by their text.
    private var shapes: [String: String] = [:]
    private static let shapeLimit = 64

    /// Requests that may be on their way unanswered: neither side should have to keep much.
    private static let pipelineLimit = 100

    /// - Parameter patience: how long a server that says nothing at all is waited for.
    init(
        to address: ServerAddress, _ configuration: PostgresStore.Configuration, patience: Duration? = nil
    ) throws(PostgresError) {
        connection = try Connection(to: address, patience: patience ?? configuration.patience)
        try connection.send(Request(Self.settings, configuration.sessionParameters), isAsked: true)
        _ = try connection.receive()
    }

    /// Settings that decide how values are spelled are the same on every connection, whatever the role's or the
    /// database's are.
    ///
    /// Every plan is one along an index, whatever the statistics of a table that has just begun to grow say; and made
    /// once: plans for the scope at hand halve what a partitioned store takes, though one for whatever scope locks all
    /// partitions. What is acknowledged is on disk (I1), unless the operator asks for more than that.
    private static let settings = Statement(
        "settings",
        """
        SELECT set_config('search_path', $1, false), set_config('statement_timeout', $2, false),
            set_config('lock_timeout', $3, false), set_config('idle_in_transaction_session_timeout', $4, false),
            set_config('synchronous_commit',
                CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END,
                false),
            set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false),
            set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false),
            set_config('max_parallel_workers_per_gather', '0', false),
            set_config('DateStyle', 'ISO, YMD', false), set_config('IntervalStyle', 'iso_8601', false),
            set_config('TimeZone', 'UTC', false), set_config('bytea_output', 'hex', false),
            set_config('lc_monetary', 'C', false), set_config('extra_float_digits', '1', false),
            set_config('xmloption', 'content', false)
        """)

    func isAlive() -> Bool { connection.isAlive() }

    var isLost: Bool { connection.isLost }

    // MARK: Messages of other connections

    /// Listens to a channel from now on; its name has the form of a schema's.
    func listen(_ channel: String) throws { _ = try ask(Statement("listen", "LISTEN \"\(channel)\"")) }

    func messages(within time: Duration) throws -> [String] {
        do { return try connection.messages(within: time) } catch { throw fail(error) }
    }

    // MARK: Requests

    /// Sends a write whose answer nobody needs; an error of it comes up with the next answer.
    func write(_ request: Request) throws {
        try openParts()
        try send(request, isAsked: false)
        if connection.pendingCount >= Self.pipelineLimit { _ = try receive() }
    }

    func write(_ statement: Statement, _ parameters: Parameter...) throws { try write(Request(statement, parameters)) }

    /// Sends a write ahead of the rows that wait to be written, none of which it reaches.
    func writeAhead(_ request: Request) throws {
        try openParts()
        if let failure { throw failure }
        do { try connection.send(request, isAsked: false) } catch { throw fail(error) }
        if connection.pendingCount >= Self.pipelineLimit { _ = try receive() }
    }

    /// Sends a write and waits for its answer.
    func change(_ request: Request) throws -> QueryResult {
        try openParts()
        return try one(request)
    }

    func change(_ statement: Statement, _ parameters: Parameter...) throws -> QueryResult {
        try change(Request(statement, parameters))
    }

    func ask(_ statement: Statement, _ parameters: Parameter...) throws -> QueryResult {
        try one(Request(statement, parameters))
    }

    /// Asks for several things in one round trip.
    func ask(_ requests: [Request]) throws -> [QueryResult] {
        for request in requests { try send(request, isAsked: true) }
        let results = try receive()
        guard results.count == requests.count else { throw fail(PostgresError(.other, "answers are missing")) }
        return results
    }

    /// Sends something that changes no row and whose answer nobody needs.
    func tell(_ statement: Statement, _ parameters: Parameter...) throws {
        try send(Request(statement, parameters), isAsked: false)
    }

    private func one(_ request: Request) throws -> QueryResult {
        guard let result = try ask([request]).first else { throw fail(PostgresError(.other, "an answer is missing")) }
        return result
    }

    /// Writes a row, together with others of its form: they go out before whatever else is sent.
    func write(_ row: [Parameter], of form: RowForm, scope: Parameter, rest: [Parameter] = []) throws {
        try openParts()
        if let failure { throw failure }
        if let index = batches.firstIndex(where: { $0.form == form }) {
            if batches[index].takes(scope: scope, rest: rest) {
                batches[index].add(row)
                return
            }
            try sendBatches()
        }
        var batch = RowBatch(form, scope: scope, rest: rest)
        batch.add(row)
        batches.append(batch)
    }

    private func sendBatches() throws {
        guard !batches.isEmpty else { return }
        let requests = batches.map(\.request)
        batches = []
        for request in requests { try send(request, isAsked: false) }
    }

    private func send(_ request: Request, isAsked: Bool) throws {
        try sendBatches()
        if let failure { throw failure }
        do { try connection.send(request, isAsked: isAsked) } catch { throw fail(error) }
    }

    private func receive() throws -> [QueryResult] {
        try sendBatches()
        if let failure { throw failure }
        do { return try connection.receive() } catch { throw fail(error) }
    }

    /// For one who has caught an error and would go on.
    func checkUnbroken() throws { if let failure { throw failure } }

    private func fail(_ error: PostgresError) -> PostgresError {
        failure = failure ?? error
        return error
    }

    // MARK: Parts that may fail

    /// The server is told of a savepoint at the first write behind it: many parts end without one.
    private func openParts() throws {
        for index in savepoints.indices where !savepoints[index] {
            savepoints[index] = true
            try tell(Statement("savepoint \(index)", "SAVEPOINT part_\(index)"))
        }
    }

    /// Runs a part of the transaction; an error undoes what it wrote.
    func attempt<Result>(_ body: () throws -> Result) throws -> Result {
        let index = savepoints.count
        savepoints.append(false)
        let result: Result
        do { result = try body() } catch {
            if savepoints.removeLast(), failure == nil {
                try tell(Statement("rollback \(index)", "ROLLBACK TO SAVEPOINT part_\(index)"))
                try tell(Statement("release \(index)", "RELEASE SAVEPOINT part_\(index)"))
            }
            throw failure ?? error
        }
        if savepoints.removeLast() { try tell(Statement("release \(index)", "RELEASE SAVEPOINT part_\(index)")) }
        return result
    }

    /// Runs a part whose writes nobody waits for one by one; `nil`, and nothing of it done, where the server has
    /// refused one of them.
    func together<Result>(_ body: () throws -> Result) throws -> Result? {
        try openParts()
        // An earlier request's error must not count as a refusal of this part.
        if connection.pendingCount > 0 || !batches.isEmpty { _ = try receive() }
        try tell(Self.beginTogether)
        do {
            let result = try body()
            try tell(Self.endTogether)
            _ = try receive()
            return result
        } catch {
            guard let refusal = failure else {
                try undoTogether()
                throw error
            }
            guard !connection.isLost, refusal.code.isRefusal else { throw refusal }
            failure = nil
            try undoTogether()
            return nil
        }
    }

    private func undoTogether() throws {
        try tell(Self.rollbackTogether)
        try tell(Self.endTogether)
    }

    private static let beginTogether = Statement("together", "SAVEPOINT together")
    private static let endTogether = Statement("together done", "RELEASE SAVEPOINT together")
    private static let rollbackTogether = Statement("together undone", "ROLLBACK TO SAVEPOINT together")

    /// Returns a statement that is made of names of the catalogue under a name of this session, by which it is prepared
    /// once, as long as there are not too many of them.
    func shaped(_ statement: Statement) -> Statement {
        if let name = shapes[statement.sql] { return Statement(name, statement.sql) }
        guard shapes.count < Self.shapeLimit else { return Statement("", statement.sql) }
        let name = "\(Statement.shapePrefix)\(shapes.count)"
        shapes[statement.sql] = name
        return Statement(name, statement.sql)
    }

    /// Sends a write whose statement is made of names of the catalogue.
    func writeShaped(_ request: Request) throws {
        try write(Request(shaped(request.statement), request.parameters))
    }

    private static let beginTrial = Statement("trial", "SAVEPOINT trial")
    private static let keepTrial = Statement("trial done", "RELEASE SAVEPOINT trial")
    private static let undoTrial = Statement("trial undone", "ROLLBACK TO SAVEPOINT trial")

    /// Asks for what the server may refuse: its refusal undoes only these requests, and the transaction goes on.
    func trial(_ requests: [Request]) throws -> Result<[QueryResult], PostgresError> {
        try openParts()
        // An error of what stands before is not a refusal of this.
        if connection.pendingCount > 0 || !batches.isEmpty { _ = try receive() }
        try tell(Self.beginTrial)
        for request in requests { try send(request, isAsked: true) }
        let outcome: Result<[QueryResult], PostgresError>
        do { outcome = .success(try connection.receive()) } catch {
            guard !connection.isLost, error.code.isRefusal else { throw fail(error) }
            outcome = .failure(error)
            try tell(Self.undoTrial)
        }
        try tell(Self.keepTrial)
        return outcome
    }
}

// MARK: - Transactions

extension Session {
    private static let beginWriting = Statement("begin", "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
    private static let beginReading = Statement("begin reading", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    private static let commit = Statement("commit", "COMMIT")
    private static let rollback = Statement("rollback", "ROLLBACK")

    /// Runs a body on one snapshot of the database.
    func read<Result>(_ body: (Session) throws -> Result) throws -> Result {
        try run(Self.beginReading, hasToLast: false, body)
    }

    /// Runs a body in a transaction that nobody asks about later: where its commit is not answered, or is not as
    /// durable as it has to be, it may have been made all the same.
    func transact<Result>(_ body: (Session) throws -> Result) throws -> Result {
        try run(Self.beginWriting, hasToLast: true, body)
    }

    private func run<Result>(
        _ begin: Statement, hasToLast: Bool, _ body: (Session) throws -> Result
    ) throws -> Result {
        do {
            try tell(begin)
            let result = try body(self)
            if let failure { throw failure }
            let warnings = connection.warningCount
            let tag = try ask(Self.commit).tag
            // A server that is about to stop warns of it. To what was only read that is nothing; what was written may
            // not be as durable as it has to be.
            guard tag == "COMMIT", !hasToLast || connection.warningCount == warnings else {
                throw PostgresError(.connection, "the server has answered \(tag), with a warning or without")
            }
            return result
        } catch { throw giveUp(error) }
    }

    /// Runs a body in a transaction and commits what it wrote; what to ask first goes out with the transaction's begin.
    func write<Result>(
        asking requests: [Request] = [], _ body: (WriteMark, ArraySlice<QueryResult>) throws -> Result
    ) -> WriteOutcome<Result> {
        let mark: WriteMark
        let result: Result
        do {
            let (trace, batch) = (try leaveTrace(), Int64.random(in: .min ... .max))
            try tell(Self.beginWriting)
            let answers = try ask([WriteMark.request(trace, batch)] + requests)
            guard let found = try WriteMark(trace, batch, answers[0]) else {
                self.trace = nil
                throw PostgresError(.stale, "the connection's row is gone")
            }
            mark = found
            result = try body(mark, answers.dropFirst())
            if let failure { throw failure }
        } catch { return .undone(giveUp(error)) }
        let warnings = connection.warningCount
        do {
            // Also where nothing was written: what was found and is answered may have been committed by one who could
            // not say whether a standby has it, and then this commit waits for that.
            let tag = try ask(Self.commit).tag
            guard tag == "COMMIT" else { return .undone(PostgresError(.other, "the server has answered \(tag)")) }
            // A server that no longer waits for its standby says so by a warning.
            return connection.warningCount == warnings ? .committed(result) : .unknown(mark, result)
        } catch {
            guard connection.isLost else { return .undone(giveUp(error)) }
            return .unknown(mark, result)
        }
    }

    /// The row of this connection is there, and is durable, before the first transaction that is to be found by it:
    /// so a row that is missing later says nothing, and one that is there says all.
    private func leaveTrace() throws -> Int64 {
        if let trace { return trace }
        let new = Int64.random(in: .min ... .max)
        try transact { session in
            // A standby that does not answer holds up the write itself, which can be asked about: not this.
            try session.tell(WriteMark.soon)
            try session.write(WriteMark.first, .integer(new))
        }
        trace = new
        return new
    }

    /// Ends the transaction without a trace. What the server had said comes before what a body made of it.
    private func giveUp(_ error: (any Error)?) -> any Error {
        let cause: (any Error)? = failure ?? error
        failure = nil
        savepoints = []
        batches = []
        if !connection.isLost {
            do {
                try connection.send(Request(Self.rollback), isAsked: false)
                _ = try connection.receive()
            } catch {
                // An unanswered request had an error: the transaction is undone by that, or by the end of the
                // connection.
                if !connection.isLost, (try? connection.send(Request(Self.rollback), isAsked: false)) != nil {
                    _ = try? connection.receive()
                }
            }
        }
        return cause ?? PostgresError(.other, "the transaction was undone")
    }
}

/// The outcome of a transaction.
enum WriteOutcome<Result> {
    case committed(Result)
    /// Nothing of it is there, and why.
    case undone(any Error)
    /// The server was asked to commit and has not said that it did.
    case unknown(WriteMark, Result)
}

extension PostgresStore.Configuration {
    fileprivate var sessionParameters: [Parameter] {
        [
            .text(schema), Self.setting(statementTimeout), Self.setting(lockTimeout), Self.setting(idleTimeout),
        ]
    }

    private static func setting(_ timeout: Duration) -> Parameter { .text("\(bounded(timeout).milliseconds)ms") }
}
