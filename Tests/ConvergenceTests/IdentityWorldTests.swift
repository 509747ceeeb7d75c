import Foundation
import GRDB
import Testing
import Tidemark
import TidemarkSQLite
import TidemarkTesting

@testable import TidemarkServer
@testable import TidemarkWire

/// Devices that make records under temporary ids, refer to them, and edit in groups, over a wire that loses, repeats
/// and cuts.
@Suite("Temporary ids and groups converge too (A17, R8)")
struct IdentityWorldTests {
    private static let schema = """
        CREATE TABLE account (id INTEGER PRIMARY KEY, name TEXT NOT NULL, balance INTEGER NOT NULL DEFAULT 0,
            parent INTEGER REFERENCES account(id) ON DELETE SET NULL);
        CREATE TABLE line (account INTEGER REFERENCES account(id) ON DELETE CASCADE, number INTEGER, text TEXT,
            extra TEXT, PRIMARY KEY (account, number));
        CREATE TABLE note (id TEXT PRIMARY KEY, text TEXT);
        """

    private final class Node: Sendable {
        let name: String
        let queue: DatabaseQueue
        let transport: FaultyTransport

        init(_ name: String, in directory: URL, server: SyncServer, seed: UInt64) throws {
            self.name = name
            queue = try DatabaseQueue(path: directory.appending(path: "\(name).sqlite").path)
            try queue.write { db in try db.execute(sql: schema) }
            transport = FaultyTransport(InProcessTransport(to: server) { _ in .readWrite(as: "ada") }, seed: seed)
        }

        func engine(_ generator: inout SplitMix64) throws -> SyncEngine {
            var configuration = SyncConfiguration()
            let page = [1, 3, 50][Int.random(in: 0..<3, using: &generator)]
            (configuration.pageRange, configuration.firstPage) = (page...page, page)
            configuration.operationLimit = Int.random(in: 1...9, using: &generator)
            return try SyncEngine(
                for: queue,
                tables: [
                    .table("account", ids: .server),
                    .table("line", references: [.json("extra", path: "$.of[*]", to: "account")]),
                    .table("note", ids: .server),
                ], scopes: ["w:1"], transport: transport, configuration: configuration)
        }

        /// Groups are whole wherever a scan has ended. A filling may bring a pair again under its ids while this device
        /// still waits to hear of them: then it is there twice, and whole both times.
        func checkPairs(_ place: String) throws {
            try queue.read { db in
                // In mid-scan a page may end inside a group.
                let isWhole = try Bool.fetchOne(
                    db, sql: "SELECT NOT scanning FROM tidemark_scope WHERE complete IS NOT NULL")
                guard isWhole == true else { return }
                let halves = try String.fetchAll(
                    db,
                    sql: """
                        SELECT text FROM note WHERE text LIKE 'pair-%' GROUP BY rtrim(text, 'leftrigh')
                        HAVING sum(text LIKE '%left') <> sum(text LIKE '%right')
                        """)
                #expect(halves == [], "\(place) \(name)")
            }
        }

        func rows(_ table: String, except records: Set<String>) throws -> [String] {
            try queue.read { db in
                let columns = try db.columns(in: table).map { "quote(\($0.name))" }.joined(separator: " || ',' || ")
                let record = table == "line" ? "json_array(account, number)" : "CAST(id AS TEXT)"
                return try Row.fetchAll(db, sql: "SELECT \(record), \(columns) AS row FROM \(table) ORDER BY row")
                    .filter { !records.contains($0[0]) }.map { $0[1] }
            }
        }

        /// Edits that wait for a record which was refused are this device's alone until its app decides.
        func blocked(_ table: String) throws -> [String] {
            try queue.read { db in
                try String.fetchAll(db, sql: "SELECT record FROM tidemark_blocked WHERE entity = ?", arguments: [table])
            }
        }
    }

