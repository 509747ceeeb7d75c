import Foundation
import GRDB
import Synchronization
import Testing
import TidemarkCore
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// What a server, or the way to it, answers all day long.
enum Trouble: String, CaseIterable, Sendable {
    case lost, busy, failed, unauthenticated, forbidden, refused, missing, portal

    struct Lost: Error {}

    func answer() throws -> TransportResponse {
        switch self {
        case .lost: throw Lost()
        case .busy: Self.problem(.unavailable)
        case .failed: Self.problem(.internalError)
        case .unauthenticated: Self.problem(.unauthenticated)
        case .forbidden: Self.problem(.scopeForbidden)
        case .refused: Self.problem(.malformedRequest)
        case .missing: Self.problem(.notFound)
        case .portal:
            TransportResponse(status: 403, headers: ["Content-Type": "text/html"], body: Array("<html>".utf8))
        }
    }

    static func problem(_ code: ProblemCode) -> TransportResponse {
        TransportResponse(
            status: code.status,
            headers: ["Content-Type": Problem.contentType, ProtocolVersion.header: String(ProtocolVersion.current)],
            body: Problem(code, "d").body())
    }

    /// Whether the server itself says that it will not take the same another time.
    var isRefusal: Bool { [.unauthenticated, .forbidden, .refused, .missing].contains(self) }

    /// Its row of the table in Failures.md.
    var row: String {
        switch self {
        case .lost, .busy, .portal: "lost"
        case .failed: "failed"
        case .unauthenticated, .forbidden, .refused, .missing: "refused"
        }
    }
}

/// Answers everything with one trouble, once it has begun, and notes when it was asked.
private actor Troubled: Transport {
    private let inner: any Transport
    private let clock: QuickClock
    private var trouble: Trouble?
    private(set) var moments: [Int64] = []
    private(set) var bodies: [String] = []
    private var waiting: [(count: Int, CheckedContinuation<Void, Never>)] = []

    init(to inner: any Transport, _ clock: QuickClock) {
        self.inner = inner
        self.clock = clock
    }

    func begin(_ trouble: Trouble?) {
        self.trouble = trouble
        (moments, bodies) = ([], [])
    }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        // What the operator declared is known, as it is to an app that has run for a while.
        guard request.path != "/sync/declarations", let trouble else { return try await inner.send(request) }
        moments.append(clock.uptime.milliseconds)
        bodies.append(String(decoding: request.body, as: UTF8.self))
        let due = waiting.filter { $0.count <= moments.count }
        waiting.removeAll { $0.count <= moments.count }
        for (_, continuation) in due { continuation.resume() }
        return try trouble.answer()
    }

    /// Returns when so many requests have been made since the trouble began.
    func wait(for count: Int) async {
        guard moments.count < count else { return }
        await withCheckedContinuation { waiting.append((count, $0)) }
    }
}

@Suite("Waits after failures, in a running engine over a day (B10, B11, B12)")
struct RetryTests {
    private static let day: Int64 = 24 * 3_600_000

    private static func configuration(_ name: String) -> SyncConfiguration {
        var configuration = name == "background" ? SyncConfiguration.background : .mobile
        configuration.pollInterval = QuickClock.poll
        return configuration
    }

