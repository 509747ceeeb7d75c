import Foundation
import TidemarkCore
import TidemarkServer
import TidemarkWire

/// Group commit: writes of a scope that arrive while one of its commits is under way go into the next one together,
/// and scopes share commits when there are more of them than workers. A scope is with one worker at a time, so that
/// this node's connections do not wait for each other's locks. Those who write take turns (I14).
final class CommitQueue: WorkQueue, @unchecked Sendable {  // because what changes is only touched under `condition`
    /// Writes that share a transaction, at most. Each is a subtransaction, and PostgreSQL keeps the numbers of 64 at
    /// hand; with more, every reader has to look them up.
    private static let jobLimit = 50
    /// Scopes that share a transaction, at most: each holds up the others' answers.
    private static let scopeLimit = 25

    private let condition = NSCondition()
    private let limit: Int
    private let incarnations: Incarnations
    private let hints: HintSender
    private var waiting = FairQueue<CommitJob>()
    /// How many wait, by scope.
    private var counts: [Scope: Int] = [:]
    /// Scopes with writes that wait and with no worker.
    private var readyCount = 0
    private var taken: Set<Scope> = []
    private var idleWorkers = 0
    private var connections = 0
    private var isClosed = false

    init(limit: Int, incarnations: Incarnations, hints: HintSender) {
        self.limit = limit
        self.incarnations = incarnations
        self.hints = hints
    }

    /// How many writes wait for a worker.
    var waitingCount: Int { condition.withLock { waiting.count } }

    func run<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result {
        let isGone = Guarded(false)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                push(
                    CommitJob(scope: scope, caller: caller, isGone: isGone) { writer in
                        let result = try body(writer)
                        return { continuation.resume(returning: result) }
                    } fail: { error in
                        continuation.resume(throwing: error)
                    })
            }
        } onCancel: {
            isGone.withLock { $0 = true }
            let job = condition.withLock { leave(caller, scope, isGone) }
            job?.fail(CancellationError())
        }
    }

    /// Takes a job out whose caller has gone. A job that a worker has taken is done.
    private func leave(_ caller: String, _ scope: Scope, _ isGone: Guarded<Bool>) -> CommitJob? {
        guard let job = waiting.remove(of: caller, in: scope, where: { $0.isGone === isGone }) else { return nil }
        count(scope, -1)
        if counts[scope] == nil, !taken.contains(scope) { readyCount -= 1 }
        return job
    }

    private func push(_ job: CommitJob) {
        let refusal: (any Error)? = condition.withLock {
            if job.isGone.withLock({ $0 }) { return CancellationError() }
            if isClosed { return StoreUnavailable.closed }
            if waiting.count >= limit { return StoreUnavailable.crowded(limit) }
            waiting.append(job, of: job.caller, in: job.scope)
            count(job.scope, 1)
            return nil
        }
        if let refusal { job.fail(refusal) }
    }

    /// Notes that so many writes of a scope wait, more than before.
    private func count(_ scope: Scope, _ change: Int) {
        let former = counts[scope, default: 0]
        counts[scope] = former + change > 0 ? former + change : nil
        guard former == 0, change > 0, !taken.contains(scope) else { return }
        readyCount += 1
        condition.signal()
    }

    func wait() -> Bool {
        condition.withLock {
            idleWorkers += 1
            while readyCount == 0, !isClosed { condition.wait() }
            idleWorkers -= 1
            return readyCount > 0
        }
    }

    /// This worker's share of what is ready, so that all workers have something to do.
    func take() -> CommitBatch? {
        condition.withLock {
            let share = min((readyCount + idleWorkers) / (idleWorkers + 1), Self.scopeLimit)
            var jobs: [CommitJob] = []
            var own: Set<Scope> = []
            func isFree(_ scope: Scope, _: CommitJob) -> Bool {
                own.contains(scope) || own.count < share && !taken.contains(scope)
            }
            while jobs.count < Self.jobLimit, let job = waiting.popFirst(where: isFree) {
                jobs.append(job)
                count(job.scope, -1)
                if own.insert(job.scope).inserted {
                    taken.insert(job.scope)
                    readyCount -= 1
                }
            }
            return jobs.isEmpty ? nil : CommitBatch(jobs: jobs, incarnations: incarnations, hints: hints)
        }
    }

    func perform(_ batch: CommitBatch, on line: Line) {
        let left = batch.commit(on: line)
        let refused: [CommitJob] = condition.withLock {
            for scope in Set(batch.jobs.map(\.scope)) {
                taken.remove(scope)
                guard counts[scope] != nil else { continue }
                readyCount += 1
                condition.signal()
            }
            guard !isClosed else { return left }
            // Asked once: who goes from now on finds his own in the queue.
            let gone = left.map { job in job.isGone.withLock { $0 } }
            for (job, isGone) in zip(left, gone).reversed() where !isGone {
                waiting.putBack(job, of: job.caller, in: job.scope)
                count(job.scope, 1)
            }
            return zip(left, gone).filter(\.1).map(\.0)
        }
        for job in refused { job.fail(StoreUnavailable.closed) }
    }

    func count(connections change: Int) { condition.withLock { connections += change } }

    func refuse(_ error: any Error) {
        let refused: [CommitJob] = condition.withLock {
            guard connections == 0 else {
                // The call that woke this worker is for another.
                condition.signal()
                return []
            }
            return removeAll()
        }
        for job in refused { job.fail(error) }
    }

    func close() {
        let refused: [CommitJob] = condition.withLock {
            isClosed = true
            condition.broadcast()
            return removeAll()
        }
        for job in refused { job.fail(StoreUnavailable.closed) }
    }

    private func removeAll() -> [CommitJob] {
        counts = [:]
        readyCount = 0
        return waiting.removeAll()
    }
}
