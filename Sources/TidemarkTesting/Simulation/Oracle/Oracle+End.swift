import GRDB
import Tidemark
import TidemarkServer
import TidemarkWire

// What must hold when the faults are over and all devices are in sync (I4, I11, I12).
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    func conclude() throws {
        try report()
        checkStore()
        check {
            for device in devices.indices {
                try checkEnd(device)
                try checkTold(device)
            }
            for scope in world.app.parts { try checkReplayed(scope) }
            try checkDeletes()
            try checkReferences()
        }
        try report()
    }

    private func checkEnd(_ device: Int) throws {
        try world.devices[device].file.queue.unsafeRead { db in
            let sight = try OracleDevice.Sight(db, inOrder, names, after: devices[device].sight)
            // What the app has to decide about: edits that were never sent, and what refers to a refused record.
            let local = try Self.keys(
                db,
                """
                SELECT entity, record FROM tidemark_operation WHERE state = 'rejected' AND lane IS NULL
                UNION SELECT entity, record FROM tidemark_blocked WHERE reason = 'refused'
                """)
            for table in inOrder { try checkTable(table, sight, device, except: local.union(sight.quarantined)) }
            for key in sight.quarantined.subtracting(local).sorted() { try checkQuarantined(key, sight, device, db) }
            try checkFound(device, sight, db)
            try checkFinalCounts(
                SyncStatus(db, scopes: world.app.parts), of: device, db, except: local.union(sight.quarantined))
            if let key = sight.shadows.keys.filter({ !local.contains($0) }).min() {
                throw Violation("I4", "device \(device): \(key) is still held to be edited")
            }
            if let orphan = try Self.keys(db, "SELECT entity, record FROM tidemark_orphan WHERE reason IS NULL").min() {
                throw Violation("I7", "device \(device): an edit of \(orphan) is still orphaned")
            }
            // An edit that could not be replayed in its scope stays in the list, with the reason.
            let kept = try Self.keys(db, "SELECT entity, record FROM tidemark_orphan").union(local).union(
                sight.quarantined)
            if let key = devices[device].writes.keys.filter({ !kept.contains($0) }).min(),
                let (column, write) = devices[device].writes[key]?.min(by: { $0.key < $1.key })
            {
                let edit = "\(key).\(column) = \(write.value?.bare ?? "nothing") of act \(write.serial)"
                throw Violation(
                    "I1", "device \(device): \(edit) came to no end, logged at \(write.logged?.version ?? -1)")
            }
            // What was lost twice comes back in any order, groups of it too.
            let isInOrder = scopes.values.allSatisfy { $0.newest < 2 }
            try checkInvariants(
                world.app.invariants + (isInOrder ? world.app.finalInvariants : []), db,
                "device \(device), at the end")
            // All devices choose alike among rows that contend for a value.
            let (here, there) = (
                sight.quarantined.filter { !isNextToPart($0) },
                devices[0].sight.quarantined.filter { !isNextToPart($0) }
            )
            guard here == there else {
                throw Violation(
                    "I4", "quarantined on device \(device): \(here.sorted()), on device 0: \(there.sorted())")
            }
        }
    }

    /// Whether a restored server got back only a part of the record, or of one that may contend with it: who has the
    /// rest shows it, and no schema takes the part alone.
    private func isNextToPart(_ key: OracleKey) -> Bool {
        scopes.values.contains { histories in
            let current = histories.current
            return current.versions.keys.contains { other in
                other.entity == key.entity && current.newest(other)?.contains { $0 == nil } ?? false
            }
        }
    }

    private static func keys(_ db: Database, _ sql: String) throws -> Set<OracleKey> {
        let rows = try Row.fetchAll(db.cachedStatement(sql: sql))
        return Set(rows.map { OracleKey(entity: $0[0], record: $0[1]) })
    }

    private func checkTable(
        _ table: OracleTable, _ sight: OracleDevice.Sight, _ device: Int, except others: Set<OracleKey>
    ) throws {
        var expected: [OracleKey: [Value?]] = [:]
        for scope in table.scopes {
            guard let history = scopes[scope]?.current else { continue }
            for key in history.versions.keys where key.entity == table.name {
                if let cells = history.newest(key) { expected[key] = cells }
            }
        }
        let keys = Set(expected.keys).union(sight.rows.keys.filter { $0.entity == table.name })
        for key in keys.subtracting(others).sorted() where !expected[key].fits(sight.rows[key]) {
            throw Violation(
                "I4", "device \(device): \(key) is \(text(sight.rows[key])), in the log \(text(expected[key]))")
        }
    }

    /// What the engine says of itself once it is in sync.
    func checkStatus(_ status: SyncStatus?, of device: Int) {
        check {
            guard let status else { throw Violation("I12", "device \(device): there is no status") }
            var faults: [String] = []
            // It may be in sync and wait after a failure before it asks again.
            if case .stopped = status.activity { faults.append("activity \(status.activity)") }
            if status.activity == .syncing { faults.append("activity \(status.activity)") }
            if status.pending + status.sent > 0 { faults.append("pending \(status.pending), sent \(status.sent)") }
            for (scope, standing) in status.scopes {
                if standing.lag != 0 { faults.append("lag \(String(describing: standing.lag)) of \(scope)") }
                if standing.bootstrap != nil || standing.accessLost != nil { faults.append("\(scope) is not whole") }
                if standing.lastSync == nil { faults.append("\(scope) was never in sync") }
            }
            guard faults.isEmpty else {
                throw Violation("I12", "device \(device) says: \(faults.joined(separator: ", "))")
            }
        }
    }
}
