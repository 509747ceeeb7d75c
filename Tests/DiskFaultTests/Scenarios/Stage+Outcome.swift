import GRDB
import Tidemark
import TidemarkWire

/// What is left at the end: it has to be the same whatever failed on the way.
struct Outcome: Hashable, Sendable {
    /// The rows of a device that has just begun.
    var rows: [String] = []
    /// The refused edits, conflicts and orphaned edits of each device, which wait for the app.
    var lists: [String] = []
}

extension Stage {
    /// Syncs until nothing is left to do anywhere, and says what has become of everything.
    func outcome() async throws -> Outcome {
        try await syncToEnd()
        disk.endFaults()
        let fresh = DiskDevice("fresh", scenario.cast, on: FaultDisk(), .queue, board)
        try await fresh.open()
        for (version, sql) in scenario.migrations.enumerated() { try await fresh.migrate(to: version + 2, sql) }
        if !scenario.migrations.isEmpty { try await fresh.makeEngine() }
        try await fresh.sync()
        var outcome = Outcome()
        for query in scenario.queries { outcome.rows += try await fresh.rows(query) }
        for device in devices + [fresh] { try await check(device, against: fresh, &outcome) }
        fresh.close()
        for surprise in await board.surprises { note("the server answered with an error of its own: \(surprise)") }
        close()
        try checkFile(server.disk.path("sync.sqlite"))
        for device in devices { try checkFile(device.disk.path("app.sqlite")) }
        return outcome
    }

    private static let rounds = 8

    private func syncToEnd() async throws {
        for _ in 0..<Self.rounds {
            var isQuiet = true
            for device in devices {
                do {
                    try await device.sync()
                    let pending = try await leftovers(device)
                    isQuiet = isQuiet && pending.isEmpty
                } catch {
                    isQuiet = false
                    explain(error, in: "sync \(device.name) in the end")
                    await recover()
                }
            }
            if isQuiet {
                // What each has sent, the others get.
                for device in devices { try await device.sync() }
                return
            }
        }
        for device in devices {
            for leftover in (try? await leftovers(device)) ?? [] { note("\(device.name) is left with \(leftover)") }
        }
        throw Wedged(step: "the end")
    }

    /// The library's own work in progress, which is none when all is done.
    private func leftovers(_ device: DiskDevice) async throws -> [String] {
        var found: [String] = []
        let shadows = scenario.cast.tables.map { "tidemark_shadow_\($0.name)" }
        for table in shadows + [
            "tidemark_operation WHERE finished_at IS NULL", "tidemark_bootstrap", "tidemark_staged",
            "tidemark_applying", "tidemark_refetch", "tidemark_cascade", "tidemark_backfill", "tidemark_renaming",
            "tidemark_blocked",
        ] where try await device.rows("SELECT count(*) FROM \(table)") != ["0"] { found.append(table) }
        return scenario.staysPending ? [] : found
    }

    private func check(_ device: DiskDevice, against fresh: DiskDevice, _ outcome: inout Outcome) async throws {
        for query in scenario.queries {
            let scopes = device.scopes.map { "'\($0.name.dropFirst(2))'" }.joined(separator: ",")
            let held = "SELECT * FROM (\(query)) WHERE w IN (\(scopes))"
            let (here, there) = (try await device.rows(held), try await fresh.rows(held))
            if here != there { note("\(device.name) holds \(here), a fresh device \(there)") }
            if try await device.rows(query).count != here.count, !scenario.staysPending {
                note("\(device.name) holds rows of other scopes")
            }
        }
        guard let engine = device.engine else { throw DiskDevice.Closed() }
        let report = try await engine.verify()
        if !report.isClean || report.differing > 0 { note("\(device.name) differs by digest: \(report.scopes)") }
        guard device !== fresh else { return }
        let status = try await engine.status()
        outcome.lists.append(
            "\(device.name): \(status.rejected) refused, \(status.undecided) undecided, \(status.orphaned) orphaned, "
                + "\(status.quarantined) quarantined")
    }

    private func checkFile(_ path: String) throws {
        let queue = try DatabaseQueue(path: path)
        defer { try? queue.close() }
        let found = try queue.read { try String.fetchAll($0, sql: "PRAGMA integrity_check") }
        if found != ["ok"] { note("\(path): \(found)") }
    }
}
