import Foundation
import GRDB
import Testing
import Tidemark
import TidemarkTesting

/// Projects and their tasks in one scope, with unique values, long texts and every storage class.
enum ProjectApp: ConvergenceApp {
    static let schema = """
        CREATE TABLE project (id TEXT PRIMARY KEY, name TEXT NOT NULL, slug TEXT UNIQUE);
        CREATE TABLE task (
            id INTEGER PRIMARY KEY, project TEXT REFERENCES project(id) ON DELETE CASCADE, title TEXT, weight REAL,
            body TEXT, note BLOB, done INTEGER NOT NULL DEFAULT 0);
        """

    /// Words somewhere in a text that is long enough to travel as patches.
    fileprivate static func write(_ db: Database, _ text: String, into task: Int, at place: Int) throws {
        let first = (0..<120).map { "Line \($0) of a long text — ein längerer Text.\n" }.joined()
        try db.execute(
            sql: """
                UPDATE task SET body = substr(coalesce(body, :first), 1, :place) || :text
                  || substr(coalesce(body, :first), :place + 5) WHERE id = :task
                """,
            arguments: ["first": first, "place": 1 + place % 4000, "text": text, "task": task])
    }
}

extension ConvergenceDevice where App == ProjectApp {
    /// An engine per opening: each call stands for a new start of the app.
    func engine(
        page: Int, operationLimit: Int? = nil, onConflict: ConflictHandler? = nil
    ) throws -> SyncEngine {
        var configuration = SyncConfiguration()
        configuration.pageRange = page...page
        configuration.firstPage = page
        configuration.snapshotRange = page...page
        configuration.firstSnapshotPage = page
        configuration.operationLimit = operationLimit ?? 1 + page * 2
        return try SyncEngine(
            for: queue, tables: [.table("project"), .table("task")], scopes: scopes, transport: transport,
            configuration: configuration, onConflict: onConflict)
    }

    /// Every row of a table, with the storage class of each value.
    func rows(_ table: String) throws -> [String] {
        try queue.read { db in
            let columns = try db.columns(in: table).map { "quote(\($0.name))" }.joined(separator: " || ',' || ")
            return try String.fetchAll(db, sql: "SELECT \(columns) FROM \(table) ORDER BY id")
        }
    }

    /// A random edit, as an app makes them.
    func edit(_ generator: inout SplitMix64, serial: Int) throws {
        let project = "p\(Int.random(in: 0..<5, using: &generator))"
        let task = Int.random(in: 0..<8, using: &generator)
        let choice = Int.random(in: 0..<12, using: &generator)
        let text = "\(name)-\(serial)"
        try queue.write { db in
            do {
                switch choice {
                case 0:
                    try db.execute(
                        sql: "INSERT INTO project VALUES (?, ?, ?)", arguments: [project, text, "s\(serial % 4)"])
                case 1:
                    try db.execute(
                        sql: "INSERT OR REPLACE INTO project VALUES (?, ?, ?)",
                        arguments: [project, text, "s\(serial % 4)"])
                case 2: try db.execute(sql: "UPDATE project SET name = ? WHERE id = ?", arguments: [text, project])
                case 3:
                    try db.execute(
                        sql: "UPDATE OR REPLACE project SET slug = ? WHERE id = ?",
                        arguments: ["s\(serial % 4)", project])
                case 4: try db.execute(sql: "DELETE FROM project WHERE id = ?", arguments: [project])
                case 5, 6:
                    try db.execute(
                        sql: """
                            INSERT INTO task (id, project, title) VALUES (?, (SELECT id FROM project WHERE id = ?), ?)
                            ON CONFLICT (id) DO UPDATE SET title = excluded.title
                            """,
                        arguments: [task, project, text])
                case 7: try db.execute(sql: "UPDATE task SET title = ? WHERE id = ?", arguments: [text, task])
                case 8 where serial % 2 == 0:
                    try db.execute(sql: "UPDATE task SET done = 1 - done WHERE id = ?", arguments: [task])
                case 8: try ProjectApp.write(db, text, into: task, at: serial * 37)
                case 9:
                    try db.execute(
                        sql: "UPDATE task SET weight = ?, note = ? WHERE id = ?",
                        arguments: [Double(serial) / 3, Data([UInt8(serial & 255), 0]), task])
                case 10: try db.execute(sql: "DELETE FROM task WHERE id = ?", arguments: [task])
                default:
                    try db.execute(sql: "UPDATE OR IGNORE task SET id = ? WHERE id = ?", arguments: [task + 1, task])
                }
            } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {}
        }
    }
}

extension ConvergenceWorld where App == ProjectApp {
    /// Every device holds the rows that the server holds, and has nothing left to send.
    func expectSameRows() async throws {
        for device in devices {
            #expect(
                try device.count("SELECT count(*) FROM tidemark_shadow_project") == 0, "seed \(seed) \(device.name)")
            #expect(try device.count("SELECT count(*) FROM tidemark_shadow_task") == 0, "seed \(seed) \(device.name)")
            #expect(
                try device.count("SELECT count(*) FROM tidemark_operation WHERE finished_at IS NULL") == 0,
                "seed \(seed) \(device.name)")
        }
        for table in ["project", "task"] {
            let first = try devices[0].rows(table)
            for device in devices.dropFirst() { #expect(try device.rows(table) == first, "seed \(seed) \(table)") }
            let served = try await ids(of: table)
            for device in devices {
                let here = try await device.queue.read { db in
                    try String.fetchSet(
                        db,
                        sql: """
                            SELECT CAST(id AS TEXT) FROM \(table)
                            UNION SELECT record FROM tidemark_quarantine WHERE entity = '\(table)'
                            """)
                }
                #expect(here == served, "seed \(seed) \(table) \(device.name)")
            }
        }
    }

    private func ids(of entity: String) async throws -> Set<String> {
        Set(try await changes().filter { $0["entity"] as? String == entity }.compactMap { $0["id"] as? String })
    }
}
