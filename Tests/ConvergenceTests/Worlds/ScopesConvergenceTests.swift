import Foundation
import GRDB
import Testing
import Tidemark
import TidemarkTesting
import TidemarkWire

@Suite("Rows that move between scopes come to rest alike on every device that follows them (I4, T26)")
struct ScopesConvergenceTests {
    private static let failedOnce: [UInt64] = [175, 1055, 1072, 8_500_255, 20_800_624]
    static let seeds = ConvergenceTests.seeds + (ConvergenceTests.seeds.count > 100 ? [] : failedOnce)

    @Test("moved rows converge, whatever is edited, moved, lost, repeated or started again", arguments: seeds)
    func converge(seed: UInt64) async throws {
        let followed = [FolderApp.scopes, FolderApp.scopes, ["w:a", "w:b"], ["w:3"]]
        let world = try ConvergenceWorld<FolderApp>(seed, shift: 40_000, following: followed)
        try await world.start { device, _ in try device.engine(page: world.page) }

        for step in 0..<90 {
            let index = world.next()
            if world.generator.chance(70) {
                try world.devices[index].edit(&world.generator, serial: step)
            } else if world.generator.chance(40),
                let one = world.devices[index].scopes.randomElement(using: &world.generator)
            {
                // One scope alone, so that the halves of a move come apart.
                _ = try? await world.devices[index].engine(page: world.page, scopes: [one]).syncNow()
            } else {
                _ = try? await world.engines[index].syncNow()
            }
            if world.generator.chance(5) {
                let limit = Int.random(in: 1...12, using: &world.generator)
                try world.restart(index) { device, _ in try device.engine(page: world.page, operationLimit: limit) }
            }
        }

        await world.endFaults()
        for _ in 0..<6 {
            for (device, engine) in zip(world.devices, world.engines) {
                // A row that another one kept off the table may come up late.
                try await putRight(device)
                try await engine.syncNow()
            }
        }
        try await check(world)
        try world.close()
    }

    /// What cannot travel, or goes where this device does not, is given up. One that another row keeps off the table by
    /// its slug cannot be reached there: the slug is set free, and it comes up.
    private func putRight(_ device: ConvergenceDevice<FolderApp>) async throws {
        let (w, slug) = ("json_extract(CAST(data AS TEXT), '$.w')", "json_extract(CAST(data AS TEXT), '$.slug')")
        let (isStuck, isStuckQuarantined) = (device.isStuck("w"), device.isStuck(w))
        try await device.queue.write { db in
            try db.execute(
                sql: """
                    UPDATE folder SET slug = NULL WHERE slug IN (
                        SELECT \(slug) FROM tidemark_quarantine
                        WHERE entity = 'folder' AND move = 0 AND \(isStuckQuarantined))
                    """)
            for table in FolderApp.tables { try db.execute(sql: "DELETE FROM \(table) WHERE \(isStuck)") }
        }
    }

    private func check(_ world: ConvergenceWorld<FolderApp>) async throws {
        let (devices, seed) = (world.devices, world.seed)
        for device in devices {
            for table in FolderApp.tables {
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
        for scope in FolderApp.scopes {
            let held = try await held(scope, world)
            for device in devices where device.scopes.contains(scope) {
                for table in FolderApp.tables {
                    let here = try device.rows(table, in: scope)
                    #expect(here == held[table] ?? [:], "seed \(seed) \(device.name) \(scope) \(table)")
                }
            }
        }
        // Devices that follow the same scopes show the same rows.
        for table in FolderApp.tables {
            let shown = try devices.prefix(2).map { device in
                try device.queue.read { db in
                    try String.fetchAll(db, sql: "SELECT id || ' ' || w FROM \(table) ORDER BY id")
                }
            }
            #expect(shown.first == shown.last, "seed \(seed) \(table)")
        }
    }

    private func held(
        _ scope: Scope, _ world: ConvergenceWorld<FolderApp>
    ) async throws -> [String: [String: [String: String]]] {
        var tables: [String: [String: [String: String]]] = [:]
        for change in try await world.changes(in: scope) {
            let data = change["data"] as? [String: Any] ?? [:]
            tables[change["entity"] as? String ?? "", default: [:]][change["id"] as? String ?? ""] =
                data.mapValues { $0 is NSNull ? "NULL" : "\($0)" }
        }
        return tables
    }
}
