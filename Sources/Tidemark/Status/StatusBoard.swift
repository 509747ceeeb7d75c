/// Tells several listeners the latest value; one who is slow misses the middle, never the end.
actor StatusBoard<Value: Hashable & Sendable> {
    private var listeners: [Int: AsyncStream<Value>.Continuation] = [:]
    private var nextListener = 0
    private var latest: Value?

    /// Whether anybody wants to know; else it need not be read.
    var isWatched: Bool { !listeners.isEmpty }

    func add(_ continuation: AsyncStream<Value>.Continuation) {
        let number = nextListener
        nextListener += 1
        listeners[number] = continuation
        continuation.onTermination = { _ in Task { await self.remove(number) } }
        if let latest { continuation.yield(latest) }
    }

    func publish(_ status: Value) {
        guard status != latest else { return }
        latest = status
        for listener in listeners.values { listener.yield(status) }
    }

    private func remove(_ number: Int) {
        listeners[number] = nil
        // Without a listener nothing is read, and the latest value grows old.
        if listeners.isEmpty { latest = nil }
    }
}
