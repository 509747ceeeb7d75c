import GRDB
import TidemarkCore
import TidemarkGzip
import TidemarkWire

/// One block of ``OutboxHistory``: rows of the outbox, column by column, compressed together. An integer is written as
/// its distance to the same column's of the row before, since keys, versions and times follow each other; of a text,
/// and of members, stands what differs from the row before. Record ids that are numbers or UUIDs are written as such,
/// once for each operation: compression would make more of their digits.
struct OutboxBlock {
    /// A row of the outbox.
    struct Operation {
        let cells: [Cell]

        var id: Int64 { integer(0) }
        var number: Int64 { integer(1) }
        var version: Version { integer(2) }
        var finishedAt: Int64 { integer(3) }
        var name: RecordName { RecordName(entity: text(4), record: text(5)) }
        /// The record's id.
        var record: [UInt8] { bytes(5) ?? [] }
        var members: [UInt8] { bytes(7) ?? [] }

        /// The row of an operation without a verdict, as it becomes once the server has taken it as it was sent.
        func taken(at version: Version, now: Int64) -> Operation {
            var cells = cells
            (cells[2], cells[3]) = (.integer(version), .integer(now))
            cells[Self.state] = .text(Outbox.State.applied.rawValue)
            return Operation(cells: cells)
        }

        private static let state = 10

        /// The operation as the outbox knows it.
        func entry(lane: String) -> OutboxEntry {
            OutboxEntry(
                id: id, key: OperationKey(lane: lane, number: number), entity: name.entity, record: name.record,
                isDelete: text(6) == TidemarkWire.Operation.Kind.delete.rawValue, members: members,
                content: bytes(8), resolved: nil, group: bytes(9).map { String(decoding: $0, as: UTF8.self) })
        }

        private func integer(_ column: Int) -> Int64 {
            if case .integer(let value) = cells[column] { value } else { 0 }
        }

        private func text(_ column: Int) -> String { String(decoding: bytes(column) ?? [], as: UTF8.self) }

        private func bytes(_ column: Int) -> [UInt8]? {
            switch cells[column] {
            case .text(let bytes), .blob(let bytes): bytes
            case .null, .integer, .real: nil
            }
        }
    }

    private static let names = [
        "id", "number", "version", "finished_at", "entity", "record", "kind", "members", "content", "in_group",
        "state", "is_insert", "edited_at", "sealed_at", "sent_at",
    ]
    /// The columns of a row, beside its scope and lane, which are the block's.
    static let columns = names.joined(separator: ", ")
    /// Puts a row back: its scope, its lane and ``columns``.
    static let insertion = """
        INSERT INTO tidemark_operation(scope, lane, \(columns))
        VALUES (\((1...names.count + 2).map { "?\($0)" }.joined(separator: ", ")))
        """
    /// A block that unpacks to more bytes counts as damaged.
    private static let limit = 256 << 20

    private(set) var count = 0
    private(set) var numbers: ClosedRange<Int64> = 0...0
    private(set) var version: Version = 0
    private(set) var finishedAt: Int64 = 0
    private(set) var lastID: Int64 = 0
    private var columns = names.map { _ in Column() }
    /// The bytes of the records' ids, where all are UUIDs so far.
    private var uuids: [UInt8] = []

    /// The size of its operations.
    private(set) var byteCount = 0

    /// The bytes of one column while a block is written.
    fileprivate struct Column {
        var writer = ByteWriter()
        var last = Last()
    }

    /// The value of the row before.
    fileprivate struct Last {
        var integer: Int64 = 0
        var bytes: [UInt8] = []
    }

    /// A row of ``columns``.
    static func operation(_ row: Query) -> Operation { Operation(cells: row.cells(0..<names.count)) }

    mutating func append(_ operation: Operation) {
        // Members are JSON and never hold the byte that stands for the id.
        let record = operation.members.contains(Self.place) ? nil : Self.shortened(operation.record)
        for (column, cell) in operation.cells.enumerated() {
            byteCount += cell.byteCount
            switch (column, record) {
            case (Self.record, let record?):
                columns[column].append(key: record)
                if case .uuid(let bytes) = record { uuids += bytes }
            case (Self.members, _?): columns[column].append(Self.replacing(operation.record, in: cell))
            default: columns[column].append(cell)
            }
        }
        let number = operation.number
        numbers = count == 0 ? number...number : min(numbers.lowerBound, number)...max(numbers.upperBound, number)
        version = max(version, operation.version)
        finishedAt = max(finishedAt, operation.finishedAt)
        lastID = operation.id
        count += 1
    }

