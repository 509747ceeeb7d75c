import GRDB
import Synchronization
import Tidemark
import TidemarkCore

/// Tries an audit with faults: after a transaction each is planted in the file, the audit looks, and the file is put
/// back to what it was, so that the world goes on and the next fault finds it whole.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
package final class RecordFaultTrial: Sendable {
    /// How often a fault was planted, and how often it was seen.
    package struct Tally: Hashable, Sendable {
        package var planted = 0
        package var seen = 0

        package init() {}
    }

    private let tallies = Mutex<[RecordFault: Tally]>([:])
    /// An audit of its own, which knows nothing of what the world's comes to.
    private let audit = RecordAudit()
    /// How often each is planted, at most: a look reads all rows.
    private let limit: Int

    package init(limit: Int) { self.limit = limit }

    package var results: [RecordFault: Tally] { tallies.withLock { $0 } }

    func isOpen(_ fault: RecordFault) -> Bool { tallies.withLock { $0[fault, default: Tally()].planted < limit } }

    /// Looks at the file as it was and as it is with the fault.
    func note(_ fault: RecordFault, _ change: RecordAudit.Change) {
        let isSeen = audit.finds(change)
        tallies.withLock { tallies in
            tallies[fault, default: Tally()].planted += 1
            if isSeen { tallies[fault]?.seen += 1 }
        }
    }
}
