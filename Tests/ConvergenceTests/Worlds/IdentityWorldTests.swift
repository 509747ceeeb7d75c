import GRDB
import Testing
import Tidemark
import TidemarkSQLite
import TidemarkTesting

@testable import TidemarkServer
@testable import TidemarkWire

/// Devices that make records under temporary ids, refer to them, and edit in groups, over a wire that loses, repeats
/// and cuts.
@Suite("Temporary ids and groups converge too (A17)")
struct IdentityWorldTests {
    @Test(
        "records under temporary ids and groups converge, whatever is edited, lost, repeated, cut or started again",
        arguments: ConvergenceTests.seeds)
    func converge(seed: UInt64) async throws {
        let world = try ConvergenceWorld<AccountApp>(seed, shift: 70_000, wires: 37) { store in
            SyncServer(store: store, entities: [.state("account", ids: .server), .state("note", ids: .server)])
        }
        try await world.start { device, generator in try device.engine(&generator) }
        for step in 0..<90 {
            let index = world.next()
            if world.generator.chance(75) {
                try await edit(world, index, step)
            } else {
                _ = try? await world.engines[index].syncNow()
            }
            try world.devices[index].checkPairs("seed \(seed) step \(step)")
            if world.generator.chance(5) {
                try world.restart(index) { device, generator in try device.engine(&generator) }
            }
        }
        await world.endFaults()
        try await world.sync(times: 6)
        try await check(world)
        try world.close()
    }

    private func edit(_ world: ConvergenceWorld<AccountApp>, _ index: Int, _ step: Int) async throws {
        let (device, engine) = (world.devices[index], world.engines[index])
        let (choice, text) = (world.generator.below(10), "\(device.name)-\(step)")
        let id = -(1 << 61) - Int64.random(in: 0..<(1 << 40), using: &world.generator)
        let (skip, other) = (world.generator.below(6), world.generator.below(6))
        let (noteID, pair) = ("local-\(world.generator.next())", world.generator.next())
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
        if choice < 7 { return try await device.queue.write { db in try apply(db) } }
        try await engine.atomically { db in try apply(db) }
    }

    private func check(_ world: ConvergenceWorld<AccountApp>) async throws {
        let (devices, seed) = (world.devices, world.seed)
        for (device, engine) in zip(devices, world.engines) {
            for table in ["account", "line", "note"] {
                let blocked = try Set(devices.flatMap { try $0.blocked(table) })
                let rows = try device.rows(table, except: blocked)
                #expect(try devices[0].rows(table, except: blocked) == rows, "seed \(seed) \(table) \(device.name)")
                #expect(
                    !rows.contains { $0.contains("local-") || $0.contains("-23058") }, "seed \(seed) \(device.name)")
                let shadows = try await device.queue.read { db in
                    try Int.fetchOne(db, sql: "SELECT count(*) FROM tidemark_shadow_\(table)") ?? 0
                }
                #expect(try device.blocked(table).count == shadows, "seed \(seed) \(table) \(device.name)")
            }
            let status = try await engine.status()
            let unnamed = try await device.queue.read { db in
                try Int.fetchOne(db, sql: "SELECT count(*) FROM tidemark_blocked WHERE reason = 'awaiting_id'") ?? 0
            }
            #expect(status.pending + status.sent + unnamed == 0, "seed \(seed) \(device.name)")
        }
        let log = String(decoding: try await world.log(), as: UTF8.self)
        #expect(!log.contains("local-") && !log.contains("-23058"), "seed \(seed)")
        try await checkLog(world)
    }

    /// The log holds both notes of a pair or none.
    private func checkLog(_ world: ConvergenceWorld<AccountApp>) async throws {
        var sides: [String: Set<String>] = [:]
        for change in try await world.changes() {
            let parts = ((change["data"] as? [String: Any])?["text"] as? String ?? "").split(separator: "-")
            guard parts.first == "pair", let side = parts.last else { continue }
            #expect(sides["\(parts.dropLast())", default: []].insert(String(side)).inserted, "seed \(world.seed)")
        }
        #expect(sides.values.allSatisfy { $0.count == 2 }, "seed \(world.seed)")
    }
}
