import Foundation
import TidemarkWire

/// The form of a column's values on the wire, and how they go to and fro.
enum ColumnForm: String, Codable, Hashable, Sendable {
    case integer, real, flag, text, blob
    /// A `timestamptz`: `2026-11-21T18:00:00.000000Z`.
    case instant
    /// A `timestamp`, without a zone.
    case moment
    /// A `date`.
    case day

    /// The types that a column may have, by their names in `pg_catalog`.
    init?(type: String) {
        switch type {
        case "int2", "int4", "int8": self = .integer
        case "float4", "float8": self = .real
        case "bool": self = .flag
        case "text", "varchar", "bpchar", "numeric", "uuid", "json", "jsonb", "time", "timetz": self = .text
        case "bytea": self = .blob
        case "timestamptz": self = .instant
        case "timestamp": self = .moment
        case "date": self = .day
        default: return nil
        }
    }

    /// An expression's value as it is read. What the formats below cannot spell (infinity, years of five digits) comes
    /// as PostgreSQL writes it.
    func reading(_ value: String) -> String {
        switch self {
        case .integer: "(\(value))::bigint"
        case .flag: "(\(value))::integer::bigint"
        case .real: "(\(value))::double precision"
        case .text: "(\(value))::text"
        case .blob: value
        case .instant: spelled("(\(value) AT TIME ZONE 'UTC')", #"YYYY-MM-DD"T"HH24:MI:SS.US"Z""#)
        case .moment: spelled("(\(value))", #"YYYY-MM-DD"T"HH24:MI:SS.US"#)
        case .day: spelled("(\(value))", "YYYY-MM-DD")
        }
    }

    private func spelled(_ value: String, _ format: String) -> String {
        """
        CASE WHEN \(value) >= '0001-01-01' AND \(value) < '10000-01-01' THEN pg_catalog.to_char(\(value), '\(format)')
        ELSE \(value)::text END
        """
    }

    /// Writes a value that was read by `reading`.
    func write(_ answer: QueryResult, _ row: Int, _ column: Int32, to writer: inout JSONWriter) throws {
        guard !answer.isNull(row, column) else { return writer.value(.null) }
        switch self {
        case .integer, .flag: writer.value(integer: try answer.integer(row, column))
        case .real:
            let value = Double(bitPattern: UInt64(bitPattern: try answer.integer(row, column)))
            writer.value(value.isNaN ? .null : .real(value))
        case .text, .instant, .moment, .day: writer.string(utf8: answer.bytes(row, column))
        case .blob: writer.value(.blob(Array(answer.bytes(row, column))))
        }
    }

    /// The parameter that stands for a value in a statement; `nil` where it is none of the column's. The server reads
    /// the text, and refuses one that it cannot read.
    func parameter(_ value: Value) -> Parameter? {
        switch (self, value) {
        case (_, .null): .null
        case (.blob, .blob(let bytes)): .bytes(bytes)
        case (.blob, _), (_, .blob): nil
        case (_, .integer(let integer)): .text(String(integer))
        case (.integer, .real(let real)), (.flag, .real(let real)):
            Int64(exactly: real).map { .text(String($0)) }
        case (_, .real(let real)): .text("\(real)")
        case (_, .text(let text)): .text(text)
        }
    }
}

/// A column of an attached table.
struct AttachedColumn: Codable, Hashable, Sendable {
    let name: String
    /// The type as it stands in a statement, without a length: a text that is too long is refused, not cut.
    let type: String
    let form: ColumnForm
    /// Whether a row may be given a value; `false` for what the database computes.
    let isWritable: Bool

    var sql: String { SQL.quoted(name) }

    /// The type that a text is cast to in a statement. An integer that is too large for its column is in no row, or
    /// refused; and the column may have become wider since.
    var castType: String { form == .integer ? "bigint" : type }

    /// A place in a statement for a value of the column.
    func place(_ index: Int) -> String { form == .blob ? "$\(index)::bytea" : "$\(index)::text::\(castType)" }

    /// Whether a text is how the server spells a value that may stand in a key or a scope's name: another spelling of
    /// the same value would be another record.
    func isCanonical(_ text: String) -> Bool {
        if form == .integer { return Int64(text).map { String($0) == text } ?? false }
        guard type == "uuid" else { return true }
        let groups = text.split(separator: "-", omittingEmptySubsequences: false)
        return groups.map(\.utf8.count) == [8, 4, 4, 4, 12]
            && groups.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) } }
    }
}

/// How names and texts of the catalogue stand in a statement.
enum SQL {
    static func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }

    /// Needs `standard_conforming_strings`, which the statements that use it set.
    static func literal(_ text: String) -> String { "'\(text.replacing("'", with: "''"))'" }
}
