import Testing
import TidemarkServer

@testable import Tidemark
@testable import TidemarkCore

@Suite("Batch sizes by context (B7)")
struct BatchSizeTests {
    struct Context: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var configuration: SyncConfiguration
        var pages: ClosedRange<Int>
    }

    static let contexts = [
        Context(testDescription: "mobile", configuration: .mobile, pages: 50...100),
        Context(testDescription: "desktop", configuration: .desktop, pages: 500...1000),
        Context(testDescription: "background", configuration: .background, pages: 100...500),
    ]

    @Test("pages begin at the small end of the context's range and never leave it", arguments: contexts)
    func pages(context: Context) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        let engine = try device.engine(context.configuration)
        try await engine.syncNow()
        _ = try await server.commit(to: "w:1") { changes in
            for index in 0..<2500 { changes.upsert("note", id: .init(stringLiteral: "n\(index)"), ["rank": 1]) }
        }
        try await quickly { try await engine.syncNow() }
        #expect(try await device.count("note") == 2500)
        let limits = await limits(device)
        #expect(limits.first == context.pages.lowerBound)
        #expect(limits.allSatisfy(context.pages.contains))
        #expect(limits.contains(context.pages.upperBound), "full and quick pages grow (A11): \(limits)")
    }

    /// Works by a clock that stands still: however busy the machine is, each page comes in no time.
    private func quickly(_ work: () async throws -> Void) async throws {
        try await Dependencies.$current.withValue(CountingClock(standingStill: true)) { try await work() }
    }

    private func limits(_ device: Device) async -> [Int] {
        await device.wire.bodies.compactMap { body in body.firstMatch(of: /"limit":(\d+)/).flatMap { Int($0.1) } }
    }

    @Test("pages of many bytes shrink, and so do pages that get lost, down to the small end (A11)")
    func shrinking() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        let engine = try device.engine(.mobile)
        try await quickly { try await engine.syncNow() }
        let body = String(repeating: "x", count: 30_000)
        _ = try await server.commit(to: "w:1") { changes in
            for index in 0..<200 { changes.upsert("note", id: .init(stringLiteral: "a\(index)"), ["rank": 1]) }
            for index in 0..<300 {
                changes.upsert("note", id: .init(stringLiteral: "b\(index)"), ["body": .text(body)])
            }
        }
        try await quickly { try await engine.syncNow() }
        let asked = await limits(device)
        let grown = try #require(asked.firstIndex(of: 100))
        #expect(asked[grown...].contains(50), "\(asked)")
        _ = try await server.commit(to: "w:1") { changes in
            for index in 0..<200 { changes.upsert("note", id: .init(stringLiteral: "c\(index)"), ["rank": 1]) }
        }
        try await quickly { try await engine.syncNow() }
        #expect(await limits(device).last == 100)
        await device.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        try await quickly { try await engine.syncNow() }
        #expect(await limits(device).last == 50)
        #expect(try await device.count("note") == 700)
    }

    @Test("an engine that runs goes over to another context, and syncs at once (B7)", .hangLimit)
    func changes() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        let engine = try device.engine(.background)
        let running = Task { try await engine.run() }
        for await status in engine.statusUpdates where status.scopes["w:1"]?.complete != nil { break }
        _ = try await server.commit(to: "w:1") { changes in
            for index in 0..<2500 { changes.upsert("note", id: .init(stringLiteral: "n\(index)"), ["rank": 1]) }
        }
        let before = await limits(device).count
        await engine.use(.mobile)
        #expect(await engine.configuration == .mobile)
        // Nothing else calls for it for 15 minutes.
        for await status in engine.statusUpdates where (status.scopes["w:1"]?.complete ?? 0) >= 2500 { break }
        #expect(try await device.count("note") == 2500)
        let after = await limits(device).dropFirst(before)
        #expect(after.count > 20 && after.allSatisfy((50...100).contains), "\(after)")
        await engine.use(.desktop)
        _ = try await server.commit(to: "w:1") { changes in
            for index in 0..<600 { changes.upsert("note", id: .init(stringLiteral: "m\(index)"), ["rank": 1]) }
        }
        await engine.wake()
        for await status in engine.statusUpdates where (status.scopes["w:1"]?.complete ?? 0) >= 3100 { break }
        #expect(await limits(device).last ?? 0 >= 500)
        running.cancel()
        try await running.value
    }

    @Test("no request carries more operations than the context's pages have rows", arguments: contexts)
    func operations(context: Context) async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql(
            """
            WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 1100)
            INSERT INTO note (id) SELECT 'n' || i FROM n
            """)
        try await device.engine(context.configuration).syncNow()
        let counts = await device.wire.bodies.map { $0.matches(of: /"number":/).count }
        #expect(counts.max() == context.pages.upperBound)
        #expect(counts.reduce(0, +) == 1100)
    }

    @Test("a bootstrap's pages have 1000 to 5000 rows in every context", arguments: contexts)
    func snapshots(context: Context) {
        var sizing = PageSizing(context.configuration.snapshotPaging)
        #expect(sizing.limit == 1000)
        for _ in 0..<20 { sizing.received(rows: sizing.limit, bytes: 100, milliseconds: 1) }
        #expect(sizing.limit == 5000)
        for _ in 0..<20 { sizing.failed() }
        #expect(sizing.limit == 1000)
    }
}
