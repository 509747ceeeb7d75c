import Foundation
import GRDB
import Testing
import TidemarkCore
import TidemarkServer
import TidemarkWire

@testable import Tidemark

/// A shop's app: customers and orders have ids of the server's; lines, remarks and drafts refer to orders by key, by a
/// key of two columns, and within JSON.
let shopSchema = """
    CREATE TABLE customer (id TEXT PRIMARY KEY, name TEXT);
    CREATE TABLE "order" (
        id INTEGER PRIMARY KEY, customer TEXT REFERENCES customer(id), title TEXT, replaces INTEGER REFERENCES "order");
    CREATE TABLE line (
        order_id INTEGER REFERENCES "order"(id) ON DELETE CASCADE, number INTEGER, product TEXT,
        PRIMARY KEY (order_id, number));
    CREATE TABLE remark (
        id TEXT PRIMARY KEY, order_id INTEGER, number INTEGER, text TEXT, extra TEXT,
        FOREIGN KEY (order_id, number) REFERENCES line(order_id, number));
    CREATE TABLE draft (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES "order"(id));
    """

let shopEntities: [EntityDeclaration] = [.state("order", ids: .server), .state("customer", ids: .server)]

let shopTables: [SyncedTable] = [
    .table("customer", ids: .server), .table("order"), .table("line"),
    .table("remark", references: [.json("extra", path: "$.orders[*].id", to: "order")]),
]

func number(_ index: Int64) -> Int64 { -(1 << 61) - index }

extension Device {
    static func shop(
        _ name: String = "a", server: SyncServer? = nil, in directory: TestDirectory? = nil
    ) async throws -> Device {
        let directory = try directory ?? TestDirectory()
        let server = try server ?? Self.server(in: directory, entities: shopEntities)
        return try await Device(
            shopSchema, tables: [], server: server, in: directory, name: name, synced: shopTables)
    }

    /// An order with a line, a remark on it that names it in three ways, and an unsynced draft.
    func makeOrder(_ id: Int64, customer: String = "local-c") async throws {
        try await sql(
            """
            INSERT OR IGNORE INTO customer VALUES ('\(customer)', 'Ada');
            INSERT INTO "order" VALUES (\(id), '\(customer)', 'first', NULL);
            INSERT INTO line VALUES (\(id), 1, 'tea');
            INSERT INTO remark
            VALUES ('r' || hex(randomblob(8)), \(id), 1, 'soon', '{"orders":[{"id":\(id)},{"id":"\(id)"}]}');
            INSERT INTO draft(order_id) VALUES (\(id));
            """)
    }

    /// The id that the server makes of an order's temporary one.
    func assigned(_ temporary: Int64) async throws -> Int64 {
        let client = try #require(try await writer.read { db in try Meta.get(db, "clientId") })
        let name = try #require(RecordID(String(temporary)))
        let id = try #require(AssignedID.make(for: name, of: ["ada", client, "order"], attempt: 0))
        return try #require(Int64(id.text))
    }

    /// Whether anything in the file still shows a temporary id, but for what was sealed and what they stand for.
    func expectNoTemporaryIDs(_ place: SourceLocation = #_sourceLocation) async throws {
        let found = try await temporaryIDs()
        #expect(found == [], sourceLocation: place)
    }

    private func temporaryIDs() async throws -> [String] {
        try await writer.read { db in
            var found: [String] = []
            let names = try String.fetchAll(
                db,
                sql: """
                    SELECT name FROM sqlite_master WHERE type = 'table'
                    AND name NOT IN ('tidemark_alias', 'tidemark_ref')
                    """)
            for table in names {
                for row in try Row.fetchAll(db, sql: "SELECT * FROM \"\(table)\"") {
                    for (column, value) in row where column != "members" && column != "resolved" {
                        var text = "\(value)"
                        if case .blob(let data) = value.storage { text = String(decoding: data, as: UTF8.self) }
                        if text.contains("local-") || text.contains("-23058430092136939") {
                            found.append("\(table).\(column): \(text)")
                        }
                    }
                }
            }
            return found
        }
    }
}
