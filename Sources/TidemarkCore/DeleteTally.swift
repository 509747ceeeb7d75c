import TidemarkWire

/// How much was deleted lately: counts over a window that slides in steps, so that a few numbers are enough however
/// many records they stand for.
package struct DeleteTally: Hashable, Sendable {
    private struct Part: Hashable, Sendable {
        /// When it begins, in milliseconds since 1970.
        var start: Int64
        var count: Int64
    }

    /// Steps of a window. What was deleted counts for up to one of them longer than the window.
    private static let steps: Int64 = 60
    /// Parts that are kept, at most: those of two windows, where the operator has just changed it.
    private static let limit = 128

    private var parts: [Part] = []
    /// Whether anything was counted since it was read.
    package private(set) var hasChanged = false

    /// Decodes a stored tally, up to the first number that cannot be read.
    package init(stored bytes: [UInt8]) {
        var reader = ByteReader(bytes)
        while let start = reader.integer(), let count = reader.integer() {
            parts.append(Part(start: start, count: count))
        }
    }

    package var stored: [UInt8] {
        var writer = ByteWriter()
        for part in parts {
            writer.integer(part.start)
            writer.integer(part.count)
        }
        return writer.bytes
    }

    /// The deletes that count at a moment. A clock that was put back by less than the window makes none be forgotten.
    package func count(at moment: Int64, within window: Int64) -> Int64 {
        parts.reduce(0) { $0 + (Self.isOpen($1, at: moment, within: window) ? $1.count : 0) }
    }

    package mutating func add(at moment: Int64, within window: Int64) {
        hasChanged = true
        parts.removeAll { !Self.isOpen($0, at: moment, within: window) }
        let start = moment - moment % Self.step(of: window)
        if let place = parts.firstIndex(where: { $0.start == start }) {
            parts[place].count += 1
        } else {
            parts.append(Part(start: start, count: 1))
            // The oldest go into the next one rather than be forgotten.
            if parts.count > Self.limit {
                let first = parts.removeFirst()
                parts[0].count += first.count
            }
        }
    }

    private static func step(of window: Int64) -> Int64 { max(1, window / steps) }

    private static func isOpen(_ part: Part, at moment: Int64, within window: Int64) -> Bool {
        let (age, overflow) = moment.subtractingReportingOverflow(part.start)
        let (oldest, newest) = (window.saturatingAdding(step(of: window)), Int64.zero.saturatingSubtracting(window))
        return !overflow && age < oldest && age > newest
    }
}
