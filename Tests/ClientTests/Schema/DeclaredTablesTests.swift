import GRDB
import Testing
import TidemarkWire

@testable import Tidemark

@Suite("The tables that a file declares to a tool without the app")
struct DeclaredTablesTests {
    private let tables: [SyncedTable] = [
        .table("item", scope: .column("w", prefix: "w:"), keepsDeleted: .seconds(60)),
        .table("part", scope: .constant("w:1"), references: [.json("w", path: "$[*].id", to: "item")]),
    ]

    private func install(_ queue: DatabaseQueue, _ tables: [SyncedTable], _ scopes: [Scope]) async throws {
        try await SyncEngine(for: queue, tables: tables, scopes: scopes, transport: Nowhere()).install()
    }

    private struct Nowhere: Transport {
        func send(_ request: TransportRequest) async throws -> TransportResponse { throw Wire.Lost() }
    }

    private func declared(_ queue: DatabaseQueue) async throws -> [SyncedTable] {
        try await queue.read { db in try SyncedTable.declared(in: db) }
    }

    @Test("it is as the app said it last")
    func asDeclared() async throws {
        let queue = try DatabaseQueue()
        #expect(try await declared(queue).isEmpty)
        try await queue.write { db in try db.execute(sql: MultiScopeWorld.schema) }
        try await install(queue, tables, ["w:1", "w:2"])
        #expect(try await declared(queue) == tables)
        // An engine that goes by it changes nothing.
        try await install(queue, declared(queue), ["w:1", "w:2"])
        #expect(try await declared(queue) == tables)
        // The next version of the app says less.
        try await install(queue, [.table("item", scope: .column("w", prefix: "w:")), tables[1]], ["w:1", "w:2"])
        #expect(try await declared(queue).first?.keepsDeleted == nil)
        #expect(try await declared(queue).last == tables[1])
    }

    @Test("a scope that nothing came of is let go of with its rule, the rows stay; one that has orphaned edits is not")
    func released() async throws {
        let queue = try DatabaseQueue()
        try await queue.write { db in
            try db.execute(sql: MultiScopeWorld.schema + "INSERT INTO item (id, w) VALUES ('i', '1')")
        }
        let mistyped = try SyncEngine(
            for: queue, tables: [.table("item"), .table("part")], scopes: ["mistyped"], transport: Nowhere())
        await #expect(throws: SyncError.self) { try await mistyped.syncNow() }
        try await queue.write { db in try SyncedTable.release(db, beside: "mistyped") }
        #expect(try await declared(queue).count == 2)
        try await queue.write { db in try SyncedTable.release(db, beside: "w:1") }
        #expect(try await declared(queue).isEmpty)
        try await install(queue, [.table("item"), .table("part")], ["w:1"])
        let counts = try await queue.read { db in
            try [
                "item", "tidemark_table WHERE uncompared = 'w:1'", "tidemark_scope", "tidemark_orphan",
            ].map { table in
                try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)")
            }
        }
        #expect(counts == [1, 1, 1, 0])
        try await queue.write { db in
            try db.execute(
                sql: """
                    INSERT INTO tidemark_orphan(scope, entity, record, kind, fields, noted_at)
                    VALUES ('w:1', 'item', 'i', 'delete', '{}', 1)
                    """)
            try SyncedTable.release(db, beside: "w:2")
        }
        #expect(try await declared(queue).count == 2)
    }
}
