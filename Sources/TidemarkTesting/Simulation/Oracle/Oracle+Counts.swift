import GRDB
import Tidemark
import TidemarkServer

// Each row of a synced table is confirmed, outgoing, stalled or unable to travel, and the four add up (I13).
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    /// After a step: every device counts its rows. One with writes that nobody noted is asked by its app, which finds
    /// them first.
    func checkCounts() {
        guard countsRows else { return }
        for device in world.devices {
            check {
                try device.file.queue.unsafeRead { db in
                    guard db.totalChangesCount != countedChanges[device.number] else { return }
                    countedChanges[device.number] = db.totalChangesCount
                    guard isCaptured(device.number) else { return }
                    try checkCounts(SyncStatus(db, scopes: world.app.parts), of: device.number, db)
                }
            }
        }
    }

    private func isCaptured(_ device: Int) -> Bool { uncapturedTable(of: device) == nil }

    /// A table that is not there, or that may be written without a note of it.
    func uncapturedTable(of device: Int) -> String? {
        let sight = devices[device].sight
        return inOrder.first { $0.captureCount != nil && sight.captureCounts[$0.name] != $0.captureCount }?.name
    }

    /// An app asked for its status.
    func checkStatus(_ status: SyncStatus, on device: Int) {
        check {
            let missing = devices[device].sight.missing
            guard Set(status.missingTables) == missing else {
                throw Violation(
                    "I13", "device \(device) tells that \(status.missingTables) are missing; so are \(missing.sorted())"
                )
            }
            try world.devices[device].file.queue.unsafeRead { db in
                guard isCaptured(device) else {
                    guard missing.isEmpty else { return }
                    throw Violation(
                        "I13", "device \(device) was asked for its status, and does not note what is written")
                }
                try checkCounts(status, of: device, db)
            }
        }
    }

    private func checkCounts(_ status: SyncStatus, of device: Int, _ db: Database) throws {
        let known = devices[device]
        for table in inOrder {
            let count = try Int.fetchOne(db.cachedStatement(sql: "SELECT count(*) FROM \"\(table.name)\"")) ?? 0
            guard let rows = status.tables[table.name] else {
                throw Violation("I13", "device \(device) does not count \(table.name)")
            }
            func fail(_ text: String) -> Violation {
                Violation("I13", "device \(device), \(table.name), \(count) rows: \(text): \(rows)")
            }
            let parts = [rows.confirmed, rows.outgoing, rows.stalled, rows.unable, rows.deletes, rows.quarantined]
            guard parts.allSatisfy({ $0 >= 0 }), rows.total == count else { throw fail("they do not add up") }
            let odd = known.sight.odd[table.name] ?? []
            let nameless = odd.count { $0.hasPrefix("NULL|") }
            guard nameless...odd.count ~= rows.unable else { throw fail("\(odd.count) cannot travel") }
            // Whether one whose id the server has given meanwhile is this or that record is not the oracle's to say.
            guard !table.hasServerIDs, !isUnnamed(table) else { continue }
            let edits = known.sight.rows.keys.filter { $0.entity == table.name && isEdited($0, known, table) }
            guard rows.confirmed <= count - odd.count - edits.count else {
                throw fail("\(edits.sorted()) were edited, and are not on the server")
            }
            let deletes = known.writes.filter { key, writes in
                key.entity == table.name && writes[""].map { $0.logged == nil && !$0.isBaseless } ?? false
                    && known.sight.rows[key] == nil && known.sight.base(key) != nil
                    && !known.sight.quarantined.contains(key)
                    && wasLogged(key, table, as: device)
            }
            guard rows.deletes >= deletes.count else { throw fail("\(deletes.keys.sorted()) were deleted") }
        }
    }

    /// Whether the server has ever had the record, as far as the device can know: one that has asked for nothing yet
    /// knows of what it has sent.
    private func wasLogged(_ key: OracleKey, _ table: OracleTable, as device: Int) -> Bool {
        table.scopes.contains { scope in
            let versions = (scopes[scope]?.histories ?? []).flatMap { $0.versions[key] ?? [] }
            let standing = devices[device].sight.scopes[scope]
            guard standing?.complete == nil, standing?.checkpoint == nil else { return !versions.isEmpty }
            return versions.contains { verdicts.authors[scope]?[$0]?.device == device }
        }
    }

    /// Whether an act wrote something that the server has not, as far as the device can know.
    private func isEdited(_ key: OracleKey, _ known: OracleDevice, _ table: OracleTable) -> Bool {
        guard let writes = known.writes[key], let cells = known.sight.rows[key], !known.sight.quarantined.contains(key),
            known.sight.doubled[key] == nil
        else { return false }
        let base = known.sight.base(key)
        return table.data.indices.contains { index in
            writes[table.data[index]].map { $0.logged == nil && !$0.isYielding && $0.value == cells[index] } ?? false
                && base?[index] != cells[index]
        }
    }

    /// At the end: a row that is not confirmed cannot travel, or is stalled until the app decides.
    func checkFinalCounts(_ status: SyncStatus, of device: Int, _ db: Database, except others: Set<OracleKey>) throws {
        let sight = devices[device].sight
        let open = Set(
            try Row.fetchAll(db, sql: "SELECT entity, record FROM tidemark_conflict WHERE is_open").map {
                names[OracleKey(entity: $0[0], record: $0[1])]
            })
        for table in inOrder {
            guard let rows = status.tables[table.name] else { continue }
            let place = "at the end, device \(device), \(table.name)"
            let odd = sight.odd[table.name]?.count ?? 0
            let stalled = others.union(open).count { $0.entity == table.name }
            guard rows.unable - odd <= stalled, rows.unable >= odd, rows.outgoing == 0, rows.deletes <= stalled,
                rows.stalled <= stalled
            else { throw Violation("I13", "\(place): \(odd) cannot travel, \(stalled) are stalled: \(rows)") }
            let quarantined = sight.quarantined.count { $0.entity == table.name }
            guard (rows.quarantined == 0) == (quarantined == 0) else {
                throw Violation("I13", "\(place): \(quarantined) are quarantined: \(rows)")
            }
        }
    }
}
