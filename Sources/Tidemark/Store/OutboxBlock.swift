import GRDB
import TidemarkCore
import TidemarkGzip
import TidemarkWire

/// One block of ``OutboxHistory``: rows of the outbox, column by column, compressed together. An integer is written as
/// its distance to the same column's of the row before, since keys, versions and times follow each other.
struct OutboxBlock {
    /// A row of the outbox.
    struct Operation {
        let cells: [Cell]

        var id: Int64 { integer(0) }
        var number: Int64 { integer(1) }
        var version: Version { integer(2) }
        var finishedAt: Int64 { integer(3) }
        var name: RecordName { RecordName(entity: text(4), record: text(5)) }

        /// One without a verdict, as it stands once the server has taken it as it was sent.
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
                isDelete: text(6) == TidemarkWire.Operation.Kind.delete.rawValue, members: bytes(7) ?? [],
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
    private var writer = ByteWriter()
    private var last = [Int64](repeating: 0, count: names.count)

    /// Its size before it is compressed.
    var byteCount: Int { writer.bytes.count }

    /// A row of ``columns``.
    static func operation(_ row: Query) -> Operation { Operation(cells: row.cells(0..<names.count)) }

    mutating func append(_ operation: Operation) {
        for (column, cell) in operation.cells.enumerated() { append(cell, column) }
        let number = operation.number
        numbers = count == 0 ? number...number : min(numbers.lowerBound, number)...max(numbers.upperBound, number)
        version = max(version, operation.version)
        finishedAt = max(finishedAt, operation.finishedAt)
        lastID = operation.id
        count += 1
    }

    private mutating func append(_ cell: Cell, _ column: Int) {
        switch cell {
        case .null: writer.integer(Tag.null)
        case .integer(let value):
            let distance = value &- last[column]
            last[column] = value
            writer.integer(Tag.integer)
            // Small distances downwards are small numbers too.
            writer.integer(distance << 1 ^ distance >> 63)
        case .real(let bits):
            writer.integer(Tag.real)
            writer.integer(Int64(bitPattern: bits))
        case .text(let bytes):
            writer.integer(Tag.text)
            writer.run(bytes)
        case .blob(let bytes):
            writer.integer(Tag.blob)
            writer.run(bytes)
        }
    }

    func compressed() -> [UInt8] { Gzip.compress(writer.bytes) }

    /// Returns the operations of a block; of one that was altered, those before the damage, or none.
    static func operations(_ compressed: [UInt8]) -> [Operation] {
        guard let bytes = try? Gzip.decompress(compressed, limit: limit) else { return [] }
        var reader = ByteReader(bytes)
        var last = [Int64](repeating: 0, count: names.count)
        var operations: [Operation] = []
        while !reader.isAtEnd {
            var cells: [Cell] = []
            for column in names.indices {
                guard let cell = cell(&reader, &last[column]) else { return operations }
                cells.append(cell)
            }
            operations.append(Operation(cells: cells))
        }
        return operations
    }

    private static func cell(_ reader: inout ByteReader, _ last: inout Int64) -> Cell? {
        switch reader.integer() {
        case Tag.null: return .null
        case Tag.integer:
            guard let folded = reader.integer() else { return nil }
            last &+= Int64(bitPattern: UInt64(bitPattern: folded) >> 1) ^ -(folded & 1)
            return .integer(last)
        case Tag.real: return reader.integer().map { .real(bits: UInt64(bitPattern: $0)) }
        case Tag.text: return reader.run().map { .text(Array($0)) }
        case Tag.blob: return reader.run().map { .blob(Array($0)) }
        default: return nil
        }
    }

    private enum Tag {
        static let null: Int64 = 0
        static let integer: Int64 = 1
        static let real: Int64 = 2
        static let text: Int64 = 3
        static let blob: Int64 = 4
    }
}
