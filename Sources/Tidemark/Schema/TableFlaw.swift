package import GRDB
import TidemarkWire

/// Why a table cannot be synced, and what can be done about it.
struct TableFlaw: Hashable, Sendable {
    /// The sentence that says so, with the table's name.
    var reason: String
    var hint: String

    init(_ reason: String, hint: String) {
        self.reason = reason
        self.hint = hint
    }

    /// Makes a single error of all flaws that were found, so that a person mends everything in one go.
    static func error(_ flaws: [TableFlaw]) -> SyncError? {
        guard let first = flaws.first else { return nil }
        guard flaws.count > 1 else { return SyncError(.tableUnsupported, first.reason, hint: first.hint) }
        // A name may hold a line's end; each flaw is one line.
        let lines = flaws.map { "\n- " + "\($0.reason) \($0.hint)".replacing("\n", with: " ") }.joined()
        return SyncError(.tableUnsupported, "Some tables cannot be synced as they are:\(lines)", hint: "")
    }

    /// Returns the flaws that keep a table from being synced; none where it can be. Nothing is written.
    ///
    /// - Parameter rule: how its rows are spread over scopes, where that is known.
    static func all(_ db: Database, _ table: String, _ rule: SyncedTable.ScopeRule?) throws -> [TableFlaw] {
        let flaws = try ofShape(db, table, rule)
        return flaws.isEmpty ? ofPrograms(db, table) : flaws
    }

    /// Returns the flaws of a table's declaration alone. ``all`` compiles two statements as well, to see whether this
    /// program has the functions that the table's triggers call; that takes milliseconds, and a caller that has done so
    /// before asks for these.
    static func ofShape(_ db: Database, _ table: String, _ rule: SyncedTable.ScopeRule?) throws -> [TableFlaw] {
        let found = try FileTable.named(table, db)
        guard let inFile = found.first(where: { !$0.isTemporary }) else {
            guard found.isEmpty else {
                return [
                    TableFlaw(
                        "Table '\(table)' is a temporary one.", hint: "Make it in the file, without TEMP, to sync it.")
                ]
            }
            return [TableFlaw("There is no table '\(table)'.", hint: "Run the app's migrations before syncing.")]
        }
        if let flaw = ofKind(inFile) { return [flaw] }
        var flaws: [TableFlaw] = []
        if found.count > 1 {
            flaws.append(
                TableFlaw(
                    "Table '\(inFile.name)' is hidden by a temporary one of the same name.",
                    hint: "Drop or rename the temporary table."))
        }
        if let flaw = ofName(inFile.name) { flaws.append(flaw) }
        return flaws + (try ofColumns(db, inFile.name, rule))
    }

    /// A trigger, an index or a constraint may need a function or a collation that the app registers and this program
    /// does not have: every write to the table would fail.
    private static func ofPrograms(_ db: Database, _ table: String) -> [TableFlaw] {
        for statement in ["INSERT INTO \(quoted(table)) DEFAULT VALUES", "DELETE FROM \(quoted(table))"] {
            do { _ = try db.makeStatement(sql: statement) } catch let error as DatabaseError {
                guard let message = error.message,
                    message.hasPrefix("no such") || message.hasPrefix("unknown function")
                else { continue }
                return [
                    TableFlaw(
                        "Table '\(table)' cannot be written to by this program: \(message).",
                        hint: "Sync it from the app that registers it, or leave the table out.")
                ]
            } catch {}
        }
        return []
    }

    private static func ofKind(_ table: FileTable) -> TableFlaw? {
        switch table.kind {
        case .ordinary: nil
        case .view:
            TableFlaw("'\(table.name)' is a view.", hint: "Sync the tables that it reads from.")
        case .virtual:
            TableFlaw(
                "Table '\(table.name)' is a virtual table.",
                hint: "Sync the ordinary table behind it and let a trigger keep the virtual one.")
        case .shadow:
            TableFlaw(
                "Table '\(table.name)' is a shadow table: it holds the data of a virtual table.",
                hint: "Leave it out: the virtual table keeps it by itself.")
        }
    }

