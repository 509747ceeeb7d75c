/// A token bucket: it limits how often one caller may ask, and lets him ask more often for a while after a rest. Time
/// is an argument.
package struct TokenBucket: Hashable, Sendable {
    /// How fast it fills, and how much it holds.
    package struct Rate: Hashable, Sendable {
        /// Tokens that come back within `period`.
        let count: Int64
        /// In milliseconds.
        let period: Int64
        /// Tokens that may be taken at once, after a time of rest.
        let burst: Int64

        /// The largest of each number: their products fit.
        private static let largest: Int64 = 1_000_000_000

        /// Each number is at least 1 here, and at most a billion.
        package init(count: Int, milliseconds: Int64, burst: Int) {
            func bounded(_ number: Int64) -> Int64 { min(max(number, 1), Self.largest) }
            (self.count, period, self.burst) = (bounded(Int64(count)), bounded(milliseconds), bounded(Int64(burst)))
        }

        /// The credit of a full bucket. A token costs `period` of credit, and each millisecond brings `count`.
        fileprivate var fullCredit: Int64 { burst * period }
    }

    private var credit: Int64
    private var moment: Instant

    package init(full rate: Rate, at now: Instant) {
        credit = rate.fullCredit
        moment = now
    }

    /// Milliseconds until one may be taken; 0 where one may be now.
    package func wait(_ rate: Rate, at now: Instant) -> Int64 {
        let missing = rate.period - credit(rate, at: now)
        return missing > 0 ? (missing + rate.count - 1) / rate.count : 0
    }

    /// Takes one where there is one, and else says how many milliseconds that will take.
    package mutating func take(_ rate: Rate, at now: Instant) -> Int64? {
        let wait = wait(rate, at: now)
        guard wait == 0 else { return wait }
        credit = credit(rate, at: now) - rate.period
        moment = max(moment, now)
        return nil
    }

    /// Whether the bucket is as good as a new one.
    package func isFull(_ rate: Rate, at now: Instant) -> Bool { credit(rate, at: now) == rate.fullCredit }

    private func credit(_ rate: Rate, at now: Instant) -> Int64 {
        // A clock that goes back takes nothing away, and gives nothing.
        let passed = max(0, now - moment)
        let (gained, isTooMuch) = passed.multipliedReportingOverflow(by: rate.count)
        guard !isTooMuch, gained < rate.fullCredit - credit else { return rate.fullCredit }
        return credit + gained
    }
}

/// A bucket for each caller, of a bounded number of callers: one who has rested long is like one who was never here,
/// and where there are too many others, those go that took nothing for longest.
package struct TokenBuckets: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        var bucket: TokenBucket
        /// Counted in takings.
        var used: Int
    }

    /// Callers that are remembered, at most.
    package static let callerLimit = 10_000

    private let rate: TokenBucket.Rate
    private let limit: Int
    private var entries: [String: Entry] = [:]
    private var turns = 0

    package init(_ rate: TokenBucket.Rate, callerLimit: Int = TokenBuckets.callerLimit) {
        self.rate = rate
        limit = max(1, callerLimit)
    }

    package var count: Int { entries.count }

    /// Milliseconds until the caller may take one; 0 where he may now.
    package func wait(for caller: String, at now: Instant) -> Int64 {
        entries[caller]?.bucket.wait(rate, at: now) ?? 0
    }

    /// Takes one for a caller where he has one left, and else says how many milliseconds that will take.
    package mutating func take(for caller: String, at now: Instant) -> Int64? {
        if entries[caller] == nil, entries.count >= limit { makeRoom(at: now) }
        turns += 1
        var entry = entries[caller] ?? Entry(bucket: TokenBucket(full: rate, at: now), used: turns)
        entry.used = turns
        defer { entries[caller] = entry }
        return entry.bucket.take(rate, at: now)
    }

    /// Half of them at once, so that it is worth its time.
    private mutating func makeRoom(at now: Instant) {
        entries = entries.filter { !$0.value.bucket.isFull(rate, at: now) }
        guard entries.count > limit / 2 else { return }
        let last = entries.values.map(\.used).sorted()[entries.count - limit / 2 - 1]
        entries = entries.filter { $0.value.used > last }
    }
}
