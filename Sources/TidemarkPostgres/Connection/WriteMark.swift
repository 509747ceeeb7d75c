/// How to ask what became of a transaction that writes, and whose history it goes on.
///
/// Each connection has a row of its own in `writer`, and each of its transactions begins by writing a random number of
/// its own there. So the row is locked until that transaction is over, whatever has become of the connection; and from
/// then on it holds the number exactly where the transaction was committed in the history that the server goes on with,
/// be it after a crash, on a standby that took over, or from a backup. (The server's own numbers for transactions do
/// not tell: one that was never written down is given again after a crash.)
struct WriteMark: Hashable, Sendable {
    /// The row of the connection.
    let trace: Int64
    /// The random number that the transaction left there.
    let batch: Int64
    let run: ServerRun

    /// Reads the server's run with each mark, because a connection may outlive a restore of the database beneath it.
    private static let statement = Statement(
        "mark",
        """
        UPDATE writer SET batch = $2, used_at = now() WHERE id = $1
        RETURNING pg_postmaster_start_time(), pg_relation_filenode(to_regclass('scope'))::bigint
        """)

    /// A connection's row, before any of its transactions.
    static let first = Statement("trace", "INSERT INTO writer (id, batch, used_at) VALUES ($1, 0, now())")

    /// Lets a commit wait for this server's disk only, because a new row says nothing yet that a standby would need.
    static let soon = Statement("soon", "SELECT set_config('synchronous_commit', 'local', true)")

    /// The first thing that a transaction does.
    static func request(_ trace: Int64, _ batch: Int64) -> Request {
        Request(statement, .integer(trace), .integer(batch))
    }

    /// `nil` where the connection's row is gone: swept, since it was idle for long, or the database was put back.
    init?(_ trace: Int64, _ batch: Int64, _ answer: QueryResult) throws(PostgresError) {
        guard answer.count == 1 else { return nil }
        self.trace = trace
        self.batch = batch
        run = ServerRun(started: try answer.integer(0, 0), file: try answer.integerIfAny(0, 1) ?? 0)
    }

    // MARK: Asking

    /// The outcome of a transaction that was not answered, as far as it is known.
    enum Outcome: Hashable, Sendable {
        case committed, undone
        /// The connection's row is gone, so nobody can say any more.
        case unknown
    }

    /// Waits for the transaction's end where it lasts.
    private static let look = Statement("outcome", "UPDATE writer SET used_at = now() WHERE id = $1 RETURNING batch")

    /// Asks on another connection. The question is a write itself: once its commit is as durable as a commit has to be,
    /// on a standby that is waited for as well, so is what it saw.
    func outcome(_ session: Session) throws -> Outcome {
        try session.transact { session in
            let answer = try session.change(Self.look, .integer(trace))
            guard answer.count == 1 else { return .unknown }
            return try answer.integer(0, 0) == batch ? .committed : .undone
        }
    }

    // MARK: Sweeping

    /// Removes rows of connections that have not written for an hour. A connection that is only idle makes itself
    /// another; nobody asks about a commit for as long (`outcomeTimeout`).
    private static let remove = Statement(
        "remove traces",
        """
        DELETE FROM writer WHERE id IN (
            SELECT id FROM writer WHERE used_at < now() - interval '1 hour' LIMIT $1 FOR UPDATE SKIP LOCKED)
        """)

    static func sweep(_ session: Session, limit: Int) throws { try session.write(remove, .integer(Int64(limit))) }
}

/// One run of a server on one file of scopes. A database that was put back to an earlier state is never in the same.
struct ServerRun: Hashable, Sendable {
    let started: Int64
    let file: Int64
}