    func compressed() -> [UInt8] {
        var writer = ByteWriter()
        writer.integer(Tag.columns)
        writer.integer(Int64(count))
        var bytes = writer.bytes
        for (column, written) in columns.enumerated() {
            bytes += column == Self.record ? planes ?? written.writer.bytes : written.writer.bytes
        }
        // A block is written once and stays for a week.
        return Gzip.compress(bytes, level: Gzip.thorough)
    }

    /// UUIDs byte by byte: what they have in common comes together. `nil` where other ids are among them.
    private var planes: [UInt8]? {
        guard uuids.count == count * Self.uuidBytes else { return nil }
        var writer = ByteWriter()
        writer.integer(Tag.planes)
        return (0..<Self.uuidBytes).reduce(into: writer.bytes) { bytes, place in
            for start in stride(from: place, to: uuids.count, by: Self.uuidBytes) { bytes.append(uuids[start]) }
        }
    }

    /// Returns the ids that ``planes`` has written.
    private static func uuids(_ reader: inout ByteReader, _ count: Int) -> [Cell]? {
        guard let planes = reader.bytes(uuidBytes * count) else { return nil }
        var cells: [Cell] = []
        for row in 0..<count {
            let bytes = (0..<uuidBytes).map { planes[planes.startIndex + $0 * count + row] }
            guard let id = PackedID.decode(bytes[...]) else { return nil }
            cells.append(.text(id.text))
        }
        return cells
    }

    /// Returns the operations of a block; of one that was altered none, or those before the damage.
    static func operations(_ compressed: [UInt8]) -> [Operation] {
        guard let bytes = try? Gzip.decompress(compressed, limit: limit) else { return [] }
        var reader = ByteReader(bytes)
        let mark = reader
        guard reader.integer() == Tag.columns else {
            reader = mark
            return operationsByRow(&reader)
        }
        guard let count = reader.integer(), (0...Int64(bytes.count)).contains(count) else { return [] }
        var rows = [[Cell]](repeating: [], count: Int(count))
        var areShort = [Bool](repeating: false, count: rows.count)
        var room = limit
        for column in names.indices {
            var last = Last()
            let mark = reader
            if column == record, reader.integer() == Tag.planes {
                guard let ids = uuids(&reader, rows.count) else { return [] }
                for (row, id) in ids.enumerated() { rows[row].append(id) }
                areShort = areShort.map { _ in true }
                continue
            }
            reader = mark
            for row in rows.indices {
                guard let tag = reader.integer(), let cell = cell(tag, &reader, &last) else { return [] }
                room -= cell.byteCount
                guard room >= 0 else { return [] }
                if column == record { areShort[row] = tag == Tag.number || tag == Tag.uuid }
                let isPlace = column == members && areShort[row]
                rows[row].append(isPlace ? putting(rows[row][record], into: cell) : cell)
            }
        }
        return reader.isAtEnd ? rows.map(Operation.init) : []
    }

    /// Before library version 13 the rows of a block stood one behind the other.
    private static func operationsByRow(_ reader: inout ByteReader) -> [Operation] {
        var last = [Last](repeating: Last(), count: names.count)
        var operations: [Operation] = []
        while !reader.isAtEnd {
            var cells: [Cell] = []
            for column in names.indices {
                guard let tag = reader.integer(), let cell = cell(tag, &reader, &last[column]) else {
                    return operations
                }
                cells.append(cell)
            }
            operations.append(Operation(cells: cells))
        }
        return operations
    }

    private static func cell(_ tag: Int64, _ reader: inout ByteReader, _ last: inout Last) -> Cell? {
        switch tag {
        case Tag.null: return .null
        case Tag.integer: return reader.distance(from: &last.integer).map(Cell.integer)
        case Tag.real: return reader.integer().map { .real(bits: UInt64(bitPattern: $0)) }
        case Tag.text: return reader.run().map { .text(Array($0)) }
        case Tag.blob: return reader.run().map { .blob(Array($0)) }
        case Tag.textAfter: return reader.run(after: &last.bytes).map(Cell.text)
        case Tag.blobAfter: return reader.run(after: &last.bytes).map(Cell.blob)
        case Tag.number: return reader.distance(from: &last.integer).map { .text(String($0)) }
        case Tag.uuid: return reader.run().flatMap { PackedID.decode($0) }.map { .text($0.text) }
        default: return nil
        }
    }

