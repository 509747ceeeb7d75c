import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres

@testable import TidemarkServer

@Suite("Each statement to PostgreSQL names the scope")
struct PostgresQueryTests {
    /// Statements that look at all scopes at once, and why.
    private static let others: Set<String> = [
        // The operator is shown the refusals of all scopes; an entry is let go of by its number.
        "discard rejection", "rejections",
        // The operator is shown the devices of all scopes.
        "count fleet", "fleet",
        // Uploads that nobody goes on with, and scopes whose blobs are looked through, whichever they are.
        "old blob parts", "scopes with blobs",
        // What the sweep removes, the oldest first; each scope's rows are then removed by scope.
        "superseded",
        // A device's temporary ids are kept for as long as it is known in any scope.
        "forget aliases",
        // Which scopes other programs have written to: the list itself says it.
        "captured scopes",
        // A table that is attached, looked at or taken off again may have rows in any scope.
        "attached with notes", "forget table's notes",
    ]

    @Test("No statement of a scope's table goes without the scope, but for a closed list", arguments: 1...2)
    func queries(seed: UInt64) async throws {
        let cluster = try await offPool {
            let cluster = try PostgresCluster()
            for setting in ["log_statement = 'all'", "log_line_prefix = '@@'"] {
                try cluster.psql("ALTER SYSTEM SET \(setting)")
            }
            try cluster.psql("SELECT pg_reload_conf()")
            return cluster
        }
        let bench = try StoreBench(.postgres, on: cluster)
        var script = StoreScript(seed: seed)
        for _ in 1...450 { _ = try await script.call([bench]) }
        let heavy = #"{"n":""# + String(repeating: "x", count: 20_000) + #""}"#
        _ = try await bench.write(StoreNames.scopes[0]) { try $0.append(.upsert("heavy", heavy), at: 1) }
        _ = try await bench.store.dump()
        try await attach(on: cluster)
        try await blobs(#require(bench.store as? any BlobStore))
        for scope in StoreNames.scopes {
            try await bench.write(scope) { try $0.markErased(at: 1) }
            for principal in ["ada", nil] {
                _ = try await bench.read(scope) { try $0.countKept(by: principal) }
                while try await !bench.write(scope, { try $0.erase(of: principal, limit: 100) }).isEmpty {}
            }
        }
        let log = try await offPool {
            try cluster.psql("SELECT pg_read_file(current_setting('data_directory') || '/../log')")
        }
        let asked = Self.asked(log)
        let never = try Self.declared().subtracting(asked.keys)
        #expect(never == [], "never asked, so never looked at: \(never.sorted())")
        let unscoped = asked.filter { !$0.value.allSatisfy(Self.namesScope) }
        #expect(Set(unscoped.keys) == Self.others, "\(unscoped.filter { !Self.others.contains($0.key) })")
    }

    /// What an attached table asks for: rows from before, writes of devices and of other programs, and its end; once
    /// more, when the log has records that the table has not.
    private func attach(on cluster: PostgresCluster) async throws {
        let bench = try await TableBench(cluster: cluster)
        let place = PostgresStore.TablePlan.Place.column("list", prefix: "")
        try await bench.sql(
            "CREATE TABLE ~.todo (id int PRIMARY KEY, list text, title text); INSERT INTO ~.todo VALUES (1, 's', 'a')")
        try await bench.attach("todo", place)
        #expect(try await bench.exchange([upsert(1, "2", #"{"title":"b"}"#)]).statuses == ["applied"])
        let pair = [upsert(2, "3", #"{"title":"c"}"#), upsert(3, "4", #"{"title":"d"}"#)]
        #expect(try await bench.exchange(pair).statuses == ["applied", "applied"])
        // A value that the table takes and its index does not: it does not get smaller when it is compressed.
        try await bench.sql("CREATE INDEX ON ~.todo (title)")
        let digits = (1...2_000).map { String(UInt64($0) &* 0x9e37_79b9_7f4a_7c15, radix: 36) }.joined()
        #expect(try await bench.exchange([upsert(4, "5", #"{"title":"\#(digits)"}"#)]).statuses == ["rejected"])
        // A row that is too large to be read with others, and one that nobody looks at in its transaction.
        try await bench.sql("UPDATE ~.todo SET title = repeat('x', 20000) WHERE id = 2")
        try await bench.drain()
        _ = try await bench.store.write("s") { writer in
            try writer.append(NewRow(entity: "task", record: "3", kind: .delete, payload: nil), at: 1)
        }
        // The renamed column is reported, and the table goes on by its new name.
        #expect(try await bench.store.tables(inSchema: bench.app).map(\.name) == ["todo"])
        try await bench.sql("ALTER TABLE ~.todo RENAME COLUMN title TO name")
        #expect(try await bench.store.attachedTables().first?.problem != nil)
        try await bench.attach("todo", place)
        try await bench.store.detach("task")
        try await bench.sql("UPDATE ~.todo SET list = 't' WHERE id = 1; DELETE FROM ~.todo WHERE id > 1")
        var plan = bench.plan("todo", "task", place)
        // The log has records of it.
        let inUse = plan
        await #expect(throws: TableError.self) { try await bench.store.attach(inUse) }
        plan.tableWins = true
        _ = try await bench.store.attach(plan)
        while try await !bench.store.fill("task").isLast {}
        try await bench.drain()
        #expect(try await bench.store.attachedTables().map(\.notes) == [0])
        #expect(try await bench.records("s").isEmpty)
        #expect(try await bench.records("t").count == 1)
    }

    /// Uses each function of a store of blobs, so that each of its statements is asked.
    private func blobs(_ store: any BlobStore) async throws {
        let room = BlobRoom(scope: 1 << 20, caller: 1 << 20, parts: 9)
        let hash = String(repeating: "a", count: 64)
        for principal in ["ada", "bob", "cy"] {
            let name = BlobPartName(scope: "b", principal: principal, hash: hash)
            let part = try await store.begin(name, size: 2, within: room, at: 1)
            let whole = try await store.append([1, 2], to: part, isLast: true, at: 1)
            #expect(try await store.part(name) == whole)
            #expect(try await store.bytes(of: whole, from: 1, limit: 9) == [2])
            if principal == "cy" { try await store.drop(whole) } else { _ = try await store.finish(whole, at: 1) }
        }
        #expect(try await store.parts(in: "b", of: nil, writtenBefore: .max, limit: 9) == [])
        _ = try await store.noteSeen([hash], in: "b", at: 2)
        #expect(try await store.blobScopes(after: nil, limit: 9).count == 1)
        #expect(try await store.blobTally(of: "b", by: "ada") == BlobTally())
        let blob = try #require(try await store.blob(hash, in: "b"))
        #expect(try await store.blobs(in: "b", after: nil, seenBefore: .max, limit: 9) == [blob])
        #expect(try await store.remove(blob, in: "b", seenBefore: .max))
        try await store.noteScan(of: "b", at: 3)
        #expect(try await store.blobTally(of: "b", by: nil) == BlobTally())
    }

    /// The names of all statements that the store has for a scope, and for the tables that are attached.
    private static func declared() throws -> Set<String> {
        let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let sources = tests.deletingLastPathComponent().appending(path: "Sources/TidemarkPostgres")
        let files = try ["Scope", "Catalogue", "Tables", "Blobs"].flatMap { folder in
            try FileManager.default.contentsOfDirectory(
                at: sources.appending(path: folder), includingPropertiesForKeys: nil)
        }
        let names = try files.flatMap { file in
            try String(contentsOf: file, encoding: .utf8).matches(of: /Statement\(\s*"([^"]+)"/).map { String($0.1) }
        }
        return Set(names)
    }

    /// The log's statements by the names that they were prepared under; many have none.
    private static func asked(_ log: String) -> [String: Set<String>] {
        var asked: [String: Set<String>] = [:]
        for entry in log.components(separatedBy: "@@") {
            guard let found = try? /LOG: +execute ([^:]+): (.*)/.dotMatchesNewlines().wholeMatch(in: entry) else {
                continue
            }
            asked[String(found.1), default: []].insert(String(found.2))
        }
        return asked
    }

    /// Whether a statement names the scope as often as it goes to a table that has scopes. Neither a scope that is only
    /// compared with another row's nor one that may be left out does.
    private static func namesScope(_ sql: String) -> Bool {
        let tables =
            #/
            \b(?:FROM|INTO|UPDATE|JOIN|USING)\s+(?:\w+\.)?
            (?:incarnation|change|digest|lane|verdict|device|rejection|capture|
            blob|blob_piece|blob_part|blob_scope)\b
            /#
        let named = sql.matches(of: #/\b(?:WHERE|AND)\s+(?:(?:\w+\.)?scope|s\.name) = (?:\$\d|'')/#)
        let inserted = sql.matches(of: #/INSERT INTO [\w.]+\s*\([^)]*\bscope\b/#)
        return named.count + inserted.count >= sql.matches(of: tables).count
    }
}
