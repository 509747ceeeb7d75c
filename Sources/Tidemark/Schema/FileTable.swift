import GRDB
import TidemarkWire

/// A table of the app's file, as SQLite itself lists it: a name alone does not tell a table from a view, or from one
/// that a virtual table keeps its own data in.
struct FileTable: Hashable, Sendable {
    enum Kind: String, Hashable, Sendable {
        case ordinary = "table"
        case view, virtual
        /// A virtual table keeps its own data in it.
        case shadow
    }

    var name: String
    var kind: Kind
    /// Whether it is this connection's alone, and gone with it.
    var isTemporary: Bool
    /// Whether its rows have numbers of their own, beside the key.
    var hasRowIDs: Bool
    /// Whether its columns take what their types say, and nothing else.
    var isStrict: Bool

    /// Every table and view of the file, and the connection's own.
    static func all(_ db: Database) throws -> [FileTable] { try read(db, "PRAGMA table_list") }

    /// Returns the tables and views of a name; at most one in the file, and one of the connection's own.
    static func named(_ name: String, _ db: Database) throws -> [FileTable] {
        try read(db, "PRAGMA table_list(\(quoted(name)))")
    }

    /// The app's own tables in the file, by name: not SQLite's, nor the library's, nor what belongs to a virtual table.
    static func own(_ db: Database) throws -> [String] {
        try all(db).filter { $0.kind == .ordinary && !$0.isTemporary && !$0.name.isReservedTable }
            .map(\.name).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// Whether there is an ordinary table of this name in the file.
    static func exists(_ name: String, _ db: Database) throws -> Bool {
        // A pragma may be older than what another process did just now.
        guard try isListed(name, db) else { return false }
        return try named(name, db).contains { $0.kind == .ordinary && !$0.isTemporary }
    }

    /// Whether the file lists a table of this name, ordinary or virtual. That is enough for the library's own, whose
    /// prefix it keeps for itself: a pragma would say what kind it is, and is compiled anew with each call. What GRDB
    /// remembers of the schema may be older than what another process did just now.
    static func isListed(_ name: String, _ db: Database) throws -> Bool {
        let sql = "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE"
        return try Query(db, sql).first(db, [.text(name)]) { _ in true } ?? false
    }

    private static func read(_ db: Database, _ pragma: String) throws -> [FileTable] {
        try Query(db, pragma).rows(db) { row in
            // Others are of a file that the app has attached beside its own.
            guard ["main", "temp"].contains(row.text(0)) else { return nil }
            return FileTable(
                name: row.text(1), kind: Kind(rawValue: row.text(2)) ?? .virtual, isTemporary: row.text(0) == "temp",
                hasRowIDs: row.integer(4) == 0, isStrict: row.integer(5) != 0)
        }.compactMap { $0 }
    }
}

// MARK: - Columns

extension FileTable {
    /// Of the 2,000 columns that SQLite allows a table, a shadow table needs some for itself.
    static let columnLimit = 1980

    /// A column as the table declares it.
    struct Column {
        var name: String
        var type: String
        var isRequired: Bool
        var fallback: String?
        /// From 1; 0 of a column outside the key.
        var keyPosition: Int64
    }

    /// Generated columns (hidden 2 and 3) are computed on each device again.
    static func columns(_ db: Database, _ table: String) throws -> [Column] {
        try Query(db, "PRAGMA table_xinfo(\(quoted(table)))").rows(db) { row in
            row.integer(6) != 0
                ? nil
                : Column(
                    name: row.text(1), type: row.text(2), isRequired: row.integer(3) != 0,
                    fallback: row.optionalText(4), keyPosition: row.integer(5))
        }.compactMap { $0 }
    }

    /// By what the columns of a table's key are compared, in its index and elsewhere; nothing where the key is the
    /// row's own number.
    static func keyCollations(_ db: Database, _ table: String) throws -> [String] {
        let indexes = try Query(db, "PRAGMA index_list(\(quoted(table)))").rows(db) { ($0.text(1), $0.text(3)) }
        return try indexes.filter { $0.1 == "pk" }.flatMap { index, _ in
            try Query(db, "PRAGMA index_xinfo(\(quoted(index)))")
                .rows(db) { (column: $0.text(2), collation: $0.text(4), isKey: $0.integer(5) == 1) }
                .filter(\.isKey)
                .flatMap { part in
                    [part.collation] + [db.declaredCollation(of: part.column, in: table)].compactMap { $0 }
                }
        }
    }
}