    fileprivate enum Tag {
        static let null: Int64 = 0
        static let integer: Int64 = 1
        static let real: Int64 = 2
        /// Bytes as they are, which library versions up to 13 wrote.
        static let text: Int64 = 3
        static let blob: Int64 = 4
        /// Begins a block that stands column by column.
        static let columns: Int64 = 5
        /// A record's id: a decimal number, and a UUID.
        static let number: Int64 = 6
        static let uuid: Int64 = 7
        /// Begins a column of UUIDs alone.
        static let planes: Int64 = 8
        /// How many bytes are those of the row before, and those behind them.
        static let textAfter: Int64 = 9
        static let blobAfter: Int64 = 10
    }

    // MARK: Record ids

    private static let record = 5
    private static let members = 7
    private static let uuidBytes = 17

    /// An id that takes fewer bytes than its text.
    fileprivate enum ShortID {
        case number(Int64)
        case uuid([UInt8])
    }

    private static func shortened(_ record: [UInt8]) -> ShortID? {
        record.withUnsafeBytes { PackedID.number($0).map(ShortID.number) ?? PackedID.uuid($0).map(ShortID.uuid) }
    }

    /// Stands for the record's id among an operation's members.
    private static let place: UInt8 = 0
    private static let idMember = Array(#""id":""#.utf8)

    private static func replacing(_ record: [UInt8], in members: Cell) -> Cell {
        guard case .blob(let bytes) = members, let place = idPlace(record, in: bytes) else { return members }
        var replaced = Array(bytes[..<place])
        replaced.reserveCapacity(bytes.count - record.count + 1)
        replaced.append(Self.place)
        replaced += bytes[(place + record.count)...]
        return .blob(replaced)
    }

    /// Where the id stands among an operation's members.
    private static func idPlace(_ record: [UInt8], in members: [UInt8]) -> Int? {
        members.withUnsafeBytes { members in
            guard let member = idMember.withUnsafeBytes({ members.firstIndex(of: $0) }) else { return nil }
            let rest = members[(member + idMember.count)...].prefix(record.count)
            let isSame = record.withUnsafeBytes { UnsafeRawBufferPointer(rebasing: rest).hasSameBytes(as: $0) }
            return isSame ? member + idMember.count : nil
        }
    }

    private static func putting(_ record: Cell, into members: Cell) -> Cell {
        guard case .blob(var bytes) = members, case .text(let record) = record, let at = bytes.firstIndex(of: place)
        else { return members }
        bytes.replaceSubrange(at...at, with: record)
        return .blob(bytes)
    }
}

extension OutboxBlock.Column {
    mutating func append(_ cell: Cell) {
        switch cell {
        case .null: writer.integer(OutboxBlock.Tag.null)
        case .integer(let value): append(value, as: OutboxBlock.Tag.integer)
        case .real(let bits):
            writer.integer(OutboxBlock.Tag.real)
            writer.integer(Int64(bitPattern: bits))
        case .text(let bytes): append(bytes, as: OutboxBlock.Tag.textAfter)
        case .blob(let bytes): append(bytes, as: OutboxBlock.Tag.blobAfter)
        }
    }

    private mutating func append(_ bytes: [UInt8], as tag: Int64) {
        let most = min(bytes.count, last.bytes.count)
        var shared = 0
        while shared < most, bytes[shared] == last.bytes[shared] { shared += 1 }
        last.bytes = bytes
        writer.integer(tag)
        writer.integer(Int64(shared))
        writer.run(bytes[shared...])
    }

    fileprivate mutating func append(key: OutboxBlock.ShortID) {
        switch key {
        case .number(let value): append(value, as: OutboxBlock.Tag.number)
        case .uuid(let bytes):
            writer.integer(OutboxBlock.Tag.uuid)
            writer.run(bytes)
        }
    }

    private mutating func append(_ value: Int64, as tag: Int64) {
        writer.integer(tag)
        let distance = value &- last.integer
        last.integer = value
        // Small distances downwards are small numbers too.
        writer.integer(distance << 1 ^ distance >> 63)
    }
}

extension ByteReader {
    fileprivate mutating func distance(from last: inout Int64) -> Int64? {
        guard let folded = integer() else { return nil }
        last &+= Int64(bitPattern: UInt64(bitPattern: folded) >> 1) ^ -(folded & 1)
        return last
    }

    fileprivate mutating func run(after last: inout [UInt8]) -> [UInt8]? {
        guard let shared = integer(), (0...Int64(last.count)).contains(shared), let rest = run() else { return nil }
        last = Array(last[..<Int(shared)] + rest)
        return last
    }
}
