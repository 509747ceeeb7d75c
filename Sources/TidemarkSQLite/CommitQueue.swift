import GRDB
import TidemarkServer

/// Group commit: what arrives while one transaction is being made durable goes into the next one together.
actor CommitQueue {
    /// Writes that share one transaction, at most: the first of them should not wait long for the last.
    private static let batchLimit = 256

    private typealias Job = @Sendable (Database, Int64) throws -> @Sendable (Swift.Result<Void, any Error>) -> Void

    private let pool: DatabasePool
    private let incarnation: Int64
    private var jobs: [Job] = []
    private var isDraining = false

    init(pool: DatabasePool, incarnation: Int64) {
        self.pool = pool
        self.incarnation = incarnation
    }

    func run<Result: Sendable>(
        _ scope: Scope, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            jobs.append { db, incarnation in
                let result = Self.attempt(db, scope, incarnation, body)
                return { commit in continuation.resume(with: commit.flatMap { result }) }
            }
            if !isDraining {
                isDraining = true
                Task { await drain() }
            }
        }
    }

    /// One job in a savepoint of its own, so that its failure undoes only itself.
    private static func attempt<Result>(
        _ db: Database, _ scope: Scope, _ incarnation: Int64, _ body: (any ScopeWriter) throws -> Result
    ) -> Swift.Result<Result, any Error> {
        Swift.Result {
            var result: Result?
            try db.inSavepoint {
                let writer = try SQLiteScopeWriter(db, scope, incarnation: incarnation)
                result = try body(writer)
                try writer.finish()
                return .commit
            }
            guard let result else { throw DatabaseError(resultCode: .SQLITE_INTERNAL) }
            return result
        }
    }

    private func drain() async {
        while !jobs.isEmpty {
            let batch = Array(jobs.prefix(Self.batchLimit))
            jobs.removeFirst(batch.count)
            await commit(batch)
        }
        isDraining = false
    }

    private func commit(_ batch: [Job]) async {
        let incarnation = incarnation
        let outcome = await Self.transaction(pool, batch, incarnation)
        for answer in outcome.answers { answer(outcome.commit) }
    }

    private struct Outcome: Sendable {
        var answers: [@Sendable (Swift.Result<Void, any Error>) -> Void] = []
        var commit: Swift.Result<Void, any Error> = .success(())
    }

    private static func transaction(_ pool: DatabasePool, _ batch: [Job], _ incarnation: Int64) async -> Outcome {
        let collected: Outcome? = try? await pool.writeWithoutTransaction { db in
            var outcome = Outcome()
            do {
                try db.inTransaction(.immediate) {
                    for job in batch { outcome.answers.append(try job(db, incarnation)) }
                    return .commit
                }
            } catch {
                outcome.commit = .failure(error)
            }
            return outcome
        }
        return collected ?? Outcome()
    }
}
