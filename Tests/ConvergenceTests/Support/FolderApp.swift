import Foundation
import GRDB
import Tidemark
import TidemarkTesting
import TidemarkWire

/// Folders and their notes, whose rows lie in several scopes by a column.
enum FolderApp: ConvergenceApp {
    static let scopes: [Scope] = ["w:a", "w:b", "w:3"]
    static let tables = ["folder", "note"]
    static let schema = """
        CREATE TABLE folder (id TEXT PRIMARY KEY, w, name TEXT, slug TEXT UNIQUE);
        CREATE TABLE note (
            id INTEGER PRIMARY KEY, w TEXT COLLATE NOCASE,
            folder TEXT REFERENCES folder(id) ON DELETE SET NULL,
            title TEXT, body TEXT);
        """

    fileprivate static func text(_ value: DatabaseValue) -> String {
        value.isNull
            ? "NULL" : String.fromDatabaseValue(value) ?? Int64.fromDatabaseValue(value).map(String.init) ?? "?"
    }
}

extension ConvergenceDevice where App == FolderApp {
    func engine(page: Int, scopes: [Scope]? = nil, operationLimit: Int? = nil) throws -> SyncEngine {
        var configuration = SyncConfiguration()
        configuration.pageRange = page...page
        configuration.firstPage = page
        configuration.operationLimit = operationLimit ?? 1 + page * 2
        let rule = SyncedTable.ScopeRule.column("w", prefix: "w:")
        return try SyncEngine(
            for: queue, tables: FolderApp.tables.map { .table($0, scope: rule) }, scopes: scopes ?? self.scopes,
            transport: transport, configuration: configuration)
    }

    /// Rows that the scope has here: on screen by their column, and those in quarantine.
    func rows(_ table: String, in scope: Scope) throws -> [String: [String: String]] {
        try queue.read { db in
            var rows: [String: [String: String]] = [:]
            let name = String(scope.name.dropFirst(2))
            let shown = try Row.fetchAll(
                db, sql: "SELECT * FROM \(table) WHERE CAST(w AS TEXT) = ? COLLATE BINARY", arguments: [name])
            for row in shown {
                var values: [String: String] = [:]
                for (column, value) in row where column != "id" { values[column] = FolderApp.text(value) }
                rows["\(row["id"] as DatabaseValue)".replacing("\"", with: "")] = values
            }
            let unplaced = try Row.fetchAll(
                db, sql: "SELECT record, data FROM tidemark_quarantine WHERE entity = ? AND scope = ?",
                arguments: [table, scope.name])
            for row in unplaced {
                let data = try JSONSerialization.jsonObject(with: row["data"] as Data) as? [String: Any] ?? [:]
                rows["\(row["record"] as String)"] = data.mapValues { $0 is NSNull ? "NULL" : "\($0)" }
            }
            return rows
        }
    }

    /// SQL: whether a row with that value in its column `w` is in none of the scopes that this device follows.
    func isStuck(_ w: String) -> String {
        let names = scopes.map { "'\($0.name.dropFirst(2))'" }.joined(separator: ", ")
        return "(\(w) IS NULL OR CAST(\(w) AS TEXT) COLLATE BINARY NOT IN (\(names)))"
    }

    /// Random edits and moves, as an app makes them.
    func edit(_ generator: inout SplitMix64, serial: Int) throws {
        let folder = "f\(Int.random(in: 0..<4, using: &generator))"
        let note = Int.random(in: 0..<6, using: &generator)
        let choice = Int.random(in: 0..<14, using: &generator)
        let place: (any DatabaseValueConvertible)? =
            [
                "a", "b", generator.chance(50) ? "3" : 3, generator.chance(30) ? nil : "a",
                generator.chance(30) ? "no name" : "b",
            ].randomElement(using: &generator) ?? "a"
        let text = "\(name)-\(serial)"
        try queue.write { db in
            do {
                switch choice {
                case 0:
                    try db.execute(
                        sql: "INSERT INTO folder VALUES (?, ?, ?, ?)",
                        arguments: [folder, place, text, "s\(serial % 3)"])
                case 1:
                    try db.execute(
                        sql: "INSERT OR REPLACE INTO folder VALUES (?, ?, ?, ?)",
                        arguments: [folder, place, text, "s\(serial % 3)"])
                case 2: try db.execute(sql: "UPDATE folder SET name = ? WHERE id = ?", arguments: [text, folder])
                case 3:
                    try db.execute(
                        sql: "UPDATE OR REPLACE folder SET slug = ? WHERE id = ?",
                        arguments: ["s\(serial % 3)", folder])
                case 4: try db.execute(sql: "DELETE FROM folder WHERE id = ?", arguments: [folder])
                case 5, 6: try db.execute(sql: "UPDATE folder SET w = ? WHERE id = ?", arguments: [place, folder])
                case 7:
                    try db.execute(
                        sql: """
                            INSERT INTO note VALUES (?, ?, (SELECT id FROM folder WHERE id = ?), ?, NULL)
                            ON CONFLICT (id) DO UPDATE SET title = excluded.title
                            """,
                        arguments: [note, place, folder, text])
                case 8: try db.execute(sql: "UPDATE note SET title = ? WHERE id = ?", arguments: [text, note])
                case 9, 10: try db.execute(sql: "UPDATE note SET w = ? WHERE id = ?", arguments: [place, note])
                case 11:
                    try db.execute(sql: "UPDATE note SET body = ?, w = ? WHERE id = ?", arguments: [text, place, note])
                case 12: try db.execute(sql: "DELETE FROM note WHERE id = ?", arguments: [note])
                default:
                    try db.execute(sql: "UPDATE OR IGNORE note SET id = ? WHERE id = ?", arguments: [note + 1, note])
                }
            } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {}
        }
    }
}
