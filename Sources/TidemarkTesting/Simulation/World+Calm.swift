import GRDB
import Tidemark
import TidemarkCore
import TidemarkServer
import TidemarkWire

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension World {
    /// The faults end: every app runs, every message arrives, and nobody writes. Returns after how many milliseconds
    /// all devices were in sync.
    func calm(limit: Int64) throws -> Int64 {
        note("calm")
        server.fail(0)
        server.life.remaining = nil
        grants = [:]
        server.liftQuotas(in: self)
        for device in devices {
            device.process?.remaining = nil
            device.process?.last = nil
            device.second?.remaining = nil
            // An app that has left its schema half way is opened anew.
            if try migrate(device) { kill(device) }
            try start(device)
            device.process?.run()
        }
        let start = time
        try calmFiles()
        flow()
        if hasRemedies {
            // Each is carried out before it is over.
            try askWanted()
            wakeAll()
            try checkRemedies(limit: limit)
            try clearRemedies()
        }
        try askAfterQuota()
        decideInferred()
        var leftovers = try leftovers()
        for _ in 0..<Self.longestHurry where plan.isHurried && !leftovers.isEmpty {
            for device in devices { device.process?.sync() }
            quiesce()
            flow()
            decideInferred()
            leftovers = try self.leftovers()
        }
        while !leftovers.isEmpty, let due = timers.next, due - start <= limit + Self.patience(with: leftovers) {
            pass(max(0, due - time))
            flow()
            try lookForHandovers()
            oracle?.checkFiles()
            // An answer from before may have come only now.
            try askAfterQuota()
            decideInferred()
            try oracle?.report()
            leftovers = try self.leftovers()
        }
        let quiet = time - start
        guard leftovers.isEmpty else {
            try oracle?.report()
            throw Violation("I12", "not in sync after \(quiet) ms without faults: \(leftovers.joined(separator: "; "))")
        }
        if hasRemedies { try checkRemedies(limit: limit) }
        var statuses = statuses()
        // An answer from another moment may have stopped one that has nothing to send: it asks again in its own time.
        while statuses.contains(where: \.isStopped), let due = timers.next, due - start <= limit {
            pass(max(0, due - time))
            flow()
            statuses = self.statuses()
        }
        for (number, status) in statuses.enumerated() { oracle?.checkStatus(status, of: number) }
        try oracle?.conclude()
        try fetchAll()
        if plan.isVerified { try compareAll() }
        return quiet
    }

    /// Syncs devices with edits that a scope had no room for: these wait up to 15 minutes, or until somebody asks.
    private func askAfterQuota() throws {
        for device in devices {
            let isPutOff = try device.file.queue.unsafeRead { db in
                try Bool.fetchOne(
                    db, sql: "SELECT EXISTS (SELECT 1 FROM tidemark_scope WHERE deferred_until IS NOT NULL)") ?? false
            }
            if isPutOff { device.process?.sync() }
        }
        quiesce()
        flow()
    }

    /// People say whether they meant what was written while nobody noted it, where it was much.
    private func decideInferred() {
        guard !app.migrating.isEmpty else { return }
        for device in devices {
            guard let engine = device.process?.engine, oracle?.devices[device.number].sight.held.isEmpty == false else {
                continue
            }
            let (number, isMeant) = (device.number, draw() % 2 == 0)
            if !isMeant { oracle?.discards(number) }
            device.process?.start { [self] in
                do {
                    if isMeant {
                        try await engine.confirmInferredEdits()
                    } else {
                        try await engine.discardInferredEdits()
                    }
                } catch { oracle?.check { throw Violation("I13", "device \(number) cannot decide: \(error)") } }
            }
            quiesce()
            flow()
        }
    }

    /// How often people ask for a sync before they let time do it.
    private static let longestHurry = 3

    private func statuses() -> [SyncStatus?] {
        for device in devices {
            device.status = nil
            guard let process = device.process, let engine = process.engine else { continue }
            let number = device.number
            process.start { [self] in devices[number].status = try? await engine.status() }
            quiesce()
        }
        return devices.map(\.status)
    }

    /// The world is over: nobody waits for anything any more.
    func end() {
        for device in devices { killAll(device) }
        messages = []
        try? server.close()
    }

    /// The reasons for which devices are not in sync with the server.
    private func leftovers() throws -> [String] {
        var found: [String] = []
        for device in devices {
            found += try fileLeftovers(of: device)
            if let table = oracle?.uncapturedTable(of: device.number) {
                found.append("device \(device.number): \(table) is written unseen")
            }
            try device.file.queue.unsafeRead { db in
                for table in app.migrating.keys.sorted() where try isOutgrown(table, db) {
                    found.append("device \(device.number): columns of \(table) are new")
                }
                var counts = [
                    ("operations", "tidemark_operation WHERE finished_at IS NULL"), ("refetch", "tidemark_refetch"),
                    ("scopes never in sync", "tidemark_scope WHERE last_sync IS NULL"),
                    ("bootstraps", "tidemark_bootstrap"), ("scans", "tidemark_scope WHERE scanning"),
                    ("blocked", "tidemark_blocked WHERE reason = 'awaiting_id'"), ("backfills", "tidemark_backfill"),
                    // Until the checkpoint tells of a verdict, only the next request would hear that it was lost.
                    ("verdicts ahead", "tidemark_known_version"),
                    ("inferred", "tidemark_inferred"),
                    ("first captures", "tidemark_table WHERE uncompared IS NOT NULL"),
                    ("first keys", "tidemark_first_capture"), ("sealed runs", "tidemark_sealed_run"),
                    ("departures", "tidemark_quarantine WHERE move <> 0"),
                ]
                for table in app.tables {
                    counts.append(("marks", "\"tidemark_shadow_\(table.name)\" WHERE tidemark_mark IS NOT NULL"))
                }
                for (name, source) in counts {
                    let statement = try db.cachedStatement(sql: "SELECT count(*) FROM \(source)")
                    let count = try Int.fetchOne(statement) ?? 0
                    if count > 0 { found.append("device \(device.number): \(count) \(name)") }
                }
                for scope in app.parts {
                    let statement = try db.cachedStatement(
                        sql: "SELECT complete, epoch FROM tidemark_scope WHERE name = ?")
                    let row = try Row.fetchOne(statement, arguments: [scope.name])
                    let (complete, epoch): (Int64?, String?) = (row?[0], row?[1])
                    let state = try server.store.state(of: scope)
                    // The same number may be another history's.
                    let opening = state.incarnations.last { $0.start < state.head }?.id ?? 0
                    guard complete != state.head || epoch.flatMap(Epoch.init(text:))?.id != opening else { continue }
                    found.append("device \(device.number): \(scope) at \(complete ?? -1) of \(state.head)")
                }
            }
        }
        return found
    }

    /// Whether a table has columns that the library has not heard of yet.
    private func isOutgrown(_ table: String, _ db: Database) throws -> Bool {
        let sql = """
            SELECT EXISTS (SELECT name FROM pragma_table_info(?1)
            EXCEPT SELECT name FROM pragma_table_info('tidemark_shadow_' || ?1))
            """
        return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [table]) ?? false
    }
}

extension SyncStatus? {
    fileprivate var isStopped: Bool { if case .stopped? = self?.activity { true } else { false } }
}
