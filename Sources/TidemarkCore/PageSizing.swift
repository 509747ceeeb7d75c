/// Finds a page size that the network carries in about a second: up by steps, down by half (A11). A batch of operations
/// is found in the same way.
package struct PageSizing: Hashable, Sendable {
    package struct Settings: Hashable, Sendable {
        package var range = 50...5000
        package var start = 500
        /// A page that takes longer than this is too large.
        package var targetMilliseconds: Int64 = 1_000
        /// A page beyond this many bytes is too large for a device's memory, however fast it came.
        package var targetBytes = 2 << 20

        package init() {}
    }

    package private(set) var limit: Int
    private var settings: Settings
    /// The largest page that the server may give, as far as its refusals tell.
    private var largest = Int.max

    package init(_ settings: Settings = Settings()) {
        self.settings = settings
        limit = min(max(settings.start, settings.range.lowerBound), settings.range.upperBound)
    }

    /// Goes over to other settings: the size stays where it was, as far as their range lets it.
    package mutating func use(_ settings: Settings) {
        self.settings = settings
        limit = min(max(limit, lowest), highest)
    }

    private var highest: Int { min(settings.range.upperBound, largest) }
    private var lowest: Int { min(settings.range.lowerBound, highest) }

    /// Takes in how the last page went. A page that was not full says nothing about a larger one.
    package mutating func received(rows: Int, bytes: Int, milliseconds: Int64) {
        if milliseconds > settings.targetMilliseconds || bytes > settings.targetBytes {
            limit = max(lowest, limit / 2)
        } else if rows >= limit, milliseconds < settings.targetMilliseconds / 2, bytes < settings.targetBytes / 2 {
            limit = min(highest, limit + max(lowest, limit / 2))
        }
    }

    /// The server gives no page of this size: half of it is the largest from now on. `false` where none is smaller.
    package mutating func refused(at rows: Int = .max) -> Bool {
        guard min(limit, rows) > 1 else { return false }
        limit = min(limit, rows) / 2
        largest = limit
        return true
    }

    /// A page that never arrived may have been too large.
    package mutating func failed(at rows: Int = .max) { limit = max(lowest, min(limit, rows) / 2) }
}
