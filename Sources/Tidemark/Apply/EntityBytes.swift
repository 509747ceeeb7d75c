import TidemarkWire

/// Counts the changes of answers and their bytes by entity. Changes of one entity mostly come in a row, and are counted
/// without looking it up.
struct EntityBytes: Hashable, Sendable {
    private var sums: [String: SyncMeasures.Traffic] = [:]
    private var current = ""
    private var run = SyncMeasures.Traffic()

    /// - Parameter bytes: those of the change, without the comma behind it.
    mutating func add(_ change: IncomingChange, in reader: JSONReader, bytes: Int) {
        if change.entity.hasEscapes || !reader.bytes[change.entity.range].elementsEqual(current.utf8) {
            flush()
            current = reader.string(change.entity)
        }
        run.received += 1
        run.bytesReceived += bytes
    }

    init() {}

    private mutating func flush() {
        guard run.received > 0 else { return }
        sums[current, default: SyncMeasures.Traffic()] += run
        run = SyncMeasures.Traffic()
    }

    /// The counts, by the entities' names as the answers spell them.
    var traffic: [String: SyncMeasures.Traffic] {
        var all = self
        all.flush()
        return all.sums
    }
}
