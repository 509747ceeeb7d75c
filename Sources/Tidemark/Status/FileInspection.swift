package import GRDB
import TidemarkWire

/// The faults of a file's schema: warnings, and synced tables without triggers. A tool reads them and writes nothing.
package struct FileInspection: Hashable, Sendable {
    /// Warnings about what the schema hides from capture, as the engine tells them.
    package var warnings: [String] = []
    /// Synced tables without their triggers, or that were rebuilt: the next sync looks for what was written since.
    package var uncaptured: [String] = []
    /// Rows with NULL in their key: no other device could name them.
    package var nameless: [Nameless] = []

    /// The rows of one table that cannot travel, since some column of their key is NULL.
    package struct Nameless: Hashable, Sendable {
        package var table: String
        package var rows: Int
        /// The columns of the key that are NULL in some of them.
        package var columns: [String]
    }

    /// - Throws: ``SyncError`` `schema_unsupported` where another version has written the file, or another program has
    ///   a table with a name of the library's.
    package init(_ db: Database) throws {
        let standing = try LibrarySchema.standing(db)
        if standing == .empty {
            warnings = [
                "The file has this library's tables and triggers without their rows, as a copy of a schema alone has. "
                    + "The next sync sets them up anew; `tidemark remove` takes them out."
            ]
        }
        guard standing == .whole else { return }
        let found = try Meta.get(db, "schema").flatMap(Int64.init) ?? 0
        guard found == LibrarySchema.version else {
            let isNewer = found > LibrarySchema.version
            let version = isNewer ? "a newer" : "an older"
            throw SyncError(
                .schemaUnsupported,
                "The file was written by \(version) version of this library (schema \(found)).",
                hint: isNewer ? "Use that version." : "Sync it once; that brings it up to date.")
        }
        let rules = try TableRules.all(db).filter { try FileTable.exists($0.key, db) }.sorted { $0.key < $1.key }
        var shapes: [TableSchema] = []
        for (name, rule) in rules {
            guard var shape = try TableSchema.supported(db, table: name, rule: rule) else { continue }
            try shape.warnAboutTriggers(db, synced: Set(rules.map(\.key)))
            if try !ShadowTable(shape).exists(db) || !Installation.isCaptured(db, shape) {
                uncaptured.append(name)
            } else {
                shapes.append(shape)
                if let found = try RowCounting(db: db, shape: shape).nameless() {
                    nameless.append(Nameless(table: name, rows: found.rows, columns: found.columns))
                }
            }
        }
        let schema = SyncSchema(shapes: shapes, clientID: "", schemaVersion: try SyncSchema.version(db))
        let assigned = Set(try AssignedIDs.read(db).map(SQLName.init))
        warnings = try schema.adding(SyncedTable.declared(in: db), db).warnings(assigned: assigned)
    }
}
