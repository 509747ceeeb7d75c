import Foundation
import Testing
import TidemarkTesting

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("A request of another system's caller costs no more than a page (I14)")
struct DialectCostTests {
    private let path = EntityPath("task")

    private func list(_ filter: String = "", delta: DeltaHeader? = nil, cursor: String? = nil) -> RecordQuery {
        let spelling = RecordSpelling(path, time: .milliseconds)
        var query = RecordQuery(of: "task", in: "s", as: spelling)
        if !filter.isEmpty { query.filters = [RecordFilter("n", filter, spelling)] }
        (query.delta, query.cursor) = (delta, cursor)
        return query
    }

    @Test("A page that finds nothing passes over so many rows, and the next goes on", arguments: StoreKind.allCases)
    func rows(kind: StoreKind) async throws {
        let bench = try EngineBench(kind)
        let count = 25_001
        try await bench.bench.write { writer in
            for number in 0..<count {
                _ = try writer.append(
                    NewRow(
                        entity: number == count - 1 ? "task" : number % 2 == 0 ? "task" : "note",
                        record: RecordID("r\(100_000 + number)") ?? "r", kind: .upsert,
                        payload: Array(#"{"n":\#(number)}"#.utf8)), at: 1000)
            }
        }
        let wanted = "\(count - 1)"
        for (delta, pages) in [(nil, 2), (DeltaHeader.since(0), 3), (.since(1), 3)] as [(DeltaHeader?, Int)] {
            var (found, asked, cursor): (String, Int, String?) = ("", 0, nil)
            repeat {
                let page = try await bench.server.list(
                    list(wanted, delta: delta, cursor: cursor), access: .read(as: "ada"))
                found += String(decoding: page.body, as: UTF8.self)
                cursor = page.cursor
                asked += 1
            } while cursor != nil && asked < 100
            #expect(found.contains(#""n":\#(wanted)"#))
            #expect(delta == nil ? asked == pages : asked >= pages, "\(String(describing: delta)): \(asked)")
        }
        var (asked, cursor): (Int, String?) = (0, nil)
        var query = CursorQuery(of: EntityPath("other"), in: "s")
        repeat {
            query.cursor = cursor
            let page = try await bench.server.delta(query, access: .read(as: "ada"))
            let body = String(decoding: page.body, as: UTF8.self)
            cursor = body.contains("\"nextCursor\":null") ? nil : page.checkpoint
            asked += 1
        } while cursor != nil && asked < 100
        #expect(asked == 3)
    }

    @Test("A page that finds nothing reads so many bytes, and the next goes on")
    func bytes() async throws {
        var limits = Limits()
        limits.pageBytes = 10_000
        let bench = try EngineBench(.sqlite, limits: limits)
        let text = String(repeating: "x", count: 4000)
        let operations = (1...10).map { upsert($0, "r\($0)", #"{"n":\#($0),"text":"\#(text)"}"#) }
        _ = try await bench.exchange(operations)
        var (asked, cursor): (Int, String?) = (0, nil)
        repeat {
            let page = try await bench.server.list(list("none", cursor: cursor), access: .read(as: "ada"))
            #expect(page.body == Array("[]".utf8))
            cursor = page.cursor
            asked += 1
        } while cursor != nil && asked < 100
        #expect(asked == 4)
    }

    @Test("A map of large records is not read whole to filter them")
    func heldBytes() async throws {
        var limits = Limits()
        limits.pageBytes = 10_000
        let bench = try EngineBench(.sqlite, limits: limits)
        let text = String(repeating: "x", count: 4000)
        _ = try await bench.exchange((1...5).map { upsert($0, "r\($0)", #"{"n":\#($0),"text":"\#(text)"}"#) })
        var query = list("none", cursor: nil)
        query.delta = .held(Dictionary(uniqueKeysWithValues: (1...5).map { (Array("r\($0)".utf8), 0) }))
        let problem = await #expect(throws: Problem.self) {
            _ = try await bench.server.list(query, access: .read(as: "ada"))
        }
        #expect(problem?.code == .headerTooLarge)
        query.filters = []
        #expect(try await bench.server.list(query, access: .read(as: "ada")).deleted == "[]")
    }

    @Test("Losers that do not fit into an answer are found by their stamps next time")
    func losers() async throws {
        var limits = Limits()
        limits.pageBytes = 10_000
        let bench = try EngineBench(.sqlite, limits: limits)
        let text = String(repeating: "x", count: 4000)
        let rows = (1...10).map { upsert($0, "r\($0)", #"{"n":\#($0),"text":"\#(text)"}"#) }
        _ = try await bench.exchange(rows)
        bench.clock += 60_000
        func sync(_ stamp: Int64, _ items: [String]) async throws -> [String: Any] {
            let body = Array(#"{"clientStamp":\#(stamp),"items":[\#(items.joined(separator: ","))]}"#.utf8)
            let answer = try await bench.server.stamped(
                body.count, of: { body }, in: "s", for: "ada", access: .readWrite(as: "ada"))
            return try JSONSerialization.jsonObject(with: Data(answer)) as? [String: Any] ?? [:]
        }
        let items = (1...10).map { #"{"entity":"task","id":"r\#($0)","itemUpdateStamp":5,"data":{"n":0}}"# }
        // The device's stamp is of before the rows, so its items are older than they are.
        var answer = try await sync(999_999, items)
        var told = (answer["items"] as? [[String: Any]] ?? []).compactMap { $0["id"] as? String }
        var asked = 1
        while answer["hasMore"] as? Bool == true, asked < 20 {
            answer = try await sync((answer["clientStamp"] as? Int).map { Int64($0) } ?? 0, [])
            told += (answer["items"] as? [[String: Any]] ?? []).compactMap { $0["id"] as? String }
            asked += 1
        }
        #expect(Set(told) == Set((1...10).map { "r\($0)" }))
        #expect((2...10).contains(asked))
    }

    @Test("A push of many items gives way to others, and takes all of them", arguments: StoreKind.allCases)
    func manyItems(kind: StoreKind) async throws {
        var limits = Limits()
        limits.pushBytes = 1
        let bench = try EngineBench(kind, limits: limits)
        let items = (1...20).map { #"{"entity":"task","id":"r\#($0)","itemUpdateStamp":5,"data":{"n":\#($0)}}"# }
        let body = Array(#"{"clientStamp":0,"items":[\#(items.joined(separator: ","))]}"#.utf8)
        _ = try await bench.server.stamped(
            body.count, of: { body }, in: "s", for: "ada", access: .readWrite(as: "ada"))
        #expect(try await bench.pullAll().changes.count == 20)
    }
}
