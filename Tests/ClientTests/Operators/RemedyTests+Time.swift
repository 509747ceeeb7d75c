import Testing
import TidemarkCore
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

// MARK: - Time

extension RemedyTests {
    /// Runs an engine by a clock that goes on by itself, until so many requests have come; answers when each did.
    ///
    /// - Parameters:
    ///   - path: the requests that count.
    ///   - quiet: so many exchanges are answered with the wish to hear nothing for 300 seconds.
    ///   - losing: the path of requests that never arrive.
    private func moments(
        _ count: Int, of path: String = "/sync", quiet: Int = 0, losing: String? = nil
    ) async throws -> [Int64] {
        let clock = QuickClock(seed: nil)
        let timed = TimedWire(device.wire, clock, path: path, quiet: quiet, losing: losing)
        var configuration = SyncConfiguration()
        configuration.pollInterval = QuickClock.poll
        let engine = try SyncEngine(
            for: device.writer, tables: device.tables, scopes: [scope], transport: timed, configuration: configuration)
        let running = Dependencies.$current.withValue(clock) { Task { try await engine.run() } }
        try await poll { await timed.moments.count >= count }
        running.cancel()
        try await running.value
        return await timed.moments
    }

    @Test("A device that is slowed down asks once in the interval, and as ever after a day", .hangLimit)
    func slowed() async throws {
        try await ask(.slowDown(interval: .seconds(3_600)))
        let moments = try await moments(40)
        let waits = zip(moments, moments.dropFirst()).map { $1 - $0 }
        // The first answer brings it, and it is told at once.
        #expect(waits.first == 0)
        let slow = waits.dropFirst().prefix { $0 >= 3_600_000 }
        #expect((23...25).contains(slow.count), "\(waits)")
        #expect(waits.dropFirst(1 + slow.count).allSatisfy { $0 == 30_000 })
        #expect(try await outcome?.result == .done)
    }

    @Test("A device that is stopped asks once in an hour whether it may go on", .hangLimit)
    func slowPoll() async throws {
        try await ask(.stop(message: "m"))
        let moments = try await moments(10)
        let waits = zip(moments, moments.dropFirst()).map { $1 - $0 }
        #expect(waits.first == 0 && waits.dropFirst().allSatisfy { $0 == 3_600_000 }, "\(waits)")
    }

    @Test("A comparison is not begun while the server wants to hear nothing", .hangLimit)
    func verifyQuiet() async throws {
        try await ask(.verify)
        // The first answer brings it, the second one ends the round.
        let moments = try await moments(1, of: "/sync/digest", quiet: 2)
        let first = try #require(moments.first)
        #expect(first >= 600_000)
    }

    @Test("A comparison that fails each time waits longer each time", .hangLimit)
    func verifyBacksOff() async throws {
        try await ask(.verify)
        let moments = try await moments(10, of: "/sync/digest", losing: "/sync/digest")
        let waits = zip(moments, moments.dropFirst()).map { $1 - $0 }
        #expect(waits == waits.sorted())
        let last = try #require(waits.last)
        #expect(last > 120_000, "\(waits)")
    }
}

/// Notes when something is asked for.
private actor TimedWire: Transport {
    private let inner: any Transport
    private let clock: QuickClock
    private let path: String
    private var quiet: Int
    private let losing: String?
    private(set) var moments: [Int64] = []

    init(_ inner: any Transport, _ clock: QuickClock, path: String, quiet: Int, losing: String?) {
        (self.inner, self.clock, self.path, self.quiet, self.losing) = (inner, clock, path, quiet, losing)
    }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        if request.path == path { moments.append(clock.uptime.milliseconds) }
        if request.path == losing { throw Wire.Lost() }
        let answer = try await inner.send(request)
        guard request.path == "/sync", quiet > 0 else { return answer }
        quiet -= 1
        var headers = answer.headers
        headers["Backoff"] = "300"
        return TransportResponse(status: answer.status, headers: headers, body: answer.body)
    }
}
