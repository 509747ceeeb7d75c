/// Which of several engines on one file syncs it, in however many processes; the others wait (decision 19).
///
/// The holder's name stands in the file. Whoever waits asks there for a sign of life, and takes over where none comes
/// in time. So nothing is written while nobody waits, and no clock of one process is held against that of another.
package struct EngineLease: Hashable, Sendable {
    /// So long whoever waits is content with a sign, in milliseconds.
    package static let pause: Int64 = 2_000
    /// So long the holder has to give a sign that was asked for, in milliseconds.
    package static let patience: Int64 = 5_000
    /// An engine that rarely looks at the file waits for so many of its looks at least: the holder may be like it.
    package static let looks: Int64 = 3

    /// What stands in the file.
    package struct Entry: Hashable, Sendable, Codable {
        package var holder: String
        /// Raised by the holder when it was asked.
        package var sign: Int64
        /// Whether somebody waits for the next sign.
        package var isAsked: Bool
        /// What the holder syncs, sorted.
        package var work: [String]

        package init(holder: String, sign: Int64, isAsked: Bool, work: [String]) {
            (self.holder, self.sign, self.isAsked, self.work) = (holder, sign, isAsked, work)
        }
    }

    /// The engine, by a name that no other one has.
    package let name: String
    /// What it syncs. An engine waits only for one that syncs all of this.
    package var work: Set<String>
    /// Whether it is this engine that syncs.
    package private(set) var isDriving = false
    private let patience: Int64
    private var heard: Heard?

    /// The last sign of another engine.
    private struct Heard: Hashable, Sendable {
        var holder: String
        var sign: Int64
        var since: Instant
        /// When this engine asked for the next one.
        var asked: Instant?
    }

    /// - Parameter poll: how often it looks at the file, in milliseconds.
    package init(name: String, work: Set<String>, poll: Int64) {
        (self.name, self.work) = (name, work)
        patience = max(Self.patience, min(max(poll, 0), Int64.max / Self.looks) * Self.looks)
    }

    /// Looks at the file. Returns what is to be written there, with which the look is made again, in one transaction.
    ///
    /// - Parameters:
    ///   - isGone: whether the holder is known to have ended.
    ///   - now: by a clock of this process that is never set back.
    package mutating func look(at entry: Entry?, isGone: Bool, now: Instant) -> Entry? {
        guard let entry, !isGone || entry.holder == name else { return take(after: entry) }
        let theirs = Set(entry.work)
        if entry.holder == name {
            (isDriving, heard) = (true, nil)
            guard entry.isAsked else { return nil }
            return Entry(holder: name, sign: entry.sign &+ 1, isAsked: false, work: work.sorted())
        }
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
        return Entry(holder: name, sign: (entry?.sign ?? 0) &+ 1, isAsked: false, work: work.sorted())
    }

    private mutating func wait(for entry: Entry, now: Instant) -> Entry? {
        guard let last = heard, last.holder == entry.holder, last.sign == entry.sign else {
            // How old the sign of a holder is that was never heard before, nobody knows.
            let isNew = heard?.holder != entry.holder
            heard = Heard(holder: entry.holder, sign: entry.sign, since: now, asked: isNew ? now : nil)
            return isNew ? asking(entry) : nil
        }
        guard let asked = last.asked, entry.isAsked else {
            guard last.asked != nil || now - last.since >= Self.pause else { return nil }
            heard?.asked = now
            return asking(entry)
        }
        return now - asked >= patience ? take(after: entry) : nil
    }

    /// `nil` where somebody has asked already.
    private func asking(_ entry: Entry) -> Entry? {
        guard !entry.isAsked else { return nil }
        var entry = entry
        entry.isAsked = true
        return entry
    }
}
