package import TidemarkWire

/// A column's value as SQLite holds it, byte for byte: text may be no UTF-8 and may hold NUL, which `String` and
/// GRDB's readers would repair or cut.
enum Cell: Hashable, Sendable {
    case null
    case integer(Int64)
    case real(bits: UInt64)
    case text([UInt8])
    case blob([UInt8])

    static func real(_ value: Double) -> Cell { .real(bits: value.bitPattern) }

    init(_ value: Value) {
        switch value {
        case .null: self = .null
        case .integer(let integer): self = .integer(integer)
        case .real(let real): self = .real(real)
        case .text(let text): self = .text(Array(text.utf8))
        case .blob(let blob): self = .blob(blob)
        }
    }

    /// The value as SQL.
    var literal: String {
        switch self {
        case .null: "NULL"
        case .integer(let integer): String(integer)
        case .real(let bits): Double(bitPattern: bits).isFinite ? "\(Double(bitPattern: bits))" : "9e999"
        case .text(let text): "CAST(\(Cell.blob(text).literal) AS TEXT)"
        case .blob(let blob): "X'" + blob.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() + "'"
        }
    }

    /// The value for people to read; text that is no UTF-8 is repaired here, and only here.
    var value: Value {
        switch self {
        case .null: .null
        case .integer(let integer): .integer(integer)
        case .real(let bits): .real(Double(bitPattern: bits))
        case .text(let text): .text(String(decoding: text, as: UTF8.self))
        case .blob(let blob): .blob(blob)
        }
    }

    /// The bytes of a text or a BLOB.
    var byteCount: Int {
        switch self {
        case .null, .integer, .real: 0
        case .text(let bytes), .blob(let bytes): bytes.count
        }
    }

    var isBlob: Bool { if case .blob = self { true } else { false } }

    /// Whether the value can be written to the wire and come back the same.
    var isSendable: Bool {
        switch self {
        case .null, .integer, .real, .blob: true
        case .text(let text): text.withUnsafeBytes { isValidUTF8($0) }
        }
    }
}

extension JSONWriter {
    /// Writes a cell that `isSendable`.
    mutating func cell(_ cell: Cell) {
        switch cell {
        case .null: raw("null")
        case .integer(let integer): value(integer: integer)
        case .real(let bits): value(real: Double(bitPattern: bits))
        case .text(let text): text.withUnsafeBytes { string(utf8: $0) }
        case .blob(let blob): blob.withUnsafeBytes { value(blob: $0) }
        }
    }
}

/// Cells as the file keeps them beside the table: as on the wire, and text that is not UTF-8 as an array that holds the
/// blob of its bytes. It stays text, whatever becomes of its row.
extension JSONWriter {
    mutating func kept(_ cell: Cell) {
        guard case .text(let bytes) = cell, !cell.isSendable else { return self.cell(cell) }
        raw("[")
        self.cell(.blob(bytes))
        raw("]")
    }
}

extension JSONReader {
    mutating func readKept() throws(JSONError) -> Cell {
        guard peek() == UInt8(ascii: "[") else { return try readCell() }
        var text: Cell = .null
        try enterArray()
        while try nextElement() {
            if case .blob(let bytes) = try readCell() { text = .text(bytes) }
        }
        return text
    }
}

extension JSONReader {
    mutating func readCell() throws(JSONError) -> Cell {
        switch try readScalar() {
        case .null: .null
        case .integer(let integer): .integer(integer)
        case .real(let real): .real(real)
        case .text(let text): .text(text.hasEscapes ? unescaped(text) : Array(bytes[text.range]))
        case .blob(let blob): .blob(blob)
        }
    }
}

extension Array where Element == UInt8 {
    /// Runs a pull parser over these bytes.
    package func reading<T>(_ body: (inout JSONReader) throws(JSONError) -> T) throws(JSONError) -> T {
        let result: Result<T, JSONError> = withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            return Result { () throws(JSONError) in try body(&reader) }
        }
        return try result.get()
    }
}
