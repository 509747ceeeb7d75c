import TidemarkWire

/// The rows and bytes that one user has added to a scope within a day, less those that he took out of it again. A store
/// keeps the tally as a note beside the scope.
package struct GrowthTally: Hashable, Sendable {
    /// For how long growth counts, in milliseconds.
    package static let window: Int64 = 24 * 3_600_000

    /// When the day began, in milliseconds since 1970.
    private var start: Int64
    package private(set) var rows: Int64 = 0
    package private(set) var bytes: Int64 = 0
    /// Whether anything was counted since it was read.
    package private(set) var hasChanged = false

    /// Reads a stored tally. It is empty where the note cannot be read, or the day is over.
    package init(stored note: [UInt8], at moment: Int64) {
        start = moment
        var reader = ByteReader(note)
        guard let start = reader.integer(), let rows = reader.integer(), let bytes = reader.integer(),
            moment.saturatingSubtracting(start).magnitude < Self.window.magnitude
        else { return }
        (self.start, self.rows, self.bytes) = (start, rows, bytes)
    }

    package var stored: [UInt8] {
        var writer = ByteWriter()
        for number in [start, rows, bytes] { writer.integer(number) }
        return writer.bytes
    }

    package mutating func add(rows: Int64, bytes: Int64) {
        guard rows != 0 || bytes != 0 else { return }
        hasChanged = true
        self.rows = max(0, self.rows + rows)
        self.bytes = max(0, self.bytes + bytes)
    }
}
