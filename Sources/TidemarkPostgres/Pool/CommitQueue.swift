import Foundation
import TidemarkServer

/// Group commit: writes of a scope that arrive while one of its commits is under way go into the next one together,
/// and scopes share commits when there are more of them than workers. A scope is with one worker at a time, so that
/// this node's connections do not wait for each other's locks.
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
    /// Writes that wait, by scope, in the order in which they came.
    private var waiting: [Scope: [CommitJob]] = [:]
    private var waitingCount = 0
    /// Scopes with writes that wait and with no worker, the first to come first.
    private var ready: ArraySlice<Scope> = []
    private var taken: Set<Scope> = []
    private var idleWorkers = 0
    private var connections = 0
    private var isClosed = false

    init(limit: Int, incarnations: Incarnations, hints: HintSender) {
        self.limit = limit
        self.incarnations = incarnations
        self.hints = hints
    }

    func run<Result: Sendable>(
        _ scope: Scope, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            push(
                CommitJob(scope: scope) { writer in
                    let result = try body(writer)
                    return { continuation.resume(returning: result) }
                } fail: { error in
                    continuation.resume(throwing: error)
                })
        }
    }

    private func push(_ job: CommitJob) {
        let refusal: StoreUnavailable? = condition.withLock {
            if isClosed { return .closed }
            if waitingCount >= limit { return .crowded(limit) }
            waitingCount += 1
            waiting[job.scope, default: []].append(job)
            if waiting[job.scope]?.count == 1, !taken.contains(job.scope) {
                ready.append(job.scope)
                condition.signal()
            }
            return nil
        }
        if let refusal { job.fail(refusal) }
    }

    func wait() -> Bool {
        condition.withLock {
            idleWorkers += 1
            while ready.isEmpty, !isClosed { condition.wait() }
            idleWorkers -= 1
            return !ready.isEmpty
        }
    }

    /// This worker's share of what is ready, so that all workers have something to do.
    func take() -> CommitBatch? {
        condition.withLock {
            let share = min((ready.count + idleWorkers) / (idleWorkers + 1), Self.scopeLimit)
            var jobs: [CommitJob] = []
            for _ in 0..<share {
                guard jobs.count < Self.jobLimit, let scope = ready.popFirst(), var rest = waiting[scope] else { break }
                let count = min(rest.count, Self.jobLimit - jobs.count)
                jobs += rest.prefix(count)
                rest.removeFirst(count)
                waiting[scope] = rest.isEmpty ? nil : rest
                taken.insert(scope)
            }
            waitingCount -= jobs.count
            return jobs.isEmpty ? nil : CommitBatch(jobs: jobs, incarnations: incarnations, hints: hints)
        }
    }

    func perform(_ batch: CommitBatch, on line: Line) {
        batch.commit(on: line)
        condition.withLock {
            for scope in Set(batch.jobs.map(\.scope)) {
                taken.remove(scope)
                guard waiting[scope] != nil else { continue }
                ready.append(scope)
                condition.signal()
            }
        }
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
        defer {
            waiting = [:]
            waitingCount = 0
            ready = []
        }
        return waiting.values.flatMap { $0 }
    }
}
