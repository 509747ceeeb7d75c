import Foundation
import GRDB
import Testing
import Tidemark
import TidemarkSQLite
import TidemarkTesting

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Under every policy, devices and server come to hold the same rows (I4)")
struct PolicyConvergenceTests {
    struct Setting: CustomTestStringConvertible, Sendable {
        var conflict: ConflictPolicy
        var deletes: DeletePolicy
        var isStrict = false
        var testDescription: String { "\(conflict), deletes \(deletes)" + (isStrict ? ", with a strict rule" : "") }
    }

    static let settings =
        ConflictPolicy.allCases.flatMap { conflict in
            DeletePolicy.allCases.map { Setting(conflict: conflict, deletes: $0) }
        } + [
            Setting(conflict: .mergeFields, deletes: .win, isStrict: true),
            Setting(conflict: .manual, deletes: .lose, isStrict: true),
        ]

    static let seeds: [UInt64] = {
        let failedOnce: [UInt64] = [3]
        let count = ProcessInfo.processInfo.environment["TIDEMARK_SEEDS"].flatMap { UInt64($0) }
        return count.map { SplitMix64.worlds($0, from: 1) } ?? [1] + failedOnce
    }()

    @Test(
        "devices and server converge under each policy, whatever is edited, lost, repeated, refused or left to the app",
        arguments: settings, seeds)
    func converge(setting: Setting, seed: UInt64) async throws {
        let world = try ConvergenceWorld<ProjectApp>(seed, shift: 40_000, wires: 37) { server($0, setting) }
        // What a handler decides depends on nothing but the conflict, so that a seed is a whole story.
        let decide: ConflictHandler = { conflict in
            switch conflict.id % 4 {
            case 0: .keepMine
            case 1: .takeTheirs
            case 2: .merge(["title": .text("decided \(conflict.id)")])
            default: nil
            }
        }
        try await world.start { device, _ in try device.engine(page: world.page, onConflict: decide) }
        for step in 0..<70 {
            let index = world.next()
            if world.generator.chance(75) {
                try world.devices[index].edit(&world.generator, serial: step)
            } else {
                _ = try? await world.engines[index].syncNow()
            }
            if world.generator.chance(5) {
                try world.restart(index) { device, _ in try device.engine(page: world.page, onConflict: decide) }
            }
        }
        await world.endFaults()
        try await syncToEnd(world.engines)
        try await world.expectSameRows()
        try await compare(world)
        try world.close()
    }

    private func server(_ store: SQLiteStore, _ setting: Setting) -> SyncServer {
        // Every seventh text is not to the operator's liking.
        let isRefused: @Sendable (Value?) -> Bool = { value in
            guard setting.isStrict, case .text(let text)? = value else { return false }
            return (text.split(separator: "-").last.flatMap { Int($0) } ?? 1) % 7 == 0
        }
        return SyncServer(
            store: store,
            entities: ["project", "task"].map { .state($0, conflict: setting.conflict, deletes: setting.deletes) },
            rules: ["project", "task"].map { entity in
                EntityRule(entity) { edit in
                    isRefused(edit.mine["name"]) || isRefused(edit.mine["title"])
                        ? .reject(code: "unlucky", detail: "Not this one.") : .accept
                }
            })
    }

    /// Everything is sent, decided or given up.
    private func syncToEnd(_ engines: [SyncEngine]) async throws {
        for _ in 0..<12 {
            var isQuiet = true
            for engine in engines {
                try await engine.syncNow()
                for conflict in try await engine.conflicts() where conflict.isOpen {
                    isQuiet = false
                    try await engine.resolve(conflict, with: .takeTheirs)
                }
                for operation in try await engine.rejectedOperations() {
                    isQuiet = false
                    try await engine.discard(operation)
                }
                try await engine.syncNow()
            }
            if isQuiet { break }
        }
        for _ in 0..<3 { for engine in engines { try await engine.syncNow() } }
        for engine in engines { #expect(try await engine.status().blocked == 0) }
    }

    /// Titles and names as the server has them are those on every device.
    private func compare(_ world: ConvergenceWorld<ProjectApp>) async throws {
        var served: [String: String] = [:]
        for change in try await world.changes() {
            guard let entity = change["entity"] as? String, let id = change["id"] as? String,
                let data = change["data"] as? [String: Any]
            else { continue }
            served["\(entity) \(id)"] = (data["title"] ?? data["name"]) as? String ?? ""
        }
        for device in world.devices {
            let here = try await device.queue.read { db in
                try Row.fetchAll(
                    db,
                    sql: """
                        SELECT 'task ' || id, coalesce(title, '') FROM task
                        UNION ALL SELECT 'project ' || id, coalesce(name, '') FROM project
                        """
                ).map { (name: $0[0] as String, text: $0[1] as String) }
            }
            for row in here { #expect(served[row.name] == row.text, "seed \(world.seed) \(device.name) \(row.name)") }
        }
    }
}
