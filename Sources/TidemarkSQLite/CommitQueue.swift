import GRDB
import TidemarkServer

/// Group commit: what arrives while one transaction is being made durable goes into the next one together.
actor CommitQueue {
    /// Writes that share one transaction, at most: the first of them should not wait long for the last.
    private static let batchLimit = 256

    private let pool: DatabasePool
    private let incarnation: Int64
    private var jobs: [Job] = []
    /// Writes that were not begun yet, for those that run.
    private let waiting = Guarded(0)
    private var isDraining = false

    init(pool: DatabasePool, incarnation: Int64) {
        self.pool = pool
        self.incarnation = incarnation
    }

    func run<Result: Sendable>(
        _ scope: Scope, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result {
        let (incarnation, waiting) = (incarnation, waiting)
        waiting.withLock { $0 += 1 }
        return try await withCheckedThrowingContinuation { continuation in
            jobs.append(
                Job { db in
                    waiting.withLock { $0 -= 1 }
                    let result = Swift.Result { try Self.attempt(db, scope, incarnation, waiting, body) }
                    return { commit in continuation.resume(with: commit.flatMap { result }) }
                } fail: { error in
                    waiting.withLock { $0 -= 1 }
                    continuation.resume(throwing: error)
                })
            if !isDraining {
                isDraining = true
                Task { await drain() }
            }
        }
    }

    /// One job in a savepoint of its own, so that its failure undoes only itself.
    private static func attempt<Result>(
        _ db: Database, _ scope: Scope, _ incarnation: Int64, _ waiting: Guarded<Int>,
        _ body: (any ScopeWriter) throws -> Result
    ) throws -> Result {
        var result: Result?
        try db.inSavepoint {
            let writer = try SQLiteScopeWriter(db, scope, incarnation: incarnation, waiting: waiting)
            result = try body(writer)
            try writer.finish()
            return .commit
        }
        guard let result else { throw DatabaseError(resultCode: .SQLITE_INTERNAL) }
        return result
    }

    private func drain() async {
        while !jobs.isEmpty {
            let batch = Array(jobs.prefix(Self.batchLimit))
            jobs.removeFirst(batch.count)
            do {
                let answers = try await pool.writeWithoutTransaction { db in Job.runAll(batch, db) }
                for answer in answers { answer() }
            } catch {
                // The store is closed: nothing of the batch has begun.
                for job in batch { job.fail(error) }
            }
        }
        isDraining = false
    }
}

/// A queued write: how to run it inside a transaction, and how to answer when it never came to that.
private struct Job: Sendable {
    typealias Answer = @Sendable (Result<Void, any Error>) -> Void

    /// Does the work; what comes back is told how the commit went.
    let run: @Sendable (Database) -> Answer
    let fail: @Sendable (any Error) -> Void

    private static var undone: DatabaseError {
        DatabaseError(resultCode: .SQLITE_FULL, message: "the transaction was undone")
    }

    /// Runs a batch in one durable transaction, and returns the answers that may go out now.
    static func runAll(_ batch: [Job], _ db: Database) -> [@Sendable () -> Void] {
        var answers: [Answer] = []
        let commit = Result {
            try db.inTransaction(.immediate) {
                // A full disk makes SQLite undo the whole transaction by itself: nothing may run outside of one, and
                // nothing of what has run is there.
                for job in batch {
                    guard db.isInsideTransaction else { throw undone }
                    answers.append(job.run(db))
                }
                guard db.isInsideTransaction else { throw undone }
                return .commit
            }
        }
        let unstarted = batch.dropFirst(answers.count).map { job in
            { @Sendable () -> Void in
                if case .failure(let error) = commit { job.fail(error) }
            }
        }
        return answers.map { answer in { answer(commit) } } + unstarted
    }
}
