import Foundation
import GRDB
import Tidemark
import TidemarkServer
import TidemarkWire

/// Records by what acts did with them, for I6: a record that was made only once, and that somebody deleted, does not
/// come back by itself.
struct OracleDeletes {
    private var insertCounts: [OracleKey: Int] = [:]
    private var deleted: Set<OracleKey> = []

    mutating func note(_ key: OracleKey, wasThere: Bool, isThere: Bool) {
        if !wasThere, isThere { insertCounts[key, default: 0] += 1 }
        if wasThere, !isThere { deleted.insert(key) }
    }

    /// It came with the app.
    mutating func noteSeed(_ key: OracleKey) { insertCounts[key] = 1 }

    /// The delete was not meant.
    mutating func takeBack(_ key: OracleKey) { deleted.remove(key) }

    /// Records that nobody made again.
    var final: [OracleKey] { deleted.filter { insertCounts[$0] == 1 }.sorted() }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    /// At the end. A delete that did not take effect is in a list of the device where it was made.
    func checkDeletes() throws {
        guard scopes.values.allSatisfy({ $0.newest == 0 }) else { return }
        for key in deletes.final where !isLost(key) {
            guard let table = tables[key.entity], !table.isRevivedByEdits, table.place == nil, !table.hasServerIDs,
                let row = table.scopes.lazy.compactMap({ self.scopes[$0]?.current.newest(key) }).first,
                try !world.devices.contains(where: { try isDeleteListed(key, $0) })
            else { continue }
            throw Violation("I6", "\(key) was deleted, and is there at the end: \(text(row))")
        }
    }

    /// The log has a tombstone: an act took the record away, or moved it to another scope, once for each.
    func checkAsked(_ key: OracleKey, in scope: Scope, at version: Version) throws {
        guard let table = tables[key.entity] else { return }
        let cell = OracleCell.delete(key)
        entered[cell, default: 0] += 1
        let copies = scopes[scope]?.newest == 0 ? 0 : copied[cell, default: 0]
        guard entered[cell, default: 0] > allowed[cell, default: 0] + copies, !isUnnamed(table),
            // Which of its rows stands, its own scopes decide.
            !devices.contains(where: { $0.scattered.contains(key) }), !isCascaded(key, table)
        else { return }
        throw Violation(
            "I1",
            """
            log of \(scope), version \(version): \(key) is deleted for the \(entered[cell, default: 0]). time, and \
            acts did so \(allowed[cell, default: 0]) times
            """)
    }

    /// Whether the schema deletes a record with another one, which was deleted or never came to be. Each device that
    /// has the record does so, and edits of the reference meet: any that was ever written counts.
    private func isCascaded(_ key: OracleKey, _ table: OracleTable) -> Bool {
        let parents = table.parents.filter(\.isCascade)
        guard !parents.isEmpty else { return false }
        return allowed.keys.contains { cell in
            guard cell.key == key, let value = cell.value, value != .null,
                let parent = parents.first(where: { table.data[$0.index] == cell.column })
            else { return false }
            let place = OracleKey(entity: parent.table, record: value.bare)
            return verdicts.refused.contains(place) || scopes.values.contains { $0.hasTombstone(of: place) }
        }
    }

    private func isDeleteListed(_ key: OracleKey, _ device: SimulatedDevice) throws -> Bool {
        try device.file.queue.unsafeRead { db in
            try Bool.fetchOne(
                db,
                sql: """
                    SELECT EXISTS (SELECT 1 FROM tidemark_operation WHERE entity = ?1 AND record = ?2
                        AND kind = 'delete' AND state IN ('rejected', 'conflict'))
                      OR EXISTS (SELECT 1 FROM tidemark_conflict WHERE entity = ?1 AND record = ?2)
                      OR EXISTS (SELECT 1 FROM tidemark_orphan WHERE entity = ?1 AND record = ?2)
                    """, arguments: [key.entity, key.record]) ?? false
        }
    }
}
