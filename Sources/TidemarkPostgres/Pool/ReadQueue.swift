import Foundation
import TidemarkServer

/// What reads or tidies, first come, first served.
final class ReadQueue: WorkQueue, @unchecked Sendable {  // because what changes is only touched under `condition`
    struct Work: Sendable {
        let run: @Sendable (Line) -> Void
        let fail: @Sendable (any Error) -> Void
    }

    private let condition = NSCondition()
    private let limit: Int
    private var waiting: ArraySlice<Work> = []
    private var connections = 0
    private var isClosed = false

    init(limit: Int) { self.limit = limit }

    /// Runs a body on a worker's line and returns when it is done.
    func run<Result: Sendable>(_ body: @escaping @Sendable (Line) throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            push(
                Work { line in
                    continuation.resume(with: Swift.Result { try body(line) })
                } fail: { error in
                    continuation.resume(throwing: error)
                })
        }
    }

    private func push(_ work: Work) {
        let refusal: StoreUnavailable? = condition.withLock {
            if isClosed { return .closed }
            if waiting.count >= limit { return .crowded(limit) }
            waiting.append(work)
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
        let refused: ArraySlice<Work> = condition.withLock {
            guard connections == 0 else {
                // The call that woke this worker is for another.
                condition.signal()
                return []
            }
            defer { waiting = [] }
            return waiting
        }
        for work in refused { work.fail(error) }
    }

    func close() {
        let refused: ArraySlice<Work> = condition.withLock {
            isClosed = true
            condition.broadcast()
            defer { waiting = [] }
            return waiting
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
