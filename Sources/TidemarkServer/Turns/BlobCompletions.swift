/// Parts that are read back, each once, however many requests wait for its end. Such a work has no limit of its own:
/// each of those requests is a transfer (``BlobTransfers``) for as long as it lasts, its caller gone or not.
final class BlobCompletions: Sendable {
    /// The waiting requests, by the parts' places. The first of them began the completion.
    private let waiting = Guarded<[Int64: [CheckedContinuation<Bool, any Error>]]>([:])

    /// How many wait for the part at a place.
    func count(at place: Int64) -> Int { waiting.withLock { $0[place]?.count ?? 0 } }

    /// Does the work, or waits for it where it is under way. Answers what came of it, and `false` to who has only
    /// waited: what he asked for was done for another.
    ///
    /// - Parameter begin: begins a work that outlives its caller.
    func join(
        _ place: Int64, by begin: (@escaping @Sendable () async -> Void) -> Void,
        _ work: @escaping @Sendable () async throws -> Bool
    ) async throws -> Bool {
        try await withCheckedThrowingContinuation { continuation in
            let isFirst = waiting.withLock { waiting in
                waiting[place, default: []].append(continuation)
                return waiting[place]?.count == 1
            }
            guard isFirst else { return }
            begin { [self] in
                var result: Result<Bool, any Error>
                do { result = .success(try await work()) } catch { result = .failure(error) }
                for waiter in waiting.withLock({ $0.removeValue(forKey: place) }) ?? [] {
                    waiter.resume(with: result)
                    result = result.map { _ in false }
                }
            }
        }
    }
}
