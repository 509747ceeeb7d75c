import GRDB
import TidemarkWire

/// The file's own schema of one synced table.
struct TableSchema: Hashable, Sendable {
    struct Column: Hashable, Sendable {
        var name: String
        var affinity: Affinity
        /// The value of a new row where none is given.
        var defaultCell: Cell
        /// Whether a whole record that lacks the column puts it back to that: not where the default is computed, and so
        /// differs from device to device, nor where the schema would refuse it.
        var returnsToDefault: Bool
        /// The value in a row for which none was ever written. Where devices work out a default, each holds another
        /// value, and all of them count as written.
        var unwrittenCell: Cell { returnsToDefault ? defaultCell : .null }
        /// The value that a REPLACE puts in the place of NULL, and so evicts by; `nil` where the column takes NULL.
        var replacement: Cell?
        /// The name as the wire spells it, with quotes, and without.
        var wireName: [UInt8]
        var sql: String { quoted(name) }
        var canonicalName: ArraySlice<UInt8> { wireName.dropFirst().dropLast() }
    }

    struct UniqueIndex: Hashable, Sendable {
        /// The content of the index at one place.
        enum Term: Hashable, Sendable {
            case column(String)
            /// SQL, and the columns of the table that it may name.
            case expression(String, of: [String])
        }

        struct Part: Hashable, Sendable {
            var term: Term
            var collation: String

            var column: String? { if case .column(let name) = term { name } else { nil } }
        }

        var name: String
        var parts: [Part]
        /// The condition that rows have to fulfil to be in a partial index, in SQL that names columns alone.
        var condition: String?
    }

    /// A foreign key of any table in the file that refers to this one.
    struct Child: Hashable, Sendable {
        var table: String
        var columns: [String]
        var parentColumns: [String]
        /// The collations of the parent's columns, by which SQLite compares references.
        var collations: [String]
        var onDelete: String
    }

    var name: String
    /// Which scope its rows are in.
    var rule: SyncedTable.ScopeRule
    var key: [Column]
    /// Every stored column that is not part of the key.
    var data: [Column]
    /// The key first, then every other unique index.
    var uniques: [UniqueIndex]
    /// Whether the schema takes rows without a value in some column of the key, as SQLite does unless told not to.
    var mayLackKey = false
    /// The name of the rows' own numbers in SQL; `nil` where they have none, or where that is the key.
    var rowNumber: String?
    /// SQL for the key of a row whose key SQLite gives; `nil` where it gives none.
    var nextNumberSQL: String?
    /// Whether a trigger of the app's writes to the table, and does not look away while changes are applied.
    var isGuarded = false
    /// Whether a trigger of the app's stands on the table.
    var hasTriggers = false
    /// Whether the table says ON CONFLICT of a constraint.
    var hasConflictClauses = false
    /// Whether a unique index holds only expressions or generated columns, whose values cannot be read off a row.
    var hasHiddenUniques = false
    var children: [Child]
    /// The columns that name bytes.
    var attachments: [AttachmentColumn] = []
    /// For how many milliseconds rows that were deleted elsewhere are kept.
    var keepsDeleted: Int64?
    /// Things that capture cannot see, to be shown in the status.
    var warnings: [String]
    /// The same by kind, to be told together with those of other tables.
    var remarks: [SchemaRemark] = []
    /// Made of the rest, once that is read.
    var statements = RecordStatements()

    var columns: [Column] { key + data }
    /// Goes into statements that write what the server has. It overrides the table's own conflict clauses: a REPLACE
    /// there would evict another row unseen. It overrides those of the app's triggers too (SQLite's manual, "CREATE
    /// TRIGGER"), so it is left out where the table has none: INSERT OR IGNORE in a trigger then does what it says.
    var orAbort: String { hasConflictClauses ? "OR ABORT " : "" }
    var sql: String { quoted(name) }
    /// SQL for the row, or the shadow, whose key the first parameters are.
    var isKeySQL: String { key.enumerated().map { "\($1.sql) = ?\($0 + 1)" }.joined(separator: " AND ") }
    static let shadowPrefix = "tidemark_shadow_"
    var shadowName: String { Self.shadowPrefix + name }
    var shadowSQL: String { quoted(shadowName) }
    /// The columns by which a shadow names its records.
    static func key(ofShadow name: String, _ db: Database) throws -> [String] {
        let index =
            try Query(db, "PRAGMA index_list(\(quoted(name)))").rows(db) { ($0.text(1), $0.text(3)) }
            .first { $0.1 == "u" }?.0 ?? ""
        return try Query(db, "PRAGMA index_info(\(quoted(index)))").rows(db) { $0.text(2) }
    }
    /// The table that notes rows of a guarded table as they should be; empty between transactions.
    var touchedName: String { "tidemark_touched_" + name }
    var touchedSQL: String { quoted(touchedName) }

