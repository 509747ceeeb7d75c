import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// What an app tells of itself and its device, and the time that a system grants it (E6).
@Suite(.hangLimit) struct ConditionsTests {
    private static func patient() -> SyncConfiguration {
        var configuration = SyncConfiguration()
        configuration.tick = .seconds(3600)
        configuration.longestWait = .seconds(3600)
        configuration.backoff = .init(base: .seconds(1800), maximum: .seconds(3600), jitter: .zero)
        return configuration
    }

    /// No network.
    private struct Nowhere: Transport {
        func send(_ request: TransportRequest) async throws -> TransportResponse { throw Wire.Lost() }
    }

    private func insert(_ device: Device, _ id: String) async throws {
        try await device.sql("INSERT INTO note VALUES ('\(id)', 'theirs', 'text', 1, NULL)")
        try await device.sync()
    }

    @Test("A network that is back ends the wait after a failure, and so does a return to the screen")
    func regained() async throws {
        let pair = try await Pair()
        let engine = try pair.here.engine(Self.patient())
        let running = Task { try await engine.run() }
        defer { running.cancel() }
        try await poll { try await engine.status().lastSync != nil }
        for (id, isNetwork) in [("a", true), ("b", false)] {
            var conditions = SyncConditions()
            if isNetwork { conditions.isOnline = false } else { conditions.isInForeground = false }
            await pair.here.wire.connect(to: Nowhere())
            await engine.adapt(to: conditions)
            try await insert(pair.there, id)
            await engine.wake()
            try await poll { try await engine.status().lastError != nil }
            await pair.here.wire.connect(to: InProcessTransport(to: pair.server) { _ in .readWrite(as: "ada") })
            #expect(try await pair.here.rows("SELECT id FROM note WHERE id = '\(id)'").isEmpty)
            await engine.adapt(to: SyncConditions())
            try await poll { try await pair.here.rows("SELECT id FROM note WHERE id = '\(id)'").count == 1 }
        }
    }

    @Test("A scope at rest makes no request because of a condition that calls for none")
    func quiet() async throws {
        let pair = try await Pair()
        let engine = try pair.here.engine(Self.patient())
        let running = Task { try await engine.run() }
        defer { running.cancel() }
        try await poll { try await engine.status().lastSync != nil }
        try await poll { try await engine.status().activity == .idle }
        let before = await pair.here.wire.requests.count
        var conditions = SyncConditions()
        for change in [\SyncConditions.isLowPower, \.isMetered, \.isOnline, \.isInForeground] {
            conditions[keyPath: change].toggle()
            await engine.adapt(to: conditions)
            // The loop has looked anew how long it sleeps.
            for driver in await engine.drivers { try await poll { await !driver.signal.isRaised } }
        }
        #expect(await pair.here.wire.requests.count == before)
        conditions = SyncConditions()
        await engine.adapt(to: conditions)
        try await poll { await pair.here.wire.requests.count > before }
    }

    @Test("A condition that was told before the engine runs again does not keep its start from ending a wait")
    func beforeTheStart() async throws {
        let pair = try await Pair()
        try await insert(pair.there, "a")
        await pair.here.wire.connect(to: Nowhere())
        let engine = try pair.here.engine(Self.patient())
        let first = Task { try await engine.run() }
        try await poll { try await engine.status().lastError != nil }
        first.cancel()
        try? await first.value
        await pair.here.wire.connect(to: InProcessTransport(to: pair.server) { _ in .readWrite(as: "ada") })
        var conditions = SyncConditions()
        conditions.isLowPower = true
        await engine.adapt(to: conditions)
        let running = Task { try await engine.run() }
        defer { running.cancel() }
        try await poll { try await pair.here.rows("SELECT id FROM note").count == 1 }
    }

    @Test("The configuration stays the app's; conditions that were told before a scope came hold for it too")
    func configuration() async throws {
        let pair = try await Pair()
        var configuration = SyncConfiguration()
        configuration.tick = .seconds(60)
        let engine = try pair.here.engine(configuration)
        var conditions = SyncConditions()
        conditions.isLowPower = true
        await engine.adapt(to: conditions)
        try await engine.install()
        #expect(await engine.configuration == configuration)
        for driver in await engine.drivers { #expect(await driver.configuration.tick == .seconds(240)) }
        configuration.tick = .seconds(10)
        await engine.use(configuration)
        for driver in await engine.drivers { #expect(await driver.configuration.tick == .seconds(40)) }
        await engine.adapt(to: SyncConditions())
        for driver in await engine.drivers { #expect(await driver.configuration.tick == .seconds(10)) }
    }

    @Test("A granted time that is over ends the sync, and the next one goes on")
    func granted() async throws {
        let pair = try await Pair()
        try await pair.here.sync()
        try await insert(pair.there, "a")
        // An answer that never comes.
        await pair.here.wire.next { _, _ in
            for await _ in AsyncStream<Never>.makeStream().stream {}
            throw Wire.Lost()
        }
        let engine = try pair.here.engine()
        let wire = pair.here.wire
        let before = await wire.requests.count
        // The time is over when the request is out, however busy the machine is.
        let clock = GrantedClock { await wire.requests.dropFirst(before).contains { $0.method == "POST" } }
        let cut = try await Dependencies.$current.withValue(clock) {
            try await engine.syncNow(within: GrantedClock.time)
        }
        #expect(cut == nil)
        #expect(try await engine.status().lastError == nil, "A time that is over is no failure.")
        let report = try #require(try await engine.syncNow(within: .seconds(3600)))
        #expect(report.applied == 1)
        #expect(try await pair.here.rows("SELECT id FROM note").count == 1)
        await pair.here.wire.loseRequest()
        await #expect(throws: SyncError.self) { try await engine.syncNow(within: .seconds(3600)) }
    }
}
