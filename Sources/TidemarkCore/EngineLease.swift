/// Which of several engines on one file syncs it, in however many processes; the others wait (decision 19).
///
/// The holder's name stands in the file. Whoever waits asks there for a sign of life, and takes over where none comes
/// in time. So nothing is written while nobody waits, and no clock of one process is held against that of another.
package struct EngineLease: Hashable, Sendable {
    /// An engine that waits asks for the next sign so long after the last one, in milliseconds.
    package static let pause: Int64 = 2_000
    /// The holder has at least so long to give a sign that was asked for, in milliseconds.
    package static let patience: Int64 = 5_000
    /// In the time for a sign the holder looks at the file so many times at least, and so does the engine that waits.
    package static let looks: Int64 = 3
    /// The part of the work that an engine lacks while all of its scopes have stopped until the app or the operator
    /// acts: one that can sync takes over from it.
    package static let able = "able"

    /// The entry in the file.
    package struct Entry: Hashable, Sendable, Codable {
        package var holder: String
        /// Raised by the holder when it was asked.
        package var sign: Int64
        /// Whether somebody waits for the next sign.
        package var isAsked: Bool
        /// The tables and scopes that the holder syncs, and what else it can do, sorted.
        package var work: [String]
        /// How often the holder looks at the file, in milliseconds.
        package var poll: Int64

        /// How long it has to give a sign.
        fileprivate var patience: Int64 {
            max(EngineLease.patience, min(max(poll, 0), Int64.max / EngineLease.looks) * EngineLease.looks)
        }
    }

    /// The engine, by a name that no other one has.
    package let name: String
    /// The tables and scopes that it syncs, and what else it can do. It waits only for an engine that does all of it.
    package var work: Set<String>
    /// Whether it is this engine that syncs.
    package private(set) var isDriving = false
    /// This engine's own entry in the file, as it stood when there was nothing to do.
    package var idleText: String?
    /// How often it looks at the file, in milliseconds: so often somebody who waits may count on a sign.
    package var poll: Int64
    private var heard: Heard?

    /// The last sign of another engine.
    private struct Heard: Hashable, Sendable {
        var holder: String
        var sign: Int64
        var isAble: Bool
        /// When it came; since this engine asked for the next one, when it last looked.
        var since: Instant
        /// For how long it has waited since it asked.
        var waited: Int64?

        init(_ entry: Entry, since: Instant, waited: Int64?) {
            (holder, sign, isAble) = (entry.holder, entry.sign, entry.work.contains(EngineLease.able))
            (self.since, self.waited) = (since, waited)
        }
    }

    /// Whether it has not found a holder yet, neither itself nor another engine.
    package var isNew: Bool { !isDriving && heard == nil }
    /// Whether it waits for an engine that can sync, as far as that one has said.
    package var isHolderAble: Bool { heard?.isAble ?? false }

    /// Makes an engine that has not looked at the file.
    package init(name: String, work: Set<String>, poll: Int64) {
        (self.name, self.work, self.poll) = (name, work, poll)
    }

    /// Notes whether a part of its work is done at present.
    package mutating func note(_ part: String, _ isDone: Bool) {
        if isDone { work.insert(part) }
        if !isDone { work.remove(part) }
    }

    /// Looks at the file. Returns what is to be written there, with which the look is made again, in one transaction.
    ///
    /// - Parameters:
    ///   - isGone: whether the holder is known to have ended.
    ///   - now: by a clock of this process that is never set back.
    package mutating func look(at entry: Entry?, isGone: Bool, now: Instant) -> Entry? {
        guard let entry, !isGone || entry.holder == name else { return take(after: entry) }
        if entry.holder == name {
            (isDriving, heard) = (true, nil)
            return entry.isAsked || entry.poll != poll ? take(after: entry) : nil
        }
        let theirs = Set(entry.work)
        guard work.isSubset(of: theirs) else {
            // The holder does less than this engine, and can wait for it.
            if theirs.isSubset(of: work) { return take(after: entry) }
            // Each does what the other does not, and so neither can wait.
            (isDriving, heard) = (true, nil)
            return nil
        }
        isDriving = false
        return wait(for: entry, now: now)
    }

    private mutating func take(after entry: Entry?) -> Entry {
        (isDriving, heard) = (true, nil)
        return Entry(holder: name, sign: (entry?.sign ?? 0) &+ 1, isAsked: false, work: work.sorted(), poll: poll)
    }

    private mutating func wait(for entry: Entry, now: Instant) -> Entry? {
        guard let last = heard, last.holder == entry.holder, last.sign == entry.sign else {
            // The first sign of a holder may be of any age, so that the next one is asked for at once.
            let isNew = heard?.holder != entry.holder
            heard = Heard(entry, since: now, waited: isNew ? 0 : nil)
            return isNew ? asking(entry) : nil
        }
        guard let before = last.waited, entry.isAsked else {
            guard last.waited != nil || now - last.since >= Self.pause else { return nil }
            heard = Heard(entry, since: now, waited: 0)
            return asking(entry)
        }
        // Between two looks this process may have slept, and the holder with it: no look counts for more than its part.
        let waited = before + min(now - last.since, entry.patience / Self.looks)
        heard = Heard(entry, since: now, waited: waited)
        return waited >= entry.patience ? take(after: entry) : nil
    }

    /// `nil` where somebody has asked already.
    private func asking(_ entry: Entry) -> Entry? {
        guard !entry.isAsked else { return nil }
        var entry = entry
        entry.isAsked = true
        return entry
    }
}
