/// The waits of one simulated world. Time passes only when the world says so.
struct Timers {
    private struct Timer {
        var number: Int
        var device: Int
        var due: Int64
        var continuation: CheckedContinuation<Void, any Error>
    }

    private var timers: [Timer] = []

    /// When the next one is due, in milliseconds of the world's time.
    var next: Int64? { timers.lazy.map(\.due).min() }

    /// Whose waits there are, the one that ends first at first; and when, for those who compare.
    var inOrder: [(device: Int, due: Int64)] {
        timers.sorted { ($0.due, $0.number) < ($1.due, $1.number) }.map { ($0.device, $0.due) }
    }

    mutating func add(_ number: Int, of device: Int, due: Int64, _ continuation: CheckedContinuation<Void, any Error>) {
        timers.append(Timer(number: number, device: device, due: due, continuation: continuation))
    }

    mutating func cancel(_ number: Int) {
        guard let index = timers.firstIndex(where: { $0.number == number }) else { return }
        timers.remove(at: index).continuation.resume(throwing: CancellationError())
    }

    /// Ends the waits that are over by then, the earliest first.
    mutating func fire(at moment: Int64) {
        let over = timers.filter { $0.due <= moment }.sorted { ($0.due, $0.number) < ($1.due, $1.number) }
        timers.removeAll { $0.due <= moment }
        for timer in over { timer.continuation.resume() }
    }
}
