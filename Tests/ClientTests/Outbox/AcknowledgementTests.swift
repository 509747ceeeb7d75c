import GRDB
import Testing
import TidemarkWire

@testable import Tidemark

@Suite("How far a device says that verdicts are applied (W34)")
struct AcknowledgementTests {
    /// A lane with the numbers 1 to 9, of which the server has heard up to 4.
    private func told(_ operations: [(number: Int, state: String)]) async throws -> [String: Int64] {
        let device = try await Device("CREATE TABLE item (id TEXT PRIMARY KEY);", tables: ["item"])
        return try await device.writer.write { db in
            try db.execute(sql: "INSERT INTO tidemark_lane(id, scope, next_number, told) VALUES ('l', 'w:1', 10, 4)")
            for operation in operations {
                try db.execute(
                    sql: """
                        INSERT INTO tidemark_operation(
                          scope, lane, number, entity, record, kind, state, members, sealed_at)
                        VALUES ('w:1', 'l', ?, 'item', 'r', 'upsert', ?, '', 1)
                        """, arguments: [operation.number, operation.state])
            }
            return try Outbox.acknowledgements(db, scope: Device.scope)
        }
    }

    @Test("up to the first that has none")
    func open() async throws {
        #expect(try await told([]) == ["l": 9])
        #expect(try await told([(7, "sealed"), (8, "sealed")]) == ["l": 6])
        #expect(try await told([(6, "rejected"), (8, "resealed")]) == ["l": 7])
        #expect(try await told([(5, "sealed")]).isEmpty)
    }

    @Test("no further than it has said where an earlier one is replayed")
    func replayed() async throws {
        #expect(try await told([(2, "replayed"), (8, "sealed")]).isEmpty)
        #expect(try await told([(2, "losing")]).isEmpty)
        #expect(try await told([(2, "lost"), (8, "sealed")]) == ["l": 7])
        #expect(try await told([(7, "replayed")]) == ["l": 6])
    }
}
