import TidemarkCore
import TidemarkWire

/// The sums over the rows of one table, in the parts of a key range: the device's side of a digest.
struct LocalDigest: Sendable {
    /// A record by itself, where a part is looked at row by row.
    struct Record: Hashable, Sendable {
        var id: RecordID
        var number: UInt64
        var sum: UInt64
    }

    /// The last id of each part; `nil` only for the last part, which then has no end.
    let bounds: [[UInt8]?]
    private(set) var parts: [EntityDigest]
    /// The records of those parts that are listed, in no order.
    private(set) var listed: [[Record]]
    /// More records than `listLimit` were in the parts that are listed.
    private(set) var isCutShort = false

    private let after: [UInt8]?
    private let columns: [Int]
    private let lists: [Bool]
    private let listLimit: Int
    private let entity: SipHash
    private var listCount = 0

    /// - Parameters:
    ///   - columns: the data columns that are summed, in their order.
    ///   - after: records at or below this id are passed over.
    ///   - bounds: the last id of each part, ascending.
    ///   - lists: the parts whose records are listed.
    init(
        _ shape: TableSchema, columns: [Int], after: String? = nil, bounds: [String?] = [nil], lists: [Bool] = [false],
        listLimit: Int = 0
    ) {
        self.columns = columns
        self.after = after.map { Array($0.utf8) }
        self.bounds = bounds.map { $0.map { Array($0.utf8) } }
        self.lists = lists
        self.listLimit = listLimit
        entity = CellHash.prefix(entity: shape.name)
        let empty = EntityDigest(
            fields: columns.map { EntityDigest.Field(shape.data[$0].canonicalName) }, count: 0, records: 0)
        parts = Array(repeating: empty, count: bounds.count)
        listed = Array(repeating: [], count: bounds.count)
    }

    mutating func add(_ id: RecordID, _ cells: [Cell]) {
        var text = id.text
        text.withUTF8 { add(id, UnsafeRawBufferPointer($0), cells) }
    }

    private mutating func add(_ id: RecordID, _ bytes: UnsafeRawBufferPointer, _ cells: [Cell]) {
        if let after, !after.lexicographicallyPrecedes(bytes) { return }
        guard let part = part(of: bytes), part < parts.count else { return }
        let number = CellHash.record(entity, id: bytes)
        var writer = JSONWriter(capacity: 256)
        var values: [Range<Int>] = []
        values.reserveCapacity(columns.count)
        for column in columns where column < cells.count {
            let start = writer.bytes.count
            writer.cell(cells[column])
            values.append(start..<writer.bytes.count)
        }
        guard part < lists.count, lists[part] else {
            writer.bytes.withUnsafeBytes { parts[part].add(number, $0, values: values) }
            return
        }
        let before = parts[part].total
        writer.bytes.withUnsafeBytes { parts[part].add(number, $0, values: values) }
        listCount += 1
        isCutShort = isCutShort || listCount > listLimit
        guard !isCutShort else { return }
        listed[part].append(Record(id: id, number: number, sum: parts[part].total &- before))
    }

    /// The first part whose end is not before the id.
    private func part(of id: UnsafeRawBufferPointer) -> Int? {
        var (low, high) = (0, bounds.count)
        while low < high {
            let middle = (low + high) / 2
            if let bound = bounds[middle], bound.lexicographicallyPrecedes(id) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low < bounds.count ? low : nil
    }
}

extension EntityDigest {
    /// All fields together.
    var total: UInt64 { fields.reduce(0) { $0 &+ $1.sum } }
}
