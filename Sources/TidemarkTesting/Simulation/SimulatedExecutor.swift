import Dispatch
import Synchronization

/// Runs the tasks of one simulated world on the thread of that world, one piece at a time, in an order that follows
/// from the world's seed.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class SimulatedExecutor: TaskExecutor {
    private struct Work {
        /// Any of them may be the next.
        var jobs: [UnownedJob] = []
        /// Calls to what works on threads of its own.
        var calls = 0
        /// What came while there were any.
        var returning: [UnownedJob] = []
    }

    private let work = Mutex(Work())
    private let arrival = DispatchSemaphore(value: 0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isReturning = work.withLock { work in
            let isReturning = work.calls > 0
            if isReturning { work.returning.append(job) } else { work.jobs.append(job) }
            return isReturning
        }
        if isReturning { arrival.signal() }
    }

    /// Calls something that works on threads of its own. Nothing else of the world goes on until it has answered, so
    /// that the world stays the same however long it takes.
    func outside<Result>(_ call: () async throws -> Result) async rethrows -> Result {
        work.withLock { $0.calls += 1 }
        defer { work.withLock { $0.calls -= 1 } }
        return try await call()
    }

    /// Runs until every task waits for something outside.
    ///
    /// - Parameter choose: picks one of so many that could go on.
    func drain(_ choose: (Int) -> Int) {
        while let job = next(choose) { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }

    private func next(_ choose: (Int) -> Int) -> UnownedJob? {
        while true {
            let (job, isWaiting) = work.withLock { work -> (UnownedJob?, Bool) in
                if !work.returning.isEmpty { return (work.returning.removeFirst(), false) }
                if work.calls > 0 { return (nil, true) }
                guard !work.jobs.isEmpty else { return (nil, false) }
                return (work.jobs.remove(at: work.jobs.count == 1 ? 0 : choose(work.jobs.count)), false)
            }
            guard isWaiting else { return job }
            arrival.wait()
        }
    }
}