    /// SQL for whether a row has a value in every column of its key, without which no two devices can name it.
    func isNamedSQL(_ row: String) -> String {
        key.map { "\(row).\($0.sql) IS NOT NULL" }.joined(separator: " AND ")
    }

    /// The types of the key's columns, as far as an id depends on them: a text or a number alone is its own id.
    var keyTypes: String {
        let isPlain = key.count == 1 && [.text, .integer].contains(key[0].affinity)
        return isPlain ? "TEXT or INTEGER" : key.map(\.affinity.standardType).joined(separator: ", ")
    }

    func dataIndex(_ name: String) -> Int? { data.firstIndex { $0.name.isSameName(as: name) } }

    /// The column that a field of the wire goes into.
    func dataIndex(canonical name: some Collection<UInt8>) -> Int? {
        data.firstIndex { $0.canonicalName.elementsEqual(name) }
            ?? data.firstIndex { Identifier.isSameName($0.canonicalName, name) }
    }
}

/// Whether one of the conditions holds. In a single chain their number would be bounded by how deep SQLite lets an
/// expression be nested, which is 1,000.
func anySQL(_ conditions: [String]) -> String {
    let size = 50
    guard conditions.count > size else { return conditions.joined(separator: " OR ") }
    return stride(from: 0, to: conditions.count, by: size)
        .map { "(" + conditions[$0..<min($0 + size, conditions.count)].joined(separator: " OR ") + ")" }
        .joined(separator: " OR ")
}

/// A name as SQL takes it, whatever is in it.
func quoted(_ name: String) -> String {
    // Hardly any name has one, and every statement is looked up by a text with names in it.
    let escaped = name.utf8.contains(UInt8(ascii: "\"")) ? name.replacing("\"", with: "\"\"") : name
    return "\"\(escaped)\""
}

/// A text as an SQL literal.
func literal(_ text: String) -> String { "'" + text.replacing("'", with: "''") + "'" }

// MARK: - Record ids (Protocol.md)

extension TableSchema {
    /// The record's id on the wire; `nil` where its key cannot travel.
    func recordID(_ key: [Cell]) -> RecordID? {
        guard key.allSatisfy({ $0 != .null && $0.isSendable }) else { return nil }
        if key.count == 1 {
            switch (self.key[0].affinity, key[0]) {
            case (.text, .text(let bytes)): return RecordID(String(decoding: bytes, as: UTF8.self))
            case (.text, _): return nil
            case (.integer, .integer(let value)): return RecordID(String(value))
            case (.integer, _): return nil
            case (.blob, _), (.real, _), (.numeric, _): break
            }
        }
        var writer = JSONWriter(capacity: 32)
        writer.raw("[")
        for (index, cell) in key.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.cell(cell)
        }
        writer.raw("]")
        return RecordID(String(decoding: writer.bytes, as: UTF8.self))
    }

    /// The key that an id stands for; `nil` where the id is not one of this table's.
    func key(of id: RecordID) -> [Cell]? {
        let bytes = Array(id.text.utf8)
        if key.count == 1 {
            switch key[0].affinity {
            case .text: return [.text(bytes)]
            case .integer: return Int64(id.text).flatMap { String($0) == id.text ? [.integer($0)] : nil }
            case .blob, .real, .numeric: break
            }
        }
        let cells = try? bytes.reading { (reader: inout JSONReader) throws(JSONError) -> [Cell] in
            var cells: [Cell] = []
            try reader.enterArray()
            while try reader.nextElement() { cells.append(try reader.readCell()) }
            try reader.finish()
            return cells
        }
        // A value that the column would make another one of is another record's.
        guard let cells, cells.count == key.count, recordID(cells) == id,
            zip(key, cells).allSatisfy({ $0.affinity.keeps($1) })
        else { return nil }
        return cells
    }
}
