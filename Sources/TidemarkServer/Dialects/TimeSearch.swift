import TidemarkCore
import TidemarkWire

/// Where in a scope's log a time lies up to which a caller has been told.
struct TimeBoundary: Hashable {
    /// Rows above it are later than the time.
    var position: Version
    /// Tombstones up to there are of no use to the caller.
    var tombstonesAfter: Version
    /// When a caller began that had nothing; `nil` for one that had something.
    var began: Int64?
    /// The time that was asked for, as far as it is believed.
    var time: Int64
}

extension ScopeReader {
    /// Finds the place of a time. The log is in the order of versions, and times grow strictly with them, so the place
    /// is found in as many looks as the newest version has binary digits.
    ///
    /// A caller whose time lies ahead of this server's is told everything. A time of before deletions that are not kept
    /// any more is refused; where there are such, one that lies ahead is refused too.
    ///
    /// - Parameters:
    ///   - time: 0 or less: the caller has nothing, and begins.
    ///   - began: when it began, while it has not come to the end: deletions since then are what it needs.
    ///   - now: the server's clock.
    func boundary(of time: Int64, began: Int64? = nil, now: Int64) throws -> TimeBoundary {
        let isBeginning = time <= 0
        let time = believed(time, now: now)
        guard let began = began ?? (isBeginning ? state.lastTime : nil) else {
            let version = try version(at: time)
            try check(version)
            return TimeBoundary(position: version, tombstonesAfter: 0, time: time)
        }
        let start = try version(at: began)
        if !isBeginning { try check(start) }
        return TimeBoundary(
            position: try version(at: time), tombstonesAfter: isBeginning ? state.head : start, began: began, time: time
        )
    }

    /// A caller's last sync, by the time that this server gave it. A time that lies ahead says nothing of what the
    /// caller has seen, as after a server was put back: 0.
    func believed(_ time: Int64, now: Int64) -> Int64 { time > max(now, state.lastTime) ? 0 : max(0, time) }

    private func check(_ version: Version) throws {
        guard version < state.retentionFloor else { return }
        throw state.history.expired(
            .retention, "Deletions of before that time are no longer kept; take everything anew.",
            survived: state.retentionFloor)
    }

    /// A version behind which all rows are later than a moment, and up to which none is.
    func version(at moment: Int64) throws -> Version {
        guard moment < state.lastTime else { return state.head }
        var (low, high) = (Version(0), state.head)
        while low < high {
            let middle = low + (high - low) / 2
            // Looks at the first row behind the middle, whether it was superseded or not.
            let seen = try aged(after: middle, through: high, before: moment + 1, events: true, limit: 1).through
            if seen > middle { low = seen } else { high = middle }
        }
        return low
    }
}
