import TidemarkCore
import TidemarkWire

/// The rows of pages that this node has made lately: whoever else pulls from the same place gets the same bytes, so
/// that a nudge to a thousand devices of a scope reads its rows once. A page is found by all that shapes its bytes, and
/// by the state that its reader has just seen the scope in: it is never given out after a commit.
final class KeptPages: Sendable {
    /// All that shapes the rows of a page, apart from what is the same for all pages of a server.
    struct Key: Hashable {
        var scope: Scope
        var moment: Moment
        /// With the position behind which the page begins, and what the reader's state is whole up to.
        var scan: Checkpoint
        var limit: Int
        var takes: Differences
        var withheld: WithheldEntities
    }

    /// A few bytes that tell two states of a scope's log apart.
    struct Moment: Hashable {
        private let head, sweepFloor, retentionFloor: Version
        private let opening: Int64?
        /// A store that went back in time comes to the same head again, but later.
        private let lastTime: Int64
        private let size: ScopeSize

        init(_ state: ScopeState) {
            (head, sweepFloor, retentionFloor) = (state.head, state.sweepFloor, state.retentionFloor)
            (opening, lastTime, size) = (state.incarnations.last?.id, state.lastTime, state.size)
        }
    }

    struct Page: Hashable {
        /// The rows, with commas between them.
        var rows: [UInt8]
        /// The version that the page ends with; `nil`: the scan ends with it.
        var end: Version?
    }

    /// The place of a page. The first reader makes it under the lock; the others wait about as long as they would have
    /// read.
    private final class Slot: Sendable {
        let page = Guarded<Page?>(nil)
    }

    private struct Entry {
        var slot = Slot()
        var cost = KeptPages.entryCost
    }

    /// Entries that were asked for lately; behind half of the limit they become the older ones, which go with the next
    /// turn unless somebody asks for them.
    private struct Entries {
        var young: [Key: Entry] = [:]
        var old: [Key: Entry] = [:]
        var youngBytes = 0
        var oldBytes = 0
        var made = 0
    }

    /// The bytes that an entry is reckoned to take beside its rows.
    static let entryCost = 1024

    private let limit: Int
    private let patience: Double
    private let entries = Guarded(Entries())

    /// - Parameters:
    ///   - limit: bytes that are kept at most; a single page may be beside them while it is made.
    ///   - patience: for how many seconds others wait for the one who makes a page: his connection may hang.
    init(limit: Int, patience: Double = 2) { (self.limit, self.patience) = (limit, patience) }

    /// Pages that were made so far.
    var made: Int { entries.withLock { $0.made } }

    /// Bytes that are kept.
    var bytes: Int { entries.withLock { $0.youngBytes + $0.oldBytes } }

    /// The page of that name, made by the first who asks. Where making fails, the next one makes it. Where it hangs,
    /// whoever has waited for long enough puts a new slot in its place, so that those who come later do not wait as
    /// well; where that one hangs too, each reads for himself.
    func page(_ key: Key, made make: () throws -> Page) rethrows -> Page {
        for _ in 0..<2 {
            let slot = entries.withLock { claim(key, &$0) }
            var isNew = false
            let page = try slot.page.withLock(within: patience) { page in
                if let page { return page }
                let made = try make()
                (page, isNew) = (made, true)
                return made
            }
            guard let page else {
                entries.withLock { _ = remove(slot, of: key, &$0) }
                continue
            }
            if isNew { entries.withLock { count(page, in: slot, of: key, &$0) } }
            return page
        }
        entries.withLock { $0.made += 1 }
        return try make()
    }

    /// Lets go of a scope's pages.
    func forget(_ scope: Scope) {
        entries.withLock { entries in
            entries.young = entries.young.filter { $0.key.scope != scope }
            entries.old = entries.old.filter { $0.key.scope != scope }
            entries.youngBytes = entries.young.values.reduce(0) { $0 + $1.cost }
            entries.oldBytes = entries.old.values.reduce(0) { $0 + $1.cost }
        }
    }

    private func claim(_ key: Key, _ entries: inout Entries) -> Slot {
        if let entry = entries.young[key] { return entry.slot }
        let entry = entries.old.removeValue(forKey: key)
        if let entry { entries.oldBytes -= entry.cost }
        let next = entry ?? Entry()
        add(next, key, &entries)
        return next.slot
    }

    /// Adds an entry, unless it is larger than half of the limit.
    private func add(_ entry: Entry, _ key: Key, _ entries: inout Entries) {
        guard entry.cost <= limit / 2 else { return }
        if entries.youngBytes + entry.cost > limit / 2 {
            (entries.old, entries.oldBytes) = (entries.young, entries.youngBytes)
            (entries.young, entries.youngBytes) = ([:], 0)
        }
        entries.young[key] = entry
        entries.youngBytes += entry.cost
    }

    private func count(_ page: Page, in slot: Slot, of key: Key, _ entries: inout Entries) {
        entries.made += 1
        guard remove(slot, of: key, &entries) else { return }
        add(Entry(slot: slot, cost: Self.entryCost + page.rows.count), key, &entries)
    }

    /// Answers whether the slot was still the one of the key.
    private func remove(_ slot: Slot, of key: Key, _ entries: inout Entries) -> Bool {
        if let entry = entries.young[key], entry.slot === slot {
            entries.young[key] = nil
            entries.youngBytes -= entry.cost
        } else if let entry = entries.old[key], entry.slot === slot {
            entries.old[key] = nil
            entries.oldBytes -= entry.cost
        } else {
            return false
        }
        return true
    }
}
