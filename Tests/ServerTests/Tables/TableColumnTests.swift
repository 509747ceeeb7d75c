import Foundation
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("No column of an attached table travels that was not named", .serialized)
struct TableColumnTests {
    private static let person = """
        CREATE TABLE ~.person (id text PRIMARY KEY, name text, note text, is_admin boolean NOT NULL DEFAULT false,
            password_hash text NOT NULL DEFAULT 'secret');
        INSERT INTO ~.person VALUES ('p1', 'Ada', 'n', true, 'hash')
        """

    @Test("A plan without columns is refused, and says what looks like a secret or a right", .timeLimit(.minutes(5)))
    func notNamed() async throws {
        let bench = try await TableBench()
        try await bench.sql(Self.person)
        let error = await #expect(throws: TableError.self) {
            try await bench.store.attach(
                bench.plan("person", "person", .scope("s"), columns: .named(read: [], write: [])))
        }
        #expect(error?.code == .columnsNotNamed)
        #expect(error?.message.contains("is_admin, password_hash should perhaps stay on the server") == true)
        #expect(try await bench.sql("SELECT count(*) FROM pg_trigger WHERE tgrelid = '~.person'::regclass") == "0")
    }

    @Test("Devices get what is read and set only what is written", .timeLimit(.minutes(5)))
    func named() async throws {
        let bench = try await TableBench()
        try await bench.sql(Self.person)
        let status = try await bench.attach(
            "person", as: "person", columns: .named(read: ["is_admin", "name"], write: ["name"]))
        #expect(status.columns == ["is_admin", "name"] && status.readOnly == ["is_admin"])
        #expect(status.sensitive.isEmpty)
        #expect(try await bench.fields("p1", "s", entity: "person") == ["name": "Ada", "is_admin": 1])
        let answer = try await bench.exchange([
            upsert(1, "p2", #"{"name":"Eve","is_admin":1}"#, entity: "person"),
            upsert(2, "p1", #"{"is_admin":0,"name":"Lovelace"}"#, base: 1, entity: "person"),
            upsert(3, "p1", #"{"password_hash":"mine"}"#, entity: "person"),
            upsert(4, "p1", #"{"note":"mine"}"#, entity: "person"),
        ])
        #expect(answer.statuses == ["merged", "merged", "rejected", "rejected"], "\(answer.results)")
        let overwrote = (answer.results[0]["overwrote"] ?? answer.results[0]["lost"]) as? [[String: Any]]
        #expect(overwrote?.first?["rule"] as? String == "serverFields", "\(answer.results[0])")
        #expect([answer.errorCode(2), answer.errorCode(3)] == ["column_unknown", "column_unknown"])
        // Nor does what the operator brings into the log after all hold more than its author may write.
        _ = try await bench.exchange([
            upsert(5, "p9", #"{"name":"x","is_admin":1,"note":"mine"}"#, entity: "person")
        ])
        #expect(try await bench.server.rejections(limit: 1).first?.fields == ["name": "x", "note": "mine"])
        #expect(
            try await bench.sql("SELECT id, name, note, is_admin, password_hash FROM ~.person ORDER BY id")
                == "p1|Lovelace|n|t|hash\np2|Eve||f|secret")
        try await bench.drain()
        #expect(try await bench.fields("p2", "s", entity: "person") == ["name": "Eve", "is_admin": 0])
        // The operator's own programs write all that travels.
        try await bench.server.commit(to: "s") { $0.upsert("person", id: "p2", ["is_admin": 1]) }
        #expect(try await bench.sql("SELECT is_admin FROM ~.person WHERE id = 'p2'") == "t")
    }

    @Test("Names are pointed out by their words: secrets that travel, and rights that devices set")
    func sensitive() async throws {
        let bench = try await TableBench()
        let names = [
            "is_admin", "isOwner", "IS_STAFF2", "apiKey", "api_key", "pwd", "pinned", "shipping", "administered",
        ]
        let columns = names.map { #""\#($0)" text"# }.joined(separator: ", ")
        try await bench.sql("CREATE TABLE ~.a (id text PRIMARY KEY, \(columns))")
        try await bench.sql("CREATE TABLE ~.b (id text PRIMARY KEY, \(columns))")
        let all = try await bench.attach("a", as: "a")
        #expect(all.sensitive == ["is_admin", "isOwner", "IS_STAFF2", "apiKey", "api_key", "pwd"])
        let readOnly = try await bench.attach("b", as: "b", columns: .named(read: names, write: []))
        #expect(readOnly.sensitive == ["apiKey", "api_key", "pwd"])
    }

    @Test("An event gives no value to a column that is read only", .timeLimit(.minutes(5)))
    func events() async throws {
        let bench = try await TableBench(entities: [.events("visit")])
        try await bench.sql(
            "CREATE TABLE ~.visit (id text PRIMARY KEY, page text, score int DEFAULT 5)")
        try await bench.attach("visit", as: "visit", columns: .named(read: ["score"], write: ["page"]))
        let answer = try await bench.exchange([
            upsert(1, "v1", #"{"page":"/","score":null}"#, entity: "visit"),
            upsert(2, "v2", #"{"page":"/","score":100}"#, entity: "visit"),
        ])
        #expect(answer.statuses == ["applied", "rejected"], "\(answer.results)")
        #expect(answer.errorCode(1) == "column_unknown")
        #expect(try await bench.sql("SELECT id, score FROM ~.visit") == "v1|5")
        // A program's event names all columns; a restored device sends the one that it has of it under another key.
        try await bench.server.commit(to: "s") { $0.upsert("visit", id: "v3", ["page": "/a", "score": .null]) }
        let again = try await bench.exchange([upsert(3, "v3", #"{"page":"/a","score":null}"#, entity: "visit")])
        #expect(again.statuses == ["applied"], "\(again.results)")
    }
}
