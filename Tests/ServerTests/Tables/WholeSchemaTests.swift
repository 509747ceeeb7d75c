import Foundation
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("Whole schemas are attached as they are", .serialized)
struct WholeSchemaTests {
    /// Attaches every table, empties it, and has a device insert each row that it was given.
    private func roundTrip(_ schema: String, tables count: Int, rows: Int) async throws {
        let bench = try await TableBench()
        try await bench.sql(schema)
        let tables = try await bench.store.tables(inSchema: bench.app)
        #expect(tables.count == count)
        for table in tables { try await bench.attach(table.name, as: table.name) }
        let status = try await bench.store.attachedTables()
        #expect(status.count == count && status.allSatisfy { $0.isFilled && $0.notes == 0 && $0.problem == nil })
        let records = try await bench.records()
        #expect(records.count == rows)
        #expect(try await bench.server.rejections(limit: 9).isEmpty)
        let names = tables.map { "~.\"\($0.name)\"" }.joined(separator: ", ")
        try await bench.sql("TRUNCATE \(names)")
        try await bench.drain()
        #expect(try await bench.records().isEmpty)
        // A row's parents have to be there before it; the device does not know in which order.
        var (rest, number) = (records.sorted { $0.key < $1.key }, 0)
        for _ in 0..<8 where !rest.isEmpty {
            let edits = try rest.enumerated().map { index, record in
                let parts = record.key.split(separator: "/", maxSplits: 1).map(String.init)
                let fields = String(decoding: try JSONSerialization.data(withJSONObject: record.value), as: UTF8.self)
                let id = parts[1].replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
                return upsert(number + index + 1, id, fields, entity: parts[0])
            }
            let answer = try await bench.exchange(edits)
            number += edits.count
            let refused = rest.indices.filter { answer.statuses[$0] == "rejected" }
            #expect(
                refused.allSatisfy { answer.errorCode($0) == "reference_violated" }, "\(answer.results)")
            rest = refused.map { rest[$0] }
        }
        #expect(rest.isEmpty)
        try await bench.drain()
        #expect(try await bench.records() == records)
    }

    @Test("A shop with short texts as keys, pictures and join tables", .timeLimit(.minutes(5)))
    func trade() async throws { try await roundTrip(WholeSchemas.trade, tables: 14, rows: 16) }

    @Test("A collection of records with exact prices and a list of songs", .timeLimit(.minutes(5)))
    func music() async throws { try await roundTrip(WholeSchemas.music, tables: 11, rows: 28) }

    @Test("Films to let, with domains, arrays, ranges, triggers and partitions", .timeLimit(.minutes(5)))
    func rental() async throws { try await roundTrip(WholeSchemas.rental, tables: 15, rows: 18) }
}