    private static func ofName(_ name: String) -> TableFlaw? {
        if name.isReservedTable {
            return TableFlaw(
                "Table '\(name)' has a reserved name.",
                hint: "Leave it out: names that begin with 'tidemark_' or 'sqlite_' are taken.")
        }
        guard !Identifier.isEntity(name) else { return nil }
        return TableFlaw(
            "'\(name)' is not a table name that can be synced.", hint: "Rename it: \(Identifier.entityHint).")
    }

    private static func ofColumns(_ db: Database, _ table: String, _ rule: SyncedTable.ScopeRule?) throws -> [TableFlaw]
    {
        var flaws: [TableFlaw] = []
        let columns = try FileTable.columns(db, table)
        if !columns.contains(where: { $0.keyPosition > 0 }) {
            flaws.append(
                TableFlaw(
                    "Table '\(table)' has no primary key.",
                    hint: "Declare a PRIMARY KEY: without one, two devices cannot name the same row."))
        }
        if columns.count > FileTable.columnLimit {
            flaws.append(
                TableFlaw(
                    "Table '\(table)' has \(columns.count) columns; up to \(FileTable.columnLimit) can be synced.",
                    hint: "Spread them over two tables."))
        }
        for column in columns where column.name.isReservedColumn {
            flaws.append(
                TableFlaw(
                    "Column '\(column.name)' of table '\(table)' has a reserved name.",
                    hint: "Rename it: names that begin with 'tidemark_' or '$' are taken."))
        }
        if Set(columns.map(\.name)).count < columns.count {
            flaws.append(
                TableFlaw(
                    "Two columns of table '\(table)' have names that are the same letters in other bytes.",
                    hint: "Rename one: programs take such names for equal."))
        }
        if try !FileTable.keyCollations(db, table).allSatisfy({ $0.isSameName(as: "BINARY") }) {
            // Ids are compared byte by byte on the wire: 'A' and 'a' are two records there.
            flaws.append(
                TableFlaw(
                    "The primary key of '\(table)' has a collation other than BINARY.",
                    hint: "Give the key no COLLATE clause: ids are compared byte by byte on the wire."))
        }
        if case .column(let name, _) = rule?.kind, !columns.contains(where: { $0.name == name }) {
            flaws.append(
                TableFlaw(
                    "Table '\(table)' has no ordinary column '\(name)' to name its rows' scopes.",
                    hint: "Name a stored column of the table, spelled as in its schema."))
        }
        return flaws
    }
}

extension SyncedTable {
    /// The tables under the names that the file has for them, which are their entities' names.
    ///
    /// - Throws: one ``SyncError`` that says of every table why it cannot be synced.
    static func spelled(_ tables: [SyncedTable], _ db: Database) throws -> [SyncedTable] {
        let flaws = try tables.flatMap { try TableFlaw.all(db, $0.name, $0.scope) }
        if let error = TableFlaw.error(flaws) { throw error }
        var spelled = tables
        for index in spelled.indices {
            spelled[index].name = try FileTable.named(tables[index].name, db).first?.name ?? tables[index].name
        }
        return spelled
    }

    /// The tables of a file that can be synced, by name.
    ///
    /// - Parameter isWanted: whether a table is looked at.
    package static func syncable(in db: Database, where isWanted: (String) -> Bool) throws -> [String] {
        try FileTable.own(db).filter { try isWanted($0) && TableFlaw.all(db, $0, nil).isEmpty }
    }

    /// The names as the file spells them.
    ///
    /// - Throws: one ``SyncError`` that says of every table why it cannot be synced.
    package static func spelled(_ names: [String], by rule: ScopeRule? = nil, in db: Database) throws -> [String] {
        try spelled(names.map { .table($0, scope: rule) }, db).map(\.name)
    }

    /// The app's own tables, whether they can be synced or not.
    package static func own(in db: Database) throws -> [String] { try FileTable.own(db) }
}
