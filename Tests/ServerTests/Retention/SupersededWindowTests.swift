import Foundation
import GRDB
import Testing
import TidemarkSQLite

@testable import TidemarkServer
@testable import TidemarkWire

/// Superseded rows are kept for readers in mid-scan, for a time and up to a budget (I14).
@Suite("Superseded rows take no more of the disk than their budget")
struct SupersededWindowTests {
    private func bench(_ kind: StoreKind, budget: Int) throws -> EngineBench {
        var limits = Limits()
        limits.windowBytes = budget
        return try EngineBench(kind, entities: [.state("note")], limits: limits)
    }

    @Test("Small edits of a large record cost the log no more than the budget", arguments: StoreKind.allCases)
    func smallEdits(kind: StoreKind) async throws {
        let budget = 256 << 10
        let bench = try bench(kind, budget: budget)
        let text = String(repeating: "tide ", count: 4000)
        try await bench.server.commit(to: "s") { $0.upsert("note", id: "n", ["text": .text(text), "n": 0]) }
        let since = try await bench.pullAll().nextSince
        for round in 0..<10 {
            let numbers = (round * 30 + 1)...(round * 30 + 30)
            let operations = numbers.map { upsert($0, "n", #"{"n":\#($0)}"#, base: 1, entity: "note") }
            let answer = try await bench.push(operations.joined(separator: ","))
            #expect(answer.statuses.count == 30)
            let state = try await bench.bench.state()
            #expect(state.superseded.weight <= Int64(budget))
            #expect(state.superseded.rows > 0)
        }
        let state = try await bench.bench.state()
        #expect(state.head == 301 && state.size.rows == 1)
        // What is left is the newest of it, and half of the budget at least.
        #expect(state.superseded.weight > Int64(budget / 2) - 2 * Int64(text.utf8.count))
        #expect(state.sweepFloor == state.head - state.superseded.rows)
        #expect(try await bench.pullAll(since: since).changes.map { $0.data?["n"] as? Int } == [300])
        try await bench.bench.expectSizes(of: "s")
    }

    /// Few of them: each takes a third of a second in a debug build.
    @Test("60 edits of a record of a megabyte leave a file of a few of it", .timeLimit(.minutes(5)))
    func file() async throws {
        var limits = Limits()
        limits.windowBytes = 4 << 20
        let bench = try Bench(entities: [.state("note")], limits: limits)
        let text = String(repeating: "tide ", count: 200_000)
        try await bench.server.commit(to: "s") { $0.upsert("note", id: "n", ["text": .text(text)]) }
        for round in 0..<15 {
            let operations = (round * 4 + 1...round * 4 + 4).map {
                upsert($0, "n", #"{"n":\#($0)}"#, base: 1, entity: "note")
            }
            _ = try await bench.exchange(operations, mode: .pushOnly)
        }
        #expect(try await bench.store.read("s") { $0.state.head } == 61)
        let path = bench.directory.appending(path: "sync.sqlite").path
        try bench.store.close()
        let size = try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
        // The budget, what one push has added to it, and the record.
        #expect(size < (4 << 20) + 6_000_000, "\(size)")
    }

    @Test("Tiny rows count for what they take, not for their fields alone", arguments: StoreKind.allCases)
    func tiny(kind: StoreKind) async throws {
        let bench = try bench(kind, budget: 100 * 300)
        for round in 1...40 {
            try await bench.server.commit(to: "s") { changes in
                for id in 1...10 { changes.upsert("note", id: RecordID("r\(id)")!, ["n": .integer(Int64(round))]) }
            }
        }
        let superseded = try await bench.bench.state().superseded
        #expect((50...110).contains(superseded.rows))
    }

    @Test("One write lets go of a bounded part, and those that follow of the rest", arguments: StoreKind.allCases)
    func steps(kind: StoreKind) async throws {
        let bench = try bench(kind, budget: 64 << 20)
        for _ in 1...3 {
            try await bench.server.commit(to: "s") { changes in
                for id in 1...1300 { changes.upsert("note", id: RecordID("r\(id)")!, ["n": .text("\(UUID())")]) }
            }
        }
        #expect(try await bench.bench.state().superseded.rows == 2600)
        var limits = Limits()
        limits.windowBytes = 1
        let node = SyncServer(store: bench.bench.store, limits: limits, configuration: .still)
        try await node.commit(to: "s") { changes in
            for id in 1...10 { changes.upsert("note", id: RecordID("r\(id)")!, ["n": 1]) }
        }
        #expect(try await bench.bench.state().superseded.rows == 1600)
        for rows in [600, 0, 0] as [Int64] {
            try await node.commit(to: "s") { _ in }
            #expect(try await bench.bench.state().superseded.rows == rows)
        }
    }

    @Test(
        "A scan whose window ends at each of its pages still ends whole",
        arguments: StoreKind.allCases, [1, 3] as [Int64])
    func scans(kind: StoreKind, limit: Int64) async throws {
        let bench = try bench(kind, budget: 1)
        let names = (1...12).map { "r\($0)" }
        try await bench.server.commit(to: "s") { changes in
            for name in names { changes.upsert("note", id: RecordID(name)!, ["n": 0]) }
        }
        var held: [String: Int] = [:]
        func take(_ answer: Answer) {
            for change in answer.changes {
                held[change.id] = change.type == "delete" ? nil : change.data?["n"] as? Int
            }
        }
        var answer = try await bench.changes(limit: limit)
        take(answer)
        for round in 1...20 where answer.hasMore {
            let id = names[(round * 5) % names.count]
            let edit =
                round % 4 == 0
                ? #"{"lane":"lane-aaaa","number":\#(round),"type":"delete","entity":"note","id":"\#(id)"}"#
                : upsert(round, id, #"{"n":\#(round)}"#, entity: "note")
            _ = try await bench.push(edit)
            #expect(try await bench.bench.state().superseded.rows == 0)
            answer = try await bench.changes(since: answer.nextSince, limit: limit)
            take(answer)
        }
        take(try await bench.pullAll(since: answer.nextSince))
        var fresh: [String: Int] = [:]
        for change in try await bench.pullAll().changes { fresh[change.id] = change.data?["n"] as? Int }
        #expect(held == fresh)
    }

    @Test("A store of the version before counts what its scopes have superseded")
    func older() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "r1", #"{"n":1}"#), upsert(2, "r1", #"{"n":22}"#, base: 1)])
        let superseded = try await bench.store.read("s") { $0.state.superseded }
        try bench.reopen { store in
            let file = try DatabaseQueue(path: store.path)
            try file.write { db in
                for column in ["superseded_rows", "superseded_bytes"] {
                    try db.execute(sql: "ALTER TABLE scope DROP COLUMN \(column)")
                }
                try db.execute(sql: "DROP INDEX change_window")
                try db.execute(sql: "DELETE FROM grdb_migrations WHERE identifier = '5'")
            }
            try file.close()
        }
        #expect(superseded == ScopeSize(rows: 1, bytes: 7))
        #expect(try await bench.store.read("s") { $0.state.superseded } == superseded)
        try await bench.endWindow(.bytes)
        #expect(try await bench.store.read("s") { $0.state.superseded } == ScopeSize())
    }
}
