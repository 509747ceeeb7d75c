import GRDB
import Synchronization
import Testing
import TidemarkWire

@testable import Tidemark

/// A device's wire with a stream of nudges, whose other end the test holds.
private final class NudgedWire: StreamingTransport {
    enum Step: Sendable {
        case bytes([UInt8])
        case end
        case fail
    }

    private struct State {
        var requests: [TransportRequest] = []
        var open: AsyncStream<Step>.Continuation?
        var status = 200
        var taken = 0
    }

    private let wire: Wire
    private let state = Mutex(State())

    init(_ wire: Wire) { self.wire = wire }

    /// The requests for streams so far.
    var streams: [TransportRequest] { state.withLock(\.requests) }
    /// How many pieces were handed over, and taken.
    var taken: Int { state.withLock(\.taken) }
    var isOpen: Bool { state.withLock { $0.open != nil } }

    /// How later streams are answered.
    func answer(_ status: Int) { state.withLock { $0.status = status } }

    func tell(_ step: Step) { _ = state.withLock { $0.open?.yield(step) } }
    func tell(_ text: String) { tell(.bytes(Array(text.utf8))) }

    func send(_ request: TransportRequest) async throws -> TransportResponse { try await wire.send(request) }

    func follow(
        _ request: TransportRequest, receiving receive: @Sendable ([UInt8]) async throws -> Void
    ) async throws -> TransportResponse {
        let (steps, continuation) = AsyncStream.makeStream(of: Step.self)
        let status = state.withLock { state in
            state.requests.append(request)
            if state.status == 200 { state.open = continuation }
            return state.status
        }
        guard status == 200 else { return TransportResponse(status: status) }
        defer { state.withLock { $0.open = nil } }
        steps: for await step in steps {
            switch step {
            case .bytes(let bytes): try await receive(bytes)
            case .end: break steps
            case .fail: throw Wire.Lost()
            }
            state.withLock { $0.taken += 1 }
        }
        return TransportResponse(status: status)
    }
}

@Suite("Nudges on the device (B3, E6)", .hangLimit)
struct DeviceNudgeTests {
    /// A device whose engine hears of nothing but by nudges: no tick comes while a test runs.
    private struct Nudged {
        let pair: Pair
        let wire: NudgedWire
        let engine: SyncEngine

        init(_ change: (inout SyncConfiguration) -> Void = { _ in }) async throws {
            pair = try await Pair()
            wire = NudgedWire(pair.here.wire)
            var configuration = SyncConfiguration()
            configuration.tick = .seconds(3600)
            configuration.pollInterval = .seconds(3600)
            configuration.backoff = .init(base: .milliseconds(10), maximum: .milliseconds(50), jitter: .milliseconds(1))
            change(&configuration)
            engine = try SyncEngine(
                for: pair.here.writer, tables: pair.here.tables, scopes: [Device.scope], transport: wire,
                configuration: configuration)
        }

        /// Runs the engine for as long as `body` runs, by a clock that stands still unless it is another one: a stream
        /// is not silent for long then, however busy the machine is.
        func run(
            by clock: any Environment = CountingClock(standingStill: true), _ body: () async throws -> Void
        ) async throws {
            let running = Dependencies.$current.withValue(clock) { Task { [engine] in try await engine.run() } }
            defer { running.cancel() }
            try await body()
        }

        var exchanges: Int {
            get async { await pair.here.wire.requests.count { $0.path == "/sync" } }
        }

        var notes: Int {
            get async throws { try await pair.here.rows("SELECT * FROM note").count }
        }

        /// Waits until the first exchange is through and the stream is open.
        func waitUntilIdle() async throws {
            try await poll { try await engine.status().lastSync != nil && wire.isOpen }
            try await poll { try await engine.status().activity == .idle }
        }

        func insertThere(_ id: String) async throws -> Version {
            try await pair.there.sql("INSERT INTO note VALUES ('\(id)', 'theirs', 'text', 1, NULL)")
            try await pair.there.sync()
            return try #require(try await pair.there.engine().status().scopes[Device.scope]?.head)
        }

        /// Tells a nudge, and waits until the engine has taken it.
        func nudge(_ head: Version, in scope: Scope = Device.scope) async throws {
            let before = wire.taken
            wire.tell(Nudge(scope: scope, head: head).text())
            try await poll { wire.taken > before }
        }
    }

    @Test("A nudge with a newer head pulls the scope; one stream is asked for, with its name")
    func pulls() async throws {
        let nudged = try await Nudged()
        try await nudged.run {
            try await nudged.waitUntilIdle()
            let head = try await nudged.insertThere("n1")
            try await nudged.nudge(head)
            try await poll { try await nudged.notes == 1 }
            #expect(nudged.wire.streams.map(\.path) == ["/sync/events"])
            #expect(nudged.wire.streams[0].query == [.init("scope", Device.scope.name)])
        }
    }

