import Foundation
import TidemarkCore
import TidemarkServer
import TidemarkWire

/// Reads and sweeps wait here for a worker, in turns (I14).
final class ReadQueue: WorkQueue, @unchecked Sendable {  // because what changes is only touched under `condition`
    struct Work: Sendable {
        /// Whether its caller has gone. It is the work's own, and so tells it from other work.
        let isGone: Guarded<Bool>
        let run: @Sendable (Line) -> Void
        let fail: @Sendable (any Error) -> Void
    }

    private let condition = NSCondition()
    private let limit: Int
    private var waiting = FairQueue<Work>()
    private var connections = 0
    private var isClosed = false

    init(limit: Int) { self.limit = limit }

    /// How many reads and sweeps wait for a worker.
    var waitingCount: Int { condition.withLock { waiting.count } }

    /// Runs a body on a worker's line and returns when it is done. One whose caller has gone by then is not run.
    func run<Result: Sendable>(
        for caller: String = "", in scope: Scope = "-", _ body: @escaping @Sendable (Line) throws -> Result
    ) async throws -> Result {
        let isGone = Guarded(false)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let work = Work(isGone: isGone) { line in
                    continuation.resume(with: Swift.Result { try body(line) })
                } fail: { error in
                    continuation.resume(throwing: error)
                }
                push(work, of: caller, in: scope)
            }
        } onCancel: {
            isGone.withLock { $0 = true }
            let work = condition.withLock { waiting.remove(of: caller, in: scope) { $0.isGone === isGone } }
            work?.fail(CancellationError())
        }
    }

    private func push(_ work: Work, of caller: String, in scope: Scope) {
        let refusal: (any Error)? = condition.withLock {
            if work.isGone.withLock({ $0 }) { return CancellationError() }
            if isClosed { return StoreUnavailable.closed }
            if waiting.count >= limit { return StoreUnavailable.crowded(limit) }
            waiting.append(work, of: caller, in: scope)
            condition.signal()
            return nil
        }
        if let refusal { work.fail(refusal) }
    }

    func wait() -> Bool {
        condition.withLock {
            while waiting.isEmpty, !isClosed { condition.wait() }
            return !waiting.isEmpty
        }
    }

    func take() -> Work? { condition.withLock { waiting.popFirst() } }

    func perform(_ work: Work, on line: Line) { work.run(line) }

    func count(connections change: Int) { condition.withLock { connections += change } }

    func refuse(_ error: any Error) {
        let refused: [Work] = condition.withLock {
            guard connections == 0 else {
                // The call that woke this worker is for another.
                condition.signal()
                return []
            }
            return waiting.removeAll()
        }
        for work in refused { work.fail(error) }
    }

    func close() {
        let refused: [Work] = condition.withLock {
            isClosed = true
            condition.broadcast()
            return waiting.removeAll()
        }
        for work in refused { work.fail(StoreUnavailable.closed) }
    }
}

extension StoreUnavailable {
    static let closed = StoreUnavailable("the store is closed")

    static func crowded(_ limit: Int) -> StoreUnavailable {
        StoreUnavailable("\(limit) calls are waiting for PostgreSQL already")
    }
}
