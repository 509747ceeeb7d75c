package import TidemarkWire

/// A page of a snapshot that whoever knows its address may read for a while (W91): all that shapes its bytes, and when
/// that while ends.
package struct SharedPage: Hashable, Sendable {
    package var scope: Scope
    package var handle: SnapshotHandle
    /// The record behind which the page begins; `nil` for the first page.
    package var cursor: Cursor?
    /// Rows on it, at most.
    package var limit: Int
    /// When its address stops to work, in milliseconds since 1970.
    package var expires: Int64

    package init(scope: Scope, handle: SnapshotHandle, cursor: Cursor?, limit: Int, expires: Int64) {
        self.scope = scope
        self.handle = handle
        self.cursor = cursor
        self.limit = limit
        self.expires = expires
    }

    /// The end of the page's address: the same for the same page, and impossible to make without the key.
    package func token(key: [UInt8]) -> String {
        var writer = ByteWriter()
        writer.integer(expires)
        writer.integer(Int64(limit))
        writer.run(scope.name.utf8)
        handle.write(to: &writer)
        cursor?.write(to: &writer)
        return SealedToken.seal(writer.bytes, .page, scope: nil, key: key)
    }

    package init?(token: String, key: [UInt8]) {
        guard var reader = SealedToken.open(token, .page, scope: nil, key: key), let expires = reader.integer(),
            let number = reader.integer(), let limit = Int(exactly: number), limit > 0, let name = reader.run(),
            let scope = Scope(String(decoding: name, as: UTF8.self)), let handle = SnapshotHandle(from: &reader)
        else { return nil }
        var cursor: Cursor?
        if !reader.isAtEnd {
            cursor = Cursor(from: &reader)
            guard cursor != nil, reader.isAtEnd else { return nil }
        }
        self.init(scope: scope, handle: handle, cursor: cursor, limit: limit, expires: expires)
    }
}

/// Which snapshot those share who begin to fill a scope at about the same time, and how long addresses hold. Else no
/// two of them would name the same page, and no cache would help.
package struct SharedHandles: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        var handle: SnapshotHandle
        /// When another one takes its place, in milliseconds since 1970.
        var until: Int64
    }

    /// Scopes whose snapshots are remembered. Where there are more all are forgotten, which costs pages in caches.
    package static let scopeLimit = 1000
    /// The shortest and the longest delay, in milliseconds.
    package static let delays: ClosedRange<Int64> = 1000...3_600_000

    /// How long an address holds at most.
    private let delay: Int64
    /// Addresses end at multiples of it, so that those of one page come out equal.
    private let slot: Int64
    /// How old a snapshot may get for those who begin with it: they have to come to its end within the window.
    private let age: Int64
    private let limit: Int
    private var entries: [Scope: Entry] = [:]

    /// - Parameters:
    ///   - delay: for how long somebody who has lost access may go on reading, at most, in milliseconds.
    ///   - window: for how long a snapshot's rows are kept, in milliseconds.
    package init(delay: Int64, window: Int64, scopeLimit: Int = SharedHandles.scopeLimit) {
        self.delay = min(max(delay, Self.delays.lowerBound), Self.delays.upperBound)
        slot = self.delay / 2
        age = min(slot, window / 4)
        limit = max(1, scopeLimit)
    }

    package var count: Int { entries.count }

    /// When an address ends that is given out now: after half of the delay at the earliest.
    package func expiry(at now: Int64) -> Int64 { (now + delay) / slot * slot }

    /// Milliseconds that an address still holds; `nil` for one that does not, also where the clock has gone back since
    /// or the delay was longer then.
    package func rest(until expires: Int64, at now: Int64) -> Int64? {
        let (rest, isTooMuch) = expires.subtractingReportingOverflow(now)
        return !isTooMuch && 1...delay ~= rest ? rest : nil
    }

    /// The snapshot that a device begins with now.
    ///
    /// - Parameter present: the scope as it is now, which it gets where no other one can be shared.
    package mutating func handle(
        _ present: SnapshotHandle, of scope: Scope, in history: ScopeHistory, at now: Int64
    ) -> SnapshotHandle {
        if let entry = entries[scope], isGood(entry, at: now), entry.handle.isShared(in: history, at: present) {
            return entry.handle
        }
        if entries[scope] == nil, entries.count >= limit {
            entries = entries.filter { isGood($0.value, at: now) }
            if entries.count >= limit { entries = [:] }
        }
        entries[scope] = Entry(handle: present, until: now + age)
        return present
    }

    /// Whether an entry is not too old; it is too old as well where the clock has gone back since.
    private func isGood(_ entry: Entry, at now: Int64) -> Bool {
        let rest = entry.until - now
        return 0 < rest && rest <= age
    }
}

extension SnapshotHandle {
    /// Whether the scope's rows are still kept as this snapshot shows them.
    package func isExact(in history: ScopeHistory) -> Bool { horizon >= history.sweepFloor }

    /// Whether this handle can take the place of the present one: of the same history, in the same order, all rows
    /// kept.
    fileprivate func isShared(in history: ScopeHistory, at present: SnapshotHandle) -> Bool {
        guard scan == present.scan, epoch == present.epoch, isExact(in: history) else { return false }
        do throws(Problem) { try check(in: history) } catch { return false }
        return true
    }
}