    @Test("whatever is edited, lost, repeated, cut or started again", arguments: ConvergenceTests.seeds)
    func converge(seed: UInt64) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        var generator = SplitMix64(world: seed &+ 70_000)
        let store = try SQLiteStore(path: directory.appending(path: "server.sqlite").path)
        let server = SyncServer(
            store: store, entities: [.state("account", ids: .server), .state("note", ids: .server)])
        let nodes = try (0..<3).map { index in
            try Node("d\(index)", in: directory, server: server, seed: seed &* 37 &+ UInt64(index))
        }
        var engines: [SyncEngine] = []
        for node in nodes { engines.append(try node.engine(&generator)) }
        for engine in engines { try await engine.install() }
        for step in 0..<90 {
            let index = Int.random(in: 0..<nodes.count, using: &generator)
            if generator.chance(75) {
                try await edit(nodes[index], engines[index], &generator, step)
            } else {
                _ = try? await engines[index].syncNow()
            }
            try nodes[index].checkPairs("seed \(seed) step \(step)")
            if generator.chance(5) { engines[index] = try nodes[index].engine(&generator) }
        }
        for node in nodes { await node.transport.heal() }
        for _ in 0..<6 { for engine in engines { _ = try await engine.syncNow() } }
        try await check(nodes, engines, server, seed)
        try store.close()
    }

    private func edit(
        _ node: Node, _ engine: SyncEngine, _ generator: inout SplitMix64, _ step: Int
    ) async throws {
        let (choice, text) = (Int.random(in: 0..<10, using: &generator), "\(node.name)-\(step)")
        let id = -(1 << 61) - Int64.random(in: 0..<(1 << 40), using: &generator)
        let (skip, other) = (Int.random(in: 0..<6, using: &generator), Int.random(in: 0..<6, using: &generator))
        let (noteID, pair) = ("local-\(generator.next())", generator.next())
        @Sendable func account(_ db: Database, _ skip: Int) throws -> Int64? {
            try Int64.fetchOne(
                db, sql: "SELECT id FROM account ORDER BY abs(id) % 1000 LIMIT 1 OFFSET ?", arguments: [skip])
        }
        @Sendable func apply(_ db: Database) throws {
            let (one, two) = (try account(db, skip), try account(db, other))
            switch choice {
            case 0, 1:
                try db.execute(
                    sql: "INSERT INTO account (id, name, parent) VALUES (?, ?, ?)", arguments: [id, text, one])
            case 2 where one != nil:
                try db.execute(
                    sql: """
                        INSERT INTO line VALUES (?1, ?2, ?3, json_object('of', json_array(?4, 'x')))
                        ON CONFLICT DO UPDATE SET text = excluded.text, extra = excluded.extra
                        """, arguments: [one, skip, text, two])
            case 2, 3: try db.execute(sql: "INSERT INTO note VALUES (?, ?)", arguments: [noteID, text])
            case 4: try db.execute(sql: "UPDATE account SET name = ? WHERE id = ?", arguments: [text, one])
            case 5: try db.execute(sql: "UPDATE account SET parent = ? WHERE id = ?", arguments: [two, one])
            case 6: try db.execute(sql: "DELETE FROM account WHERE id = ? AND ? % 3 = 0", arguments: [one, step])
            default:
                // Two notes that are made together: whoever sees one of them sees both.
                for side in ["left", "right"] {
                    let id = "local-\(pair)-\(side)"
                    try db.execute(sql: "INSERT INTO note VALUES (?, ?)", arguments: [id, "pair-\(text)-\(side)"])
                }
                try db.execute(sql: "UPDATE account SET balance = balance - 1 WHERE id = ?", arguments: [one])
                try db.execute(sql: "UPDATE account SET balance = balance + 1 WHERE id = ?", arguments: [two])
            }
        }
        if choice < 7 { return try await node.queue.write { db in try apply(db) } }
        try await engine.atomically { db in try apply(db) }
    }

    private func check(_ nodes: [Node], _ engines: [SyncEngine], _ server: SyncServer, _ seed: UInt64) async throws {
        for (node, engine) in zip(nodes, engines) {
            for table in ["account", "line", "note"] {
                let blocked = try Set(nodes.flatMap { try $0.blocked(table) })
                let rows = try node.rows(table, except: blocked)
                #expect(try nodes[0].rows(table, except: blocked) == rows, "seed \(seed) \(table) \(node.name)")
                #expect(!rows.contains { $0.contains("local-") || $0.contains("-23058") }, "seed \(seed) \(node.name)")
                let shadows = try await node.queue.read { db in
                    try Int.fetchOne(db, sql: "SELECT count(*) FROM tidemark_shadow_\(table)") ?? 0
                }
                #expect(try node.blocked(table).count == shadows, "seed \(seed) \(table) \(node.name)")
            }
            let status = try await engine.status()
            #expect(status.pending + status.sent + status.unnamed == 0, "seed \(seed) \(node.name)")
        }
        let log = String(
            decoding: try await server.changes(in: "w:1", since: nil, limit: 5000, access: .read(as: "ada")),
            as: UTF8.self)
        #expect(!log.contains("local-") && !log.contains("-23058"), "seed \(seed)")
        try await checkLog(server, seed)
    }

    /// The log holds both notes of a pair or none.
    private func checkLog(_ server: SyncServer, _ seed: UInt64) async throws {
        let bytes = try await server.changes(in: "w:1", since: nil, limit: 5000, access: .read(as: "ada"))
        let answer = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
        var sides: [String: Set<String>] = [:]
        for change in answer?["changes"] as? [[String: Any]] ?? [] {
            let parts = ((change["data"] as? [String: Any])?["text"] as? String ?? "").split(separator: "-")
            guard parts.first == "pair", let side = parts.last else { continue }
            #expect(sides["\(parts.dropLast())", default: []].insert(String(side)).inserted, "seed \(seed)")
        }
        #expect(sides.values.allSatisfy { $0.count == 2 }, "seed \(seed)")
    }
}
