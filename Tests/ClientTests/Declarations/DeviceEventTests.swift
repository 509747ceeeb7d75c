import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Events on the device: only appended, kept whole, in their order (A1, A16)")
struct DeviceEventTests {
    private static let schema = "CREATE TABLE audit (id TEXT PRIMARY KEY, what TEXT, who TEXT)"

    private let directory: TestDirectory
    private let server: SyncServer

    init() throws {
        directory = try TestDirectory()
        server = try Device.server(in: directory, entities: [.events("audit")])
    }

    private func device(_ name: String) async throws -> Device {
        try await Device(Self.schema, tables: ["audit"], server: server, in: directory, name: name)
    }

    private func log() async throws -> [String] {
        let page = try await server.changes(in: "w:1", since: nil, limit: nil, access: .read(as: "ada"))
        return String(decoding: page, as: UTF8.self).matches(of: /"type":"(\w+)","entity":"audit","id":"(\w+)"/)
            .map { "\($0.1) \($0.2)" }
    }

    @Test("inserts travel whole, as events, in the order of their capture, and reach other devices")
    func appended() async throws {
        let (here, there) = (try await device("a"), try await device("b"))
        for id in ["z", "m", "a", "q"] {
            try await here.sql("INSERT INTO audit (id, what) VALUES ('\(id)', 'did \(id)')")
        }
        try await here.sync()
        try await here.sql("INSERT INTO audit VALUES ('b', 'later', 'ada')")
        try await here.sync()
        let body = try #require(await here.wire.bodies.last { $0.contains("\"number\"") })
        #expect(body.contains(#""type":"event","entity":"audit","id":"b""#))
        #expect(body.contains(#""data":{"what":"later","who":"ada"}"#))
        #expect(try await log() == ["event z", "event m", "event a", "event q", "event b"])
        try await there.sync()
        #expect(try await there.rows("SELECT * FROM audit ORDER BY id") == here.rows("SELECT * FROM audit ORDER BY id"))
        #expect(try await there.count("audit") == 5)
    }

    @Test("an event that was sent is not changed here: the row goes back, and the reason is kept")
    func changed() async throws {
        let device = try await device("a")
        try await device.sql("INSERT INTO audit VALUES ('e1', 'said', 'ada')")
        try await device.sync()
        try await device.sql("UPDATE audit SET what = 'never said'")
        let engine = try device.engine()
        try await engine.syncNow()
        #expect(try await device.rows("SELECT what FROM audit") == ["\"said\""])
        let refused = try await engine.rejectedOperations()
        #expect(refused.map(\.code) == ["kind_mismatch"])
        #expect(refused.first?.fields == ["what": "never said"])
        #expect(try await log() == ["event e1"])
        #expect(try await device.count("tidemark_shadow_audit") == 0)
    }

    @Test("old events may leave this device: no delete is sent, and they do not come back")
    func pruned() async throws {
        let (here, there) = (try await device("a"), try await device("b"))
        try await here.sql("INSERT INTO audit (id) VALUES ('e1'), ('e2'), ('e3')")
        try await here.sync()
        try await here.sql("DELETE FROM audit WHERE id <> 'e3'")
        let engine = try here.engine()
        try await engine.syncNow()
        #expect(await here.wire.bodies.allSatisfy { !$0.contains("delete") })
        #expect(try await engine.rejectedOperations().isEmpty)
        try await there.sync()
        #expect(try await there.count("audit") == 3)
        try await there.sql("INSERT INTO audit (id) VALUES ('e4')")
        try await there.sync()
        try await here.sync()
        #expect(try await here.rows("SELECT id FROM audit ORDER BY id") == ["\"e3\"", "\"e4\""])
        #expect(try await here.count("tidemark_shadow_audit") == 0)
    }

    @Test("an event that is pruned while it is on its way arrives all the same, and stays away here")
    func prunedInFlight() async throws {
        let device = try await device("a")
        try await device.sql("INSERT INTO audit (id) VALUES ('e1')")
        await device.wire.next { request, inner in
            let answer = try await inner.send(request)
            try await device.sql("DELETE FROM audit")
            return answer
        }
        try await device.sync()
        #expect(try await log() == ["event e1"])
        #expect(try await device.count("audit") == 0)
        #expect(try await device.count("tidemark_shadow_audit") == 0)
        try await device.sync()
        #expect(try await device.count("audit") == 0)
    }

    @Test("a lost answer repeats no event")
    func lostAnswer() async throws {
        let device = try await device("a")
        try await device.sql("INSERT INTO audit (id) VALUES ('e1'), ('e2')")
        await device.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await device.sync() }
        try await device.sync()
        #expect(try await log() == ["event e1", "event e2"])
        #expect(try await device.count("audit") == 2)
    }
}
