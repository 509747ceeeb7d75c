/// Parts that are read back, each by one task, however many requests wait for its end. Such a task has no limit of its
/// own: each of those requests is a transfer (``BlobTransfers``) for as long as it lasts, its caller gone or not.
final class BlobCompletions: Sendable {
    /// By the parts' places.
    private let running = Guarded<[Int64: Task<Bool, any Error>]>([:])

    /// Does the work, or waits for it where it is under way. Answers what came of it, and `false` to who has only
    /// waited: what he asked for was done for another.
    func join(_ place: Int64, _ work: @escaping @Sendable () async throws -> Bool) async throws -> Bool {
        let (task, isOwn) = running.withLock { running -> (Task<Bool, any Error>, Bool) in
            if let task = running[place] { return (task, false) }
            let task = Task<Bool, any Error> { [self] in
                defer { forget(place) }
                return try await work()
            }
            running[place] = task
            return (task, true)
        }
        return try await task.value && isOwn
    }

    private func forget(_ place: Int64) { running.withLock { $0[place] = nil } }
}