    /// The seconds of a row of the table, in the order of failures.
    private static func table(_ configuration: String, _ row: String) throws -> [Int64] {
        let page = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../Documentation/Failures.md")
        let start = "| \(configuration) | \(row) |"
        let line = try #require(
            String(contentsOf: page, encoding: .utf8).split(separator: "\n").first { $0.hasPrefix(start) })
        return line.dropFirst(start.count).split(separator: ",").compactMap {
            Int64($0.filter(\.isNumber))
        }.map { $0 * 1000 }
    }

    /// The waits of a day in which every exchange meets the same trouble, and what was sent.
    private func waits(
        _ trouble: Trouble, _ configuration: String, seed: UInt64?, count: Int
    ) async throws -> (waits: [Int64], bodies: [String], device: Device) {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sync()
        try await device.sql("INSERT INTO note (id) VALUES ('n1'), ('n2'), ('n3')")
        let clock = QuickClock(seed: seed)
        let transport = Troubled(to: device.wire, clock)
        await transport.begin(trouble)
        let engine = try SyncEngine(
            for: device.writer, tables: device.tables, scopes: [Device.scope], transport: transport,
            configuration: Self.configuration(configuration))
        let running = Dependencies.$current.withValue(clock) { Task { try await engine.run() } }
        await transport.wait(for: count)
        running.cancel()
        try await running.value
        let moments = await transport.moments
        // What is halved or asked anew without a wait is one attempt.
        let waits = zip(moments, moments.dropFirst()).map { $1 - $0 }.filter { $0 > 0 }
        return (waits, await transport.bodies, device)
    }

    @Test(
        "each failure has the waits that the page promises", .hangLimit, arguments: Trouble.allCases,
        ["foreground", "background"])
    func sequence(trouble: Trouble, configuration: String) async throws {
        let table = try Self.table(configuration, trouble.row)
        #expect(table.count == 12)
        let (waits, _, _) = try await waits(trouble, configuration, seed: nil, count: 40)
        #expect(Array(waits.prefix(12)) == table)
        #expect(waits.dropFirst(12).allSatisfy { $0 == table.last })
    }

    @Test(
        "and never without jitter, over a whole day", .hangLimit,
        arguments: [Trouble.lost, .failed, .refused], ["foreground", "background"])
    func jitter(trouble: Trouble, configuration: String) async throws {
        let table = try Self.table(configuration, trouble.row)
        let longest = configuration == "foreground" ? 30_000 : 900_000 as Int64
        // A day has as many attempts as this at most.
        let count = Int(Self.day / (table.last ?? 1)) + table.count
        let (waits, _, _) = try await waits(trouble, configuration, seed: 7, count: min(count, 600))
        for (index, wait) in waits.enumerated() {
            let least = table[min(index, table.count - 1)]
            #expect((least...min(longest, least + max(1_000, least))).contains(wait), "\(index)")
        }
        #expect(Set(waits.suffix(30)).count > 20)
    }

    @Test(
        "edits that the server refused in its own words are not pushed again, and pulls go on", .hangLimit,
        arguments: Trouble.allCases.filter(\.isRefusal))
    func pushStops(trouble: Trouble) async throws {
        let (_, bodies, device) = try await waits(trouble, "foreground", seed: nil, count: 40)
        let isPush = bodies.map { $0.contains(#""operations":[{"#) }
        let pushes = isPush.prefix { $0 }.count
        // Halved, until one operation is sent alone: it may be the blocker.
        #expect((1...3).contains(pushes))
        #expect(isPush.dropFirst(pushes).allSatisfy { !$0 })
        #expect(try await device.engine().status().rejected == 0)
        #expect(try await device.rows("SELECT id FROM note").count == (trouble == .forbidden ? 0 : 3))
    }

    @Test("an app that is started anew goes on where it was", .hangLimit)
    func launch() async throws {
        let (waits, _, device) = try await waits(.lost, "background", seed: nil, count: 8)
        #expect(waits.count == 7)
        let stored = try await device.engine().status().scopes[Device.scope]
        #expect(stored?.failures ?? 0 >= 7)
        #expect(stored?.nextAttempt != nil)
        let clock = QuickClock(seed: nil)
        let transport = Troubled(to: device.wire, clock)
        await transport.begin(.lost)
        let engine = try SyncEngine(
            for: device.writer, tables: device.tables, scopes: [Device.scope], transport: transport,
            configuration: Self.configuration("background"))
        let running = Dependencies.$current.withValue(clock) { Task { try await engine.run() } }
        await transport.wait(for: 2)
        running.cancel()
        try await running.value
        let moments = await transport.moments
        // At once, and then no sooner than it would have been.
        #expect(moments[0] == 0)
        #expect(moments[1] >= 128_000)
        try await device.sync()
        let after = try await device.engine().status().scopes[Device.scope]
        #expect(after?.failures == 0 && after?.nextAttempt == nil)
    }
}
