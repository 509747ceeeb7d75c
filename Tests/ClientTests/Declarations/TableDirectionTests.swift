import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Directions per table, on the device (B1)")
struct TableDirectionTests {
    private static let schema = """
        CREATE TABLE country (id TEXT PRIMARY KEY, name TEXT NOT NULL, code TEXT UNIQUE);
        CREATE TABLE city (id TEXT PRIMARY KEY, country TEXT REFERENCES country(id) ON DELETE CASCADE);
        CREATE TABLE report (id TEXT PRIMARY KEY, text TEXT);
        """
    private static let entities: [EntityDeclaration] = [
        .state("country", direction: .pull), .state("report", direction: .push),
    ]

    private let directory: TestDirectory
    private let server: SyncServer

    init() throws {
        directory = try TestDirectory()
        server = try Device.server(in: directory, entities: Self.entities)
    }

    private func device(_ name: String) async throws -> Device {
        try await Device(
            Self.schema, tables: ["country", "city", "report"], server: server, in: directory, name: name)
    }

    private func commitCountries() async throws {
        _ = try await server.commit(to: "w:1") {
            $0.upsert("country", id: "de", ["name": "Germany", "code": "D"])
            $0.upsert("country", id: "fr", ["name": "France", "code": "F"])
        }
    }

    @Test("an edit, a delete and an insert in a table that is only pulled are undone at once, each with its reason")
    func pullOnly() async throws {
        try await commitCountries()
        let device = try await device("a")
        try await device.sync()
        let before = try await device.rows("SELECT * FROM country ORDER BY id")
        try await device.sql(
            """
            UPDATE country SET name = 'Mine' WHERE id = 'de'; DELETE FROM country WHERE id = 'fr';
            INSERT INTO country VALUES ('xx', 'Nowhere', 'X')
            """)
        let engine = try device.engine()
        try await engine.syncNow()
        #expect(try await device.rows("SELECT * FROM country ORDER BY id") == before)
        let refused = try await engine.rejectedOperations()
        #expect(refused.map(\.record).sorted() == ["de", "fr", "xx"])
        #expect(refused.allSatisfy { $0.code == "direction_forbidden" && !$0.hint.isEmpty })
        #expect(refused.first { $0.record == "de" }?.fields == ["name": "Mine"])
        #expect(refused.first { $0.record == "fr" }?.isDelete == true)
        #expect(try await device.count("tidemark_shadow_country") == 0)
        #expect(await device.wire.bodies.allSatisfy { !$0.contains("\"number\"") })
        for operation in refused { try await engine.discard(operation) }
        #expect(try await device.rows("SELECT * FROM country ORDER BY id") == before)
    }

    @Test("a row that an undone insert takes with it by the schema's own rule is an edit, and travels")
    func cascades() async throws {
        try await commitCountries()
        let device = try await device("a")
        try await device.sync()
        try await device.sql("INSERT INTO country VALUES ('xx', 'Nowhere', NULL); INSERT INTO city VALUES ('c', 'xx')")
        try await device.sync()
        #expect(try await device.count("country") == 2)
        try await device.sync()
        #expect(try await device.count("city") == 0)
        #expect(try await device.count("tidemark_shadow_city") == 0)
    }

    @Test("a row that cannot go back to its place is quarantined, and comes back when the place is free")
    func collision() async throws {
        try await commitCountries()
        let device = try await device("a")
        try await device.sync()
        try await device.sql(
            "UPDATE country SET code = NULL WHERE id = 'de'; UPDATE country SET code = 'D' WHERE id = 'fr'")
        try await device.sync()
        #expect(try await device.rows("SELECT id, code FROM country ORDER BY id") == [#""de"|"D""#, #""fr"|"F""#])
        #expect(try await device.count("tidemark_quarantine") == 0)
    }

    @Test("rows that came with the app are not undone: the server's take their place")
    func seeds() async throws {
        try await commitCountries()
        let device = try await device("a")
        try await device.sql("INSERT INTO country VALUES ('de', 'Deutschland', 'D')")
        let engine = try device.engine()
        try await engine.syncNow()
        #expect(try await device.rows("SELECT name FROM country ORDER BY id") == ["\"Germany\"", "\"France\""])
        #expect(try await engine.rejectedOperations().isEmpty)
    }

    @Test("rows that are only pushed reach the server's own programs and no other device")
    func pushOnly() async throws {
        let (here, there) = (try await device("a"), try await device("b"))
        try await here.sql("INSERT INTO report VALUES ('r1', 'secret of a')")
        try await here.sync()
        try await there.sync()
        #expect(try await there.count("report") == 0)
        try await there.sql("INSERT INTO report VALUES ('r1', 'of b')")
        try await there.sync()
        try await here.sync()
        #expect(try await here.rows("SELECT text FROM report") == ["\"secret of a\""])
        #expect(try await there.rows("SELECT text FROM report") == ["\"of b\""])
        #expect(try await there.rows("SELECT state FROM tidemark_operation") == ["\"merged\""])
        #expect(try await here.count("tidemark_shadow_report") + there.count("tidemark_shadow_report") == 0)
        for member in await there.wire.answers { #expect(!member.contains("secret of a")) }
        var service = Access.readWrite(as: "operator")
        service.isService = true
        let page = try await server.changes(in: "w:1", since: nil, limit: nil, access: service)
        #expect(String(decoding: page, as: UTF8.self).contains("of b"))
    }
}
