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

    /// - Parameter kind: a type beneath its domains, by its name in `pg_catalog`; another one travels as its text.
    init(kind: String) {
        switch kind {
        case "int2", "int4", "int8", "oid": self = .integer
        case "float4", "float8": self = .real
        case "bool": self = .flag
        case "bytea": self = .blob
        case "timestamptz": self = .instant
        case "timestamp": self = .moment
        case "date": self = .day
        default: self = .text
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
        case .blob: "(\(value))::bytea"
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

    /// Whether a value that was read by `reading` is one that neither JSON nor SQLite has.
    func isUnsendable(_ answer: QueryResult, _ row: Int, _ column: Int32) throws -> Bool {
        guard self == .real, !answer.isNull(row, column) else { return false }
        return Double(bitPattern: UInt64(bitPattern: try answer.integer(row, column))).isNaN
    }

    /// Writes a value that was read by `reading` and is sendable.
    func write(_ answer: QueryResult, _ row: Int, _ column: Int32, to writer: inout JSONWriter) throws {
        guard !answer.isNull(row, column) else { return writer.value(.null) }
        switch self {
        case .integer, .flag: writer.value(integer: try answer.integer(row, column))
        case .real:
            writer.value(real: Double(bitPattern: UInt64(bitPattern: try answer.integer(row, column))))
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
