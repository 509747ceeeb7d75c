import TidemarkCore
import TidemarkWire

/// Hashes one table's rows for the manifest: a sum over the columns, in which NULL counts nothing, so that a column can
/// be taken in or left out, and a new column without values changes nothing.
///
/// It is of the values as SQLite holds them here, and is compared with nothing but other hashes of this device.
struct RowHash {
    private let entity: SipHash
    private let columns: [SipHash]

    init(_ shape: TableSchema) {
        entity = CellHash.prefix(entity: shape.name)
        columns = shape.data.map { CellHash.prefix(field: $0.canonicalName) }
    }

    /// The part that stands for the record's existence, and that every cell is weighted with.
    func weight(_ key: [UInt8]) -> UInt64 { key.withUnsafeBytes { CellHash.record(entity, id: $0) } }

    func hash(_ key: [UInt8], _ cells: [Cell]) -> UInt64 {
        let weight = weight(key)
        var sum = weight
        for (index, cell) in cells.enumerated() where index < columns.count {
            sum &+= weight &* content(index, cell)
        }
        return sum
    }

    /// A cell's part of the sum, before it is weighted.
    func content(_ column: Int, _ cell: Cell) -> UInt64 { Self.content(columns[column], cell) }

    /// Returns the content of a column that this device does not have any more.
    static func content(of column: some Collection<UInt8>, _ cell: Cell) -> UInt64 {
        content(CellHash.prefix(field: column), cell)
    }

    private static func content(_ prefix: SipHash, _ cell: Cell) -> UInt64 {
        switch cell {
        case .null: 0
        case .integer(let value): number(prefix, 1, UInt64(bitPattern: value))
        case .real(let bits): number(prefix, 2, bits)
        case .text(let text): text.withUnsafeBytes { bytes(prefix, 3, $0) }
        case .blob(let blob): blob.withUnsafeBytes { bytes(prefix, 4, $0) }
        }
    }

    /// A value that still stands in a page's bytes.
    func content(_ column: Int, _ scalar: JSONScalar, _ reader: JSONReader) -> UInt64 {
        switch scalar {
        case .null: 0
        case .integer(let value): Self.number(columns[column], 1, UInt64(bitPattern: value))
        case .real(let value): Self.number(columns[column], 2, value.bitPattern)
        case .text(let text) where !text.hasEscapes:
            Self.bytes(columns[column], 3, UnsafeRawBufferPointer(rebasing: reader.bytes[text.range]))
        case .text(let text): reader.unescaped(text).withUnsafeBytes { Self.bytes(columns[column], 3, $0) }
        case .blob(let blob): blob.withUnsafeBytes { Self.bytes(columns[column], 4, $0) }
        }
    }

    private static func number(_ prefix: SipHash, _ kind: UInt8, _ bits: UInt64) -> UInt64 {
        var hash = prefix
        hash.update(byte: kind)
        withUnsafeBytes(of: bits.littleEndian) { hash.update($0) }
        return hash.finish()
    }

    private static func bytes(_ prefix: SipHash, _ kind: UInt8, _ bytes: UnsafeRawBufferPointer) -> UInt64 {
        var hash = prefix
        hash.update(byte: kind)
        hash.update(bytes)
        return hash.finish()
    }
}
