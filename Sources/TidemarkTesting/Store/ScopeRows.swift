import TidemarkServer

/// One row of a scope's log.
struct MemoryRow: Sendable {
    let version: Version
    let key: RecordKey
    let kind: RowKind
    let time: Int64
    let payload: [UInt8]?
    let fieldVersions: [UInt8]?
    let originals: [UInt8]?
    /// Its place among the rows of all scopes in the order in which they were written.
    let place: Int
    var supersededBy: Version?
    /// When that was, as the writer said, in milliseconds since 1970.
    var supersededAt: Int64?

    func isLive(at horizon: Version) -> Bool { supersededBy.map { $0 > horizon } ?? true }

    /// Whether the row goes when the retention floor rises.
    func isAged(after floor: Version, through version: Version, events: Bool) -> Bool {
        self.version > floor && self.version <= version && kind.expires(withEvents: events)
    }

    var size: ScopeSize { ScopeSize(of: kind, payload: payload, note: fieldVersions) }
}

/// A record's full name, ordered by bytes as a database orders it: `String` would call two ids equal that are not.
struct RecordKey: Comparable, Sendable {
    let entity: [UInt8]
    let record: [UInt8]

    init(_ entity: String, _ record: RecordID) { (self.entity, self.record) = (Array(entity.utf8), record.bytes) }

    static func < (lhs: RecordKey, rhs: RecordKey) -> Bool {
        if lhs.entity == rhs.entity { return lhs.record.lexicographicallyPrecedes(rhs.record) }
        return lhs.entity.lexicographicallyPrecedes(rhs.entity)
    }
}

extension RecordID {
    var bytes: [UInt8] { Array(text.utf8) }
}

/// The rows of a scope by version, and their versions by record. Arrays that are kept in order, so that the order of
/// what is read never depends on a hash.
struct ScopeRows: Sendable {
    private(set) var all: [MemoryRow] = []
    private(set) var records: [(key: RecordKey, versions: [Version])] = []

    /// Where the rows above a version begin.
    func start(after version: Version) -> Int { all.partitionPoint { $0.version <= version } }

    subscript(version: Version) -> MemoryRow { all[start(after: version - 1)] }

    /// The versions of a record's rows, in their order.
    func versions(of key: RecordKey) -> [Version] {
        let place = records.partitionPoint { $0.key < key }
        return place < records.count && records[place].key == key ? records[place].versions : []
    }

    /// A record's newest row that nothing has taken the place of.
    func newest(_ key: RecordKey) -> MemoryRow? {
        versions(of: key).reversed().lazy.map { self[$0] }.first { $0.supersededBy == nil }
    }

    mutating func append(_ row: MemoryRow) {
        let place = records.partitionPoint { $0.key < row.key }
        if place < records.count, records[place].key == row.key {
            records[place].versions.append(row.version)
        } else {
            records.insert((row.key, [row.version]), at: place)
        }
        all.append(row)
    }

    /// Marks a row superseded, or, with `nil`, live again.
    mutating func mark(_ version: Version, supersededBy successor: Version?, at moment: Int64?) {
        let index = start(after: version - 1)
        (all[index].supersededBy, all[index].supersededAt) = (successor, moment)
    }

    mutating func removeLast() { forget(all.removeLast()) }

    mutating func removeAll(where isGone: (MemoryRow) -> Bool) {
        guard all.contains(where: isGone) else { return }
        for row in all where isGone(row) { forget(row) }
        all.removeAll(where: isGone)
    }

    private mutating func forget(_ row: MemoryRow) {
        let place = records.partitionPoint { $0.key < row.key }
        records[place].versions.removeAll { $0 == row.version }
        if records[place].versions.isEmpty { records.remove(at: place) }
    }
}

extension Array {
    /// Where the elements end that come before a place, in an array that is in order.
    func partitionPoint(_ comesBefore: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = low + (high - low) / 2
            if comesBefore(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
