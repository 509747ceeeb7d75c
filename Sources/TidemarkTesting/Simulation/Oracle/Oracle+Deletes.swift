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

    /// Records that nobody made again.
    var final: [OracleKey] { deleted.filter { insertCounts[$0] == 1 }.sorted() }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    /// At the end. A delete that did not take effect is in a list of the device where it was made.
    func checkDeletes() throws {
        guard !world.hasLostDevices, scopes.values.allSatisfy({ $0.newest == 0 }) else { return }
        for key in deletes.final {
            guard let table = tables[key.entity], !table.isRevivedByEdits, table.place == nil, !table.hasServerIDs,
                let row = table.scopes.lazy.compactMap({ self.scopes[$0]?.current.newest(key) }).first,
                try !world.devices.contains(where: { try isDeleteListed(key, $0) })
            else { continue }
            throw Violation("I6", "\(key) was deleted, and is there at the end: \(text(row))")
        }
    }

    private func isDeleteListed(_ key: OracleKey, _ device: SimulatedDevice) throws -> Bool {
        try device.file.queue.unsafeRead { db in
            try Bool.fetchOne(
                db,
                sql: """
                    SELECT EXISTS (SELECT 1 FROM tidemark_operation WHERE entity = ?1 AND record = ?2
                        AND kind = 'delete' AND status IN ('rejected', 'conflict'))
                      OR EXISTS (SELECT 1 FROM tidemark_conflict WHERE entity = ?1 AND record = ?2)
                      OR EXISTS (SELECT 1 FROM tidemark_aside WHERE entity = ?1 AND record = ?2)
                    """, arguments: [key.entity, key.record]) ?? false
        }
    }
}
