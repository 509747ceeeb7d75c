import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("Tables whose rows are events", .serialized)
struct TableEventTests {
    private func bench() async throws -> TableBench {
        let bench = try await TableBench(entities: [.events("task")])
        try await bench.sql("CREATE TABLE ~.visit (id int PRIMARY KEY, page text)")
        try await bench.attach("visit")
        return bench
    }

    /// As compaction does it, once every device has them.
    private func expireAll(_ bench: TableBench) async throws {
        try await bench.store.write("s") { try $0.expire(through: $0.state.head) }
    }

    @Test("An event that is not kept any more does not come again", .timeLimit(.minutes(5)))
    func expired() async throws {
        let bench = try await bench()
        try await bench.sql("INSERT INTO ~.visit VALUES (1, 'home')")
        try await bench.drain()
        #expect(try await bench.fields("1") == ["page": "home"])
        try await expireAll(bench)
        let head = try await bench.store.read("s") { $0.state.head }
        try await bench.sql("UPDATE ~.visit SET page = 'elsewhere'; UPDATE ~.visit SET id = 7")
        try await bench.drain()
        #expect(try await bench.store.read("s") { $0.state.head } == head)
        try await bench.sql("INSERT INTO ~.visit VALUES (2, 'shop'); UPDATE ~.visit SET page = 'cart' WHERE id = 2")
        try await bench.drain()
        #expect(try await bench.records() == ["task/2": ["page": "cart"]])
    }

    @Test("An event that is too large is on the operator's list", .timeLimit(.minutes(5)))
    func tooLarge() async throws {
        let bench = try await bench()
        try await bench.sql("INSERT INTO ~.visit VALUES (1, repeat('x', 2000000)), (2, 'home')")
        try await bench.drain()
        #expect(try await bench.records() == ["task/2": ["page": "home"]])
        #expect(try await bench.server.rejections().map(\.code) == ["record_too_large"])
    }

    @Test("A device's event does not overwrite a row", .timeLimit(.minutes(5)))
    func taken() async throws {
        let bench = try await bench()
        try await bench.sql("INSERT INTO ~.visit VALUES (1, 'home')")
        try await bench.drain()
        try await expireAll(bench)
        let answer = try await bench.exchange([upsert(1, "1", #"{"page":"mine"}"#), upsert(2, "2", #"{"page":"new"}"#)])
        #expect(answer.errorCode(0) == "not_unique" && answer.statuses == ["rejected", "applied"], "\(answer.results)")
        #expect(try await bench.sql("SELECT * FROM ~.visit ORDER BY 1") == "1|home\n2|new")
    }
}
