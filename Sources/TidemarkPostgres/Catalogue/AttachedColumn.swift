import Foundation
import TidemarkWire

/// A column of an attached table.
struct AttachedColumn: Codable, Hashable, Sendable {
    let name: String
    /// The type as it stands in a statement, without a length: a text that is too long is refused, not cut.
    let type: String
    let form: ColumnForm
    /// Whether a row may be given a value; `false` for what the database computes.
    let isWritable: Bool
    /// The type beneath the column's own, where it has another name: a domain's base, `enum`, `citext`, `array`.
    var base: String?
    /// Whether its values name rows, as those of a key and of a foreign key do: equal values then have one spelling.
    var namesRows: Bool?
    /// The schema of the operators that the key's index compares by; `nil`: `pg_catalog`.
    var operators: String?

    /// The type's name in `pg_catalog`, or the kind that stands for it.
    var kind: String { base ?? type }

    var sql: String { SQL.quoted(name) }

    /// The type that a text is cast to in a statement. An integer that is too large for its column is in no row, or
    /// refused; and the column may have become wider since.
    var castType: String { form == .integer ? "bigint" : type }

    /// A place in a statement for a value of the column.
    func place(_ index: Int) -> String { form == .blob ? "$\(index)::bytea" : "$\(index)::text::\(castType)" }

    /// An expression's value as it travels.
    func reading(_ value: String) -> String {
        // The cast to a text would add a mask to each address.
        if kind == "inet" { return "pg_catalog.textin(pg_catalog.inet_out(\(value)))" }
        guard namesRows == true else { return form.reading(value) }
        switch kind {
        case "numeric": return "pg_catalog.trim_scale(\(value))::text"
        case "citext": return "pg_catalog.lower((\(value))::text COLLATE pg_catalog.\"default\")"
        default: return form.reading(value)
        }
    }

    /// Returns an expression whose text differs wherever the value differs.
    func spelled(_ value: String) -> String {
        switch form {
        case .integer: "(\(value))::text"
        case .flag: "(\(value))::integer::text"
        case .blob, .real, .text, .instant, .moment, .day: reading(value)
        }
    }

    /// The types whose values may name rows: each value has one spelling.
    static let namingKinds: Set<String> = [
        "int2", "int4", "int8", "bool", "text", "varchar", "bpchar", "uuid", "numeric", "date", "timestamp",
        "timestamptz", "time", "timetz", "enum", "citext", "bytea", "inet", "cidr", "macaddr", "macaddr8", "bit",
        "varbit", "name",
    ]

    /// Whether a text may be how the server spells a value that stands in a key or a scope's name: another spelling of
    /// the same value would be another record.
    func mayBeCanonical(_ text: String) -> Bool {
        guard !text.utf8.contains(0) else { return false }
        switch kind {
        case _ where form == .integer: return Int64(text).map { String($0) == text } ?? false
        case "bool": return text == "0" || text == "1"
        case "bpchar": return text.utf8.last != UInt8(ascii: " ")
        case "uuid":
            let groups = text.split(separator: "-", omittingEmptySubsequences: false)
            return groups.map(\.utf8.count) == [8, 4, 4, 4, 12]
                && groups.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) } }
        // PostgreSQL writes no number with an exponent, and a small text with one may be a number of many digits.
        case "numeric": return !text.utf8.contains { $0 | 0x20 == UInt8(ascii: "e") }
        default: return true
        }
    }

    /// Whether the type takes every text that may be canonical.
    var isReadWhereCanonical: Bool { form == .integer || ["text", "bpchar", "uuid"].contains(type) }

    /// Whether PostgreSQL alone can tell if a text is canonical.
    var isSpelledByServer: Bool {
        !(form == .integer || form == .flag || form == .blob)
            && !["text", "varchar", "bpchar", "uuid", "enum"].contains(kind)
    }
}