    @Test("A nudge of what is here already asks nobody, nor one of another scope, nor what is no nudge")
    func known() async throws {
        let nudged = try await Nudged()
        try await nudged.run {
            try await nudged.waitUntilIdle()
            var head = try await nudged.insertThere("n1")
            try await nudged.nudge(head)
            try await poll { try await nudged.notes == 1 }
            try await nudged.waitUntilIdle()
            let before = await nudged.exchanges
            for known in [head, head - 1, 0] { try await nudged.nudge(known) }
            try await nudged.nudge(900, in: "another")
            let taken = nudged.wire.taken
            nudged.wire.tell("event: changes\ndata: {\"scope\":7}\n\nevent: changes\ndata: no JSON\n\n:\n\n")
            nudged.wire.tell("event: other\ndata: {\"scope\":\"\(Device.scope)\",\"head\":900}\n\n")
            try await poll { nudged.wire.taken == taken + 2 }
            // Behind all of them comes one that pulls, so that an exchange of theirs would be counted.
            head = try await nudged.insertThere("n2")
            try await nudged.nudge(head)
            try await poll { try await nudged.notes == 2 }
            #expect(await nudged.exchanges == before + 1)
        }
    }

    @Test("A nudge that comes during an exchange is looked at behind it")
    func busy() async throws {
        let nudged = try await Nudged()
        try await nudged.run {
            try await nudged.waitUntilIdle()
            // The answer of this device's push is made before the other one writes, and comes after the nudge.
            await nudged.pair.here.wire.next { request, inner in
                let answer = try await inner.send(request)
                let head = try await nudged.insertThere("n1")
                try await nudged.nudge(head)
                return answer
            }
            try await nudged.pair.here.sql("INSERT INTO note VALUES ('mine', 'mine', 'text', 1, NULL)")
            try await poll { try await nudged.notes == 2 }
        }
    }

    @Test("A stream that ends, breaks off or is refused is opened anew")
    func reopened() async throws {
        let nudged = try await Nudged()
        try await nudged.run {
            try await nudged.waitUntilIdle()
            for (count, step) in [NudgedWire.Step.end, .fail, .bytes(Array(repeating: 120, count: 1 << 17))]
                .enumerated()
            {
                nudged.wire.tell(step)
                try await poll { nudged.wire.streams.count == count + 2 && nudged.wire.isOpen }
            }
            nudged.wire.answer(503)
            nudged.wire.tell(.end)
            try await poll { nudged.wire.streams.count > 7 }
            #expect(try await nudged.engine.status().receivesNudges == false)
            nudged.wire.answer(200)
            try await poll { nudged.wire.isOpen }
            let head = try await nudged.insertThere("n1")
            try await nudged.nudge(head)
            try await poll { try await nudged.notes == 1 }
            #expect(try await nudged.engine.status().receivesNudges)
        }
    }

    @Test("Where the server has no streams, the app's word that there may be news opens one before the wait is over")
    func woken() async throws {
        let nudged = try await Nudged {
            $0.backoff = .init(base: .seconds(600), maximum: .seconds(900), jitter: .zero)
            $0.longestWait = .seconds(900)
        }
        nudged.wire.answer(404)
        try await nudged.run {
            try await poll { nudged.wire.streams.count == 1 }
            try await poll { try await nudged.engine.status().activity == .idle }
            nudged.wire.answer(200)
            try await poll {
                await nudged.engine.wake()
                return nudged.wire.isOpen
            }
        }
    }

    @Test("A stream on which nothing comes, not even a comment, is given up after three comments' time")
    func silent() async throws {
        let nudged = try await Nudged { $0.pollInterval = QuickClock.poll }
        try await nudged.run(by: QuickClock(seed: 1)) { try await poll { nudged.wire.streams.count > 2 } }
    }

    @Test("In the background there is no stream, and back in front there is one")
    func background() async throws {
        let nudged = try await Nudged()
        try await nudged.run {
            try await nudged.waitUntilIdle()
            await nudged.engine.use(.background)
            try await poll { !nudged.wire.isOpen }
            var front = SyncConfiguration()
            front.tick = .seconds(3600)
            await nudged.engine.use(front)
            try await poll { nudged.wire.isOpen }
            #expect(nudged.wire.streams.count == 2)
        }
    }

    @Test("Signing out ends the stream")
    func signedOut() async throws {
        let nudged = try await Nudged()
        try await nudged.run {
            try await nudged.waitUntilIdle()
            await nudged.engine.disconnect()
            try await poll { !nudged.wire.isOpen }
        }
    }
}
