import Synchronization

/// Runs the tasks of one simulated world on the thread of that world, one piece at a time, in an order that follows
/// from the world's seed.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class SimulatedExecutor: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Runs until every task waits for something outside.
    ///
    /// - Parameter choose: picks one of so many that could go on.
    func drain(_ choose: (Int) -> Int) {
        while let job = jobs.withLock({ $0.isEmpty ? nil : $0.remove(at: $0.count == 1 ? 0 : choose($0.count)) }) {
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
