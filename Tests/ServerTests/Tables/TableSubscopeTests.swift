import Foundation
import Testing
import TidemarkPostgres
import TidemarkServer
import TidemarkWire

@Suite("A table of the operator's own whose entity is in a sub-scope (A3)")
struct TableSubscopeTests {
    private func start() async throws -> TableBench {
        let bench = try await TableBench(entities: [.state("photo", subscope: "media")])
        try await bench.sql(
            """
            CREATE TABLE ~.album (id text PRIMARY KEY, w int);
            CREATE TABLE ~.photo (id text PRIMARY KEY, w text, album text REFERENCES ~.album(id), n int);
            INSERT INTO ~.album VALUES ('a1', 1), ('a2', 2);
            INSERT INTO ~.photo VALUES ('p', '1', 'a1', 1), ('odd', '1' || chr(126) || 'media', NULL, 1)
            """)
        try await bench.attach("album", as: "album", .column("w", prefix: "s:"))
        return bench
    }

    private func attachPhoto(_ bench: TableBench, _ subscope: String?) async throws {
        var plan = bench.plan("photo", "photo", .column("w", prefix: "s:"))
        plan.subscope = subscope
        _ = try await bench.store.attach(plan)
        while try await !bench.store.fill("photo", limit: 3).isLast {}
        try await bench.drain()
    }

    @Test("its rows lie in the sub-scope of the scope that their column names, and devices write them there")
    func both() async throws {
        let bench = try await start()
        try await attachPhoto(bench, "media")
        #expect(try await bench.records("s:1~media").keys.sorted() == ["photo/p"])
        #expect(try await bench.records("s:1").keys.sorted() == ["album/a1"])
        try await bench.sql("INSERT INTO ~.photo VALUES ('q', '2', 'a2', 2); UPDATE ~.photo SET w = '2' WHERE id = 'p'")
        try await bench.drain()
        #expect(try await bench.records("s:1~media").isEmpty)
        #expect(try await bench.records("s:2~media").keys.sorted() == ["photo/p", "photo/q"])

        let made = try await bench.verdict("photo", "r", #"{"n":3,"album":"a2"}"#, scope: "s:2~media")
        #expect(made.contains("applied"), "\(made)")
        #expect(try await bench.sql("SELECT w || n FROM ~.photo WHERE id = 'r'") == "23")
        // What an album of another scope is called is nobody's business here.
        let foreign = try await bench.verdict("photo", "x", #"{"n":3,"album":"a1"}"#, scope: "s:2~media")
        #expect(foreign.contains("reference_violated"), "\(foreign)")
        let other = try await bench.verdict("photo", "y", #"{"n":3}"#, scope: "s:2")
        #expect(other.contains("scope_mismatch"), "\(other)")
        let moved = try await bench.verdict("photo", "z", #"{"n":3,"w":"1"}"#, scope: "s:2~media")
        #expect(moved.contains("scope_mismatch"), "\(moved)")
    }

    @Test("a row that is written for a scope erased before its sub-scope was declared is let go of")
    func erased() async throws {
        let bench = try await start()
        // A server that has not heard of the sub-scope cannot mark it.
        try await SyncServer(store: bench.store, configuration: .still).erase(.scope("s:1"))
        try await attachPhoto(bench, "media")
        try await bench.sql("UPDATE ~.photo SET n = 5 WHERE id = 'p'")
        try await bench.drain()
        let state = try await bench.store.read("s:1~media") { $0.state }
        #expect(state.erasedAt != nil)
        await #expect(throws: Problem.self) { try await bench.records("s:1~media") }
    }

    @Test("one that was attached otherwise than it is declared is in no log, and the operator is told")
    func otherwise() async throws {
        let bench = try await start()
        try await attachPhoto(bench, nil)
        #expect(try await bench.records("s:1").keys.sorted() == ["album/a1"])
        #expect(try await bench.records("s:1~media").isEmpty)
        let told = try await bench.server.rejections()
        #expect(told.map { "\($0.code) \($0.record)" } == ["scope_mismatch p"])
        for (place, subscope) in [
            (PostgresStore.TablePlan.Place.scope("s:1~media"), nil), (.column("w", prefix: "s~"), nil),
            (.scope("s:1"), "a b"),
        ] as [(PostgresStore.TablePlan.Place, String?)] {
            var plan = bench.plan("photo", "photo2", place)
            plan.subscope = subscope
            await #expect(throws: TableError.self) { try await bench.store.attach(plan) }
        }
    }
}
