import Foundation
import GRDB
import Testing
import Tidemark
import TidemarkSQLite
import TidemarkTesting

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Rows that move between scopes come to rest alike on every device that follows them (I4, T26)")
struct ScopesConvergenceTests {
    private static let failedOnce: [UInt64] = [175, 1055, 1072, 8_500_255, 20_800_624]
    static let seeds = ConvergenceTests.seeds + (ConvergenceTests.seeds.count > 100 ? [] : failedOnce)

    @Test("whatever is edited, moved, lost, repeated or started again", arguments: seeds)
    func converge(seed: UInt64) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        var generator = SplitMix64(world: seed &+ 40_000)
        let store = try SQLiteStore(path: directory.appending(path: "server.sqlite").path)
        let server = SyncServer(store: store)
        let followed: [[Scope]] = [Follower.all, Follower.all, ["w:a", "w:b"], ["w:3"]]
        let devices = try followed.enumerated().map { index, scopes in
            try Follower("d\(index)", scopes, in: directory, server: server, seed: seed &* 31 &+ UInt64(index))
        }
        let page = [1, 2, 3, 50][Int(seed % 4)]
        var engines = try devices.map { try $0.engine(page: page) }
        for engine in engines { try await engine.install() }

        for step in 0..<90 {
            let index = Int.random(in: 0..<devices.count, using: &generator)
            if generator.chance(70) {
                try devices[index].edit(&generator, serial: step)
            } else if generator.chance(40), let one = devices[index].scopes.randomElement(using: &generator) {
                // One scope alone, so that the halves of a move come apart.
                _ = try? await devices[index].engine(page: page, scopes: [one]).syncNow()
            } else {
                _ = try? await engines[index].syncNow()
            }
            if generator.chance(5) {
                engines[index] = try devices[index].engine(
                    page: page, operationLimit: Int.random(in: 1...12, using: &generator))
            }
        }

        for device in devices { await device.transport.heal() }
        for _ in 0..<6 {
            for (device, engine) in zip(devices, engines) {
                // A row that another one kept off the table may come up late.
                try await putRight(device)
                try await engine.syncNow()
            }
        }
        try await check(devices, server, seed: seed)
        try store.close()
    }

    /// What cannot travel, or goes where this device does not, is given up. One that another row keeps off the table by
    /// its slug cannot be reached there: the slug is set free, and it comes up.
    private func putRight(_ device: Follower) async throws {
        let (w, slug) = ("json_extract(CAST(data AS TEXT), '$.w')", "json_extract(CAST(data AS TEXT), '$.slug')")
        let (isStuck, isStuckAside) = (device.isStuck("w"), device.isStuck(w))
        try await device.queue.write { db in
            try db.execute(
                sql: """
                    UPDATE folder SET slug = NULL WHERE slug IN (
                        SELECT \(slug) FROM tidemark_quarantine
                        WHERE entity = 'folder' AND move = 0 AND \(isStuckAside))
                    """)
            for table in Follower.tables { try db.execute(sql: "DELETE FROM \(table) WHERE \(isStuck)") }
        }
    }

    private func check(_ devices: [Follower], _ server: SyncServer, seed: UInt64) async throws {
        for device in devices {
            for table in Follower.tables {
                #expect(
                    try device.count("SELECT count(*) FROM tidemark_shadow_\(table)") == 0,
                    "seed \(seed) \(device.name) \(table)")
            }
            #expect(
                try device.count("SELECT count(*) FROM tidemark_operation WHERE finished_at IS NULL") == 0,
                "seed \(seed) \(device.name)")
            #expect(
                try device.count("SELECT count(*) FROM tidemark_quarantine WHERE move <> 0") == 0,
                "seed \(seed) \(device.name)")
        }
        for scope in Follower.all {
            let held = try await held(scope, on: server)
            for device in devices where device.scopes.contains(scope) {
                for table in Follower.tables {
                    let here = try device.rows(table, in: scope)
                    #expect(here == held[table] ?? [:], "seed \(seed) \(device.name) \(scope) \(table)")
                }
            }
        }
        // Devices that follow the same scopes show the same rows.
        for table in Follower.tables {
            let shown = try devices.prefix(2).map { device in
                try device.queue.read { db in
                    try String.fetchAll(db, sql: "SELECT id || ' ' || w FROM \(table) ORDER BY id")
                }
            }
            #expect(shown.first == shown.last, "seed \(seed) \(table)")
        }
    }

    private func held(_ scope: Scope, on server: SyncServer) async throws -> [String: [String: [String: String]]] {
        let bytes = try await server.changes(in: scope, since: nil, limit: 5000, access: .read(as: "ada"))
        let answer = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
        var tables: [String: [String: [String: String]]] = [:]
        for change in answer?["changes"] as? [[String: Any]] ?? [] {
            let data = change["data"] as? [String: Any] ?? [:]
            tables[change["entity"] as? String ?? "", default: [:]][change["id"] as? String ?? ""] =
                data.mapValues { $0 is NSNull ? "NULL" : "\($0)" }
        }
        return tables
    }
}
