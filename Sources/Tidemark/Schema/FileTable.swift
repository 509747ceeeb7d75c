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
        // A pragma, and what GRDB remembers of the schema, may be older than what another process did just now.
        let sql = "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE"
        guard try Query(db, sql).first(db, [.text(name)], { _ in true }) != nil else { return false }
        return try named(name, db).contains { $0.kind == .ordinary && !$0.isTemporary }
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
