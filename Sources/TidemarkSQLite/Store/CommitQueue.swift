import GRDB
import TidemarkCore
import TidemarkServer

/// Group commit: what waits while one transaction is made durable goes into the next one together, in turns (I14).
final class CommitQueue: Sendable {
    /// Writes that share one transaction, at most: the first of them should not wait long for the last.
    private static let batchLimit = 256
    /// The time after which a transaction takes no further write: a write in it already waits for its commit.
    private static let batchTime = Duration.milliseconds(50)
    /// Writes that may wait; those beyond are refused for now.
    private static let waitingLimit = 10_000

    private struct State {
        var jobs = FairQueue<Job>()
        var isDraining = false
    }

    private let pool: DatabasePool
    private let incarnation: Int64
    private let state = Guarded(State())

    init(pool: DatabasePool, incarnation: Int64) {
        self.pool = pool
        self.incarnation = incarnation
    }

    /// Whether a write waits for the one that runs.
    var hasWaiting: Bool { state.withLock { !$0.jobs.isEmpty } }

    /// How many writes wait for the one that runs.
    var waitingCount: Int { state.withLock { $0.jobs.count } }

    func run<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result {
        let isGone = Guarded(false)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                push(
                    Job(isGone: isGone) { [self] db, delaysOthers in
                        let result = Swift.Result { try attempt(db, scope, delaysOthers, body) }
                        return { commit in continuation.resume(with: commit.flatMap { result }) }
                    } fail: { error in
                        continuation.resume(throwing: error)
                    }, of: caller, in: scope)
            }
        } onCancel: {
            isGone.withLock { $0 = true }
            let job = state.withLock { state in state.jobs.remove(of: caller, in: scope) { $0.isGone === isGone } }
            job?.fail(CancellationError())
        }
    }

    private func push(_ job: Job, of caller: String, in scope: Scope) {
        let (refusal, begins): ((any Error)?, Bool) = state.withLock { state in
            if job.isGone.withLock({ $0 }) { return (CancellationError(), false) }
            guard state.jobs.count < Self.waitingLimit else {
                return (StoreUnavailable("\(Self.waitingLimit) writes are waiting already"), false)
            }
            state.jobs.append(job, of: caller, in: scope)
            defer { state.isDraining = true }
            return (nil, !state.isDraining)
        }
        if let refusal { job.fail(refusal) }
        if begins { Task { await drain() } }
    }

    /// Runs one job in a savepoint of its own, so that its failure undoes only itself.
    private func attempt<Result>(
        _ db: Database, _ scope: Scope, _ delaysOthers: Bool, _ body: (any ScopeWriter) throws -> Result
    ) throws -> Result {
        var result: Result?
        try db.inSavepoint {
            let writer = try SQLiteScopeWriter(
                db, scope, incarnation: incarnation, delaysOthers: delaysOthers
            ) { [self] in hasWaiting }
            result = try body(writer)
            try writer.finish()
            return .commit
        }
        guard let result else { throw DatabaseError(resultCode: .SQLITE_INTERNAL) }
        return result
    }

    private func drain() async {
        while mayGoOn() {
            do {
                let answers = try await pool.writeWithoutTransaction { [self] db in commitNext(db) }
                for answer in answers { answer() }
            } catch {
                // The store is closed: nothing of what waits has begun.
                for job in state.withLock({ $0.jobs.removeAll() }) { job.fail(error) }
            }
        }
    }

    private func mayGoOn() -> Bool {
        state.withLock { state in
            state.isDraining = !state.jobs.isEmpty
            return state.isDraining
        }
    }

    private func next() -> Job? { state.withLock { $0.jobs.popFirst() } }

    /// Runs waiting writes in one durable transaction, and returns the answers that may go out now. A write that comes
    /// while it runs joins it, as long as there is room.
    private func commitNext(_ db: Database) -> [@Sendable () -> Void] {
        let end = ContinuousClock.now + Self.batchTime
        var answers: [Job.Answer] = []
        let commit = Result {
            try db.inTransaction(.immediate) {
                // A full disk makes SQLite undo the whole transaction by itself: nothing may run outside of one, and
                // nothing of what has run is there.
                while answers.count < Self.batchLimit, answers.isEmpty || .now < end, let job = next() {
                    answers.append(job.run(db, !answers.isEmpty))
                    guard db.isInsideTransaction else { throw Job.undone }
                }
                return .commit
            }
        }
        guard case .failure(let error) = commit, answers.isEmpty else {
            return answers.map { answer in { answer(commit) } }
        }
        // It could not even begin, after all the time that SQLite waits for a lock: nor would those that wait.
        return state.withLock { $0.jobs.removeAll() }.map { job in { job.fail(error) } }
    }
}

/// A queued write: how to run it inside a transaction, and how to answer when it never came to that.
private struct Job: Sendable {
    typealias Answer = @Sendable (Result<Void, any Error>) -> Void

    /// Whether its caller has gone. It is the write's own, and so tells it from the others.
    let isGone: Guarded<Bool>
    /// Does the work, knowing whether finished writes wait for it. The function that it returns takes the commit's
    /// outcome.
    let run: @Sendable (Database, _ delaysOthers: Bool) -> Answer
    let fail: @Sendable (any Error) -> Void

    static var undone: DatabaseError {
        DatabaseError(resultCode: .SQLITE_FULL, message: "the transaction was undone")
    }
}
