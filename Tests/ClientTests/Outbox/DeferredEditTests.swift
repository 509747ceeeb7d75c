import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("An edit that the server has no room for waits on the device, and all others go on (I14)")
struct DeferredEditTests {
    private let directory: TestDirectory
    private let store: any ChangeStore

    init() throws {
        directory = try TestDirectory()
        store = try Device.store(in: directory)
    }

    private func server(rows: Int) -> SyncServer {
        var limits = Limits()
        limits.scopeRows = rows
        return SyncServer(store: store, limits: limits)
    }

    /// A device with six notes, of which the server takes four, and another one.
    private func devices() async throws -> (a: Device, b: Device) {
        let server = server(rows: 4)
        let a = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "a")
        let b = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "b")
        try await a.sql(
            "INSERT INTO note (id, title) VALUES ('n1','a'),('n2','a'),('n3','a'),('n4','a'),('n5','a'),('n6','a')")
        await expectFull(a)
        try await b.sync()
        return (a, b)
    }

    private func expectFull(_ device: Device, _ place: SourceLocation = #_sourceLocation) async {
        let error = await #expect(throws: SyncError.self, sourceLocation: place) { try await device.sync() }
        #expect(error?.code == .quotaExceeded && error?.recovery == .wait, sourceLocation: place)
    }

    @Test("a row that names a record without room waits with it, also where each is in a request of its own")
    func dependants() async throws {
        var limits = Limits()
        (limits.scopeRows, limits.pushBytes) = (1, 1)
        let server = SyncServer(store: store, limits: limits)
        try await server.commit(to: Device.scope) { $0.upsert("list", id: "first", [:]) }
        let device = try await Device(
            """
            CREATE TABLE list (id TEXT PRIMARY KEY, name TEXT);
            CREATE TABLE item (id TEXT PRIMARY KEY, list TEXT REFERENCES list(id), name TEXT);
            """, tables: ["list", "item"], server: server, in: directory)
        try await device.sql("INSERT INTO list VALUES ('l', 'a'); INSERT INTO item VALUES ('i', 'l', 'b')")
        await expectFull(device)
        let posts = await device.wire.bodies.count { $0.contains(#""number":"#) }
        #expect(posts == 2, "the parent, and what depends on it; neither again")
        #expect(try await device.engine().status().rows.outgoing == 2)
        await device.wire.connect(
            to: InProcessTransport(to: SyncServer(store: store)) { _ in .readWrite(as: "ada") })
        try await device.sync()
        #expect(try await device.engine().status().rows.outgoing == 0)
        #expect(try await store.read(Device.scope) { $0.state.size.rows } == 3)
    }

    @Test(
        "a row that is made for a record without room waits with it, under whatever kind of id",
        .records("queue deferred, dropped"),
        arguments: [true, false])
    func laterDependants(isTemporary: Bool) async throws {
        var declared = EntityDeclaration.state("list", ids: .server)
        if !isTemporary { declared = .state("list") }
        var limits = Limits()
        limits.scopeRows = 1
        let server = SyncServer(store: store, entities: [declared], limits: limits)
        try await server.commit(to: Device.scope) { $0.upsert("other", id: "first", [:]) }
        let device = try await Device(
            """
            CREATE TABLE list (id TEXT PRIMARY KEY, name TEXT);
            CREATE TABLE item (id TEXT PRIMARY KEY, list TEXT REFERENCES list(id), name TEXT);
            """, tables: ["list", "item"], server: server, in: directory)
        let id = isTemporary ? "local-l" : "l"
        try await device.sql("INSERT INTO list VALUES ('\(id)', 'a')")
        await expectFull(device)
        try await device.sql("INSERT INTO item VALUES ('i', '\(id)', 'b'), ('j', '\(id)', 'c')")
        let schema = try await schema(device)
        let until = try #require(try await deferral(device)).until
        func sealed(at now: Int64) async throws -> Int {
            try await device.writer.write { db in
                try Deferral.resume(db, schema, Device.scope, now: now, asked: false)
            }
            return try await device.seal(declarations: Declarations(entities: [declared])).count
        }
        #expect(try await sealed(at: until - 1) == 0)
        #expect(try await device.writer.read { db in try !Pending.exists(db, schema, Device.scope) })
        #expect(try await device.engine().status().rows.outgoing == 3)
        #expect(try await sealed(at: until) == 3)
    }

    private let titles = "SELECT id, title FROM note ORDER BY id"

    @Test("a record without room stays on screen and is counted; edits, deletes and pulls pass")
    func waits() async throws {
        let (a, b) = try await devices()
        let posts = await a.wire.bodies.count
        #expect(posts <= 3, "it is not asked in a loop")
        #expect(try await b.count("note") == 4)
        #expect(try await a.count("note") == 6)
        var status = try await a.engine().status()
        #expect((status.pending, status.rows.outgoing, status.rows.confirmed, status.rejected) == (2, 2, 4, 0))
        #expect(status.lastError?.code == .quotaExceeded)
        try await b.sql("UPDATE note SET title = 'b' WHERE id = 'n3'")
        try await b.sync()
        try await a.sql("UPDATE note SET title = 'mine' WHERE id = 'n1'; DELETE FROM note WHERE id IN ('n2', 'n5')")
        await expectFull(a)
        try await b.sync()
        #expect(try await b.rows(titles) == [#""n1"|"mine""#, #""n3"|"b""#, #""n4"|"a""#])
        #expect(try await a.rows(titles) == [#""n1"|"mine""#, #""n3"|"b""#, #""n4"|"a""#, #""n6"|"a""#])
        status = try await a.engine().status()
        #expect((status.pending, status.rows.outgoing) == (1, 1))
    }

    @Test("it goes again when its time has come, when the app asks, and where it was edited")
    func again() async throws {
        let (a, _) = try await devices()
        let schema = try await schema(a)
        let until = try #require(try await deferral(a)).until
        func sealed(at now: Int64) async throws -> Int {
            try await a.writer.write { db in
                try Deferral.resume(db, schema, Device.scope, now: now, asked: false)
            }
            return try await a.seal().count
        }
        func isAnyToSend() async throws -> Bool {
            try await a.writer.read { db in try Pending.exists(db, schema, Device.scope) }
        }
        #expect(try await sealed(at: until - 1) == 0)
        #expect(try await !isAnyToSend(), "an app that waits would ask at every write")
        try await a.sql("UPDATE note SET title = 'more' WHERE id = 'n6'")
        #expect(try await isAnyToSend(), "an edit would wait for the tick")
        #expect(try await sealed(at: until - 1) == 1)
        #expect(try await sealed(at: until) == 2)
        await expectFull(a)
        #expect(try await deferral(a)?.attempts == 2)
    }

    @Test("it is taken as soon as there is room, and nothing remembers that it waited")
    func room() async throws {
        let (a, b) = try await devices()
        let larger = server(rows: 1000)
        for device in [a, b] {
            await device.wire.connect(to: InProcessTransport(to: larger) { _ in .readWrite(as: "ada") })
        }
        try await a.sync()
        try await b.sync()
        #expect(try await b.count("note") == 6)
        let status = try await a.engine().status()
        #expect(status.pending == 0 && status.lastError == nil)
        #expect(try await deferral(a) == nil)
    }

    @Test("an edit made while its record was being put off goes at once")
    func editedMeanwhile() async throws {
        let (a, b) = try await devices()
        await a.wire.next { request, inner in
            let response = try await inner.send(request)
            try await a.sql("DELETE FROM note WHERE id = 'n6'")
            return response
        }
        await expectFull(a)
        #expect(try await a.engine().status().pending == 1)
        #expect(try await a.count("note") == 5)
        try await b.sync()
        #expect(try await b.count("note") == 4)
    }

    private func schema(_ device: Device) async throws -> SyncSchema {
        let tables = try SyncedTable.resolve(device.tables, scopes: [Device.scope])
        return try await device.writer.write { db in
            try Installation.install(db, tables: tables, scopes: [Device.scope])
        }
    }

    private func deferral(_ device: Device) async throws -> Deferral? {
        try await device.writer.read { db in try Deferral.read(db, Device.scope) }
    }
}
