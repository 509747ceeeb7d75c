import GRDB
import Tidemark
package import TidemarkTesting

/// Its migrations rebuild, rename, drop and restore tables, as those of GRDB, Django and Alembic do, and its users go
/// on writing before anybody has looked. Each device has the schema that its own app has made.
package enum MigratingApp {
    package static var app: SimulatedApp {
        var app = SimulatedApp(
            tables: [.table("note"), .table("tag")], scopes: ["notes:1"],
            acts: noteActs + tagActs + rebuilds + upheavals
        ) { db in
            try db.execute(
                sql: """
                    CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, body TEXT);
                    CREATE TABLE tag (name TEXT PRIMARY KEY, color TEXT, note INTEGER);
                    CREATE TABLE note_backup (id INTEGER PRIMARY KEY, title TEXT, body TEXT);
                    """)
        }
        app.migrating = ["note": ["mood", "headline"], "tag": []]
        app.oddlyKeyed = ["tag"]
        app.atStart = { db in if try columns(of: "note", db).isEmpty { try putBack(db) } }
        return app
    }

    // MARK: What users do

    private static var noteActs: [SimulatedApp.Act] {
        [
            .init("addNote") { db, choices in
                try write(db, ["title"]) { _ in
                    try db.act(
                        "INSERT OR IGNORE INTO note (id, title) VALUES (?, ?)",
                        [choices.pick(0..<6), "t\(choices.serial)"])
                }
            },
            .init("replaceNote") { db, choices in
                try write(db, ["title", "body"]) { _ in
                    try db.act(
                        "INSERT OR REPLACE INTO note (id, title, body) VALUES (?, ?, ?)",
                        [choices.pick(0..<6), "t\(choices.serial)", "b\(choices.serial)"])
                }
            },
            .init("titleNote") { db, choices in
                try write(db, []) { columns in
                    let title = columns.contains("title") ? "title" : "headline"
                    guard columns.contains(title) else { return }
                    try db.act(
                        "UPDATE note SET \(title) = ? WHERE id = ?", ["t\(choices.serial)", choices.pick(0..<6)])
                }
            },
            .init("writeNote") { db, choices in
                try write(db, ["body"]) { _ in
                    try db.act("UPDATE note SET body = ? WHERE id = ?", ["b\(choices.serial)", choices.pick(0..<6)])
                }
            },
            .init("feelNote") { db, choices in
                try write(db, ["mood"]) { _ in
                    try db.act("UPDATE note SET mood = ? WHERE id = ?", ["m\(choices.serial)", choices.pick(0..<6)])
                }
            },
            .init("deleteNote") { db, choices in
                try write(db, []) { _ in try db.act("DELETE FROM note WHERE id = ?", [choices.pick(0..<6)]) }
            },
            .init("manyNotes") { db, choices in
                let (count, serial) = (choices.pick([3, 5, 8, 120]), choices.serial)
                try write(db, ["title"]) { _ in
                    for number in 0..<count {
                        try db.act(
                            """
                            INSERT INTO note (id, title) VALUES (?, ?)
                            ON CONFLICT (id) DO UPDATE SET title = excluded.title
                            """, [number, "t\(serial).\(number)"])
                    }
                }
            },
        ]
    }

    /// Some of the keys no record id can be made of.
    private static let names: [String?] = ["a", "b", "c", "a", "b", nil, "", "\t", String(repeating: "k", count: 129)]

    private static var tagActs: [SimulatedApp.Act] {
        [
            .init("addTag") { db, choices in
                try db.act(
                    "INSERT INTO tag VALUES (?, ?, ?)",
                    [choices.pick(names), "c\(choices.serial)", choices.pick(0..<6)])
            },
            .init("replaceTag") { db, choices in
                try db.act(
                    "INSERT OR REPLACE INTO tag VALUES (?, ?, ?)",
                    [choices.pick(names), "c\(choices.serial)", choices.pick(0..<6)])
            },
            .init("colorTag") { db, choices in
                try db.act(
                    "UPDATE tag SET color = ? WHERE name IS ?", ["c\(choices.serial)", choices.pick(names)])
            },
            .init("renameTag") { db, choices in
                try db.act(
                    "UPDATE OR IGNORE tag SET name = ? WHERE name IS ?", [choices.pick(names), choices.pick(names)])
            },
            .init("deleteTag") { db, choices in
                try db.act("DELETE FROM tag WHERE name IS ?", [choices.pick(names)])
            },
        ]
    }

    // MARK: What its migrations do

    private static var rebuilds: [SimulatedApp.Act] {
        [
            .init("rebuild") { db, choices in
                try write(db, []) { columns in try rebuild(db, columns, &choices) }
            },
            .init("rebuildTag") { db, choices in
                try db.execute(
                    sql: """
                        CREATE TABLE tag_new (name TEXT PRIMARY KEY, color TEXT, note INTEGER);
                        INSERT INTO tag_new SELECT name, color, note FROM tag;
                        DROP TABLE tag;
                        ALTER TABLE tag_new RENAME TO tag;
                        """)
                if choices.chance(50) {
                    try db.execute(sql: "UPDATE tag SET color = ? WHERE name = 'a'", arguments: ["c\(choices.serial)"])
                }
            },
            .init("rebuildWith") { db, choices in
                try write(db, []) { columns in
                    guard !columns.contains("mood") else { return }
                    try rebuild(db, columns + ["mood"], &choices)
                }
            },
            .init("rebuildWithout") { db, choices in
                try write(db, []) { columns in
                    let gone = choices.pick(["mood", "body"])
                    try rebuild(db, columns.filter { $0 != gone }, &choices)
                }
            },
            .init("addColumn") { db, choices in
                try write(db, []) { columns in
                    let column = ["mood", "body"].first { !columns.contains($0) }
                    guard let column else { return }
                    try db.execute(sql: "ALTER TABLE note ADD COLUMN \(column) TEXT")
                    guard choices.chance(50) else { return }
                    try db.execute(
                        sql: "UPDATE note SET \(column) = ? WHERE id = ?",
                        arguments: ["v\(choices.serial)", choices.pick(0..<6)])
                }
            },
            .init("dropColumn") { db, choices in
                try write(db, []) { columns in
                    let gone = choices.pick(["mood", "body"])
                    guard columns.contains(gone) else { return }
                    try SyncEngine.removeCapture(db)
                    try db.execute(sql: "ALTER TABLE note DROP COLUMN \(gone)")
                }
            },
            .init("renameColumn") { db, choices in
                try write(db, []) { columns in
                    guard let title = columns.first(where: { ["title", "headline"].contains($0) }) else { return }
                    let other = title == "title" ? "headline" : "title"
                    try db.execute(sql: "ALTER TABLE note RENAME COLUMN \(title) TO \(other)")
                }
            },
        ]
    }

    private static var upheavals: [SimulatedApp.Act] {
        [
            .init("renameTable") { db, _ in
                guard try columns(of: "note", db).isEmpty else {
                    return try db.execute(sql: "ALTER TABLE note RENAME TO note_away")
                }
                try putBack(db)
            },
            .init("dropTriggers") { db, choices in
                let kind = choices.pick(["%", "%", "%\\_insert", "%\\_update", "%\\_delete"])
                let table = choices.pick(["note", "tag"])
                let triggers = try String.fetchAll(
                    db,
                    sql: """
                        SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?
                        AND name LIKE 'tidemark\\_capture\\_' || ? ESCAPE '\\' ORDER BY name
                        """, arguments: [table, kind])
                for trigger in triggers { try db.execute(sql: "DROP TRIGGER \"\(trigger)\"") }
            },
            .init("remake") { db, choices in
                try write(db, ["title", "body"]) { _ in
                    try db.execute(
                        sql: """
                            DROP TABLE note;
                            CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, body TEXT);
                            """)
                    guard choices.chance(50) else { return }
                    try db.execute(
                        sql: "INSERT INTO note VALUES (?, ?, NULL)",
                        arguments: [choices.pick(0..<6), "t\(choices.serial)"])
                }
            },
            .init("save") { db, _ in
                try write(db, ["title", "body"]) { _ in
                    try db.execute(
                        sql: "DELETE FROM note_backup; INSERT INTO note_backup SELECT id, title, body FROM note")
                }
            },
            .init("restoreTable") { db, _ in
                try write(db, []) { _ in
                    try db.execute(
                        sql: """
                            DROP TABLE note;
                            CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, body TEXT);
                            INSERT INTO note SELECT id, title, body FROM note_backup;
                            """)
                }
            },
        ]
    }

    // MARK: Parts

    /// Does something with the notes, where their table is there and has the columns.
    private static func write(_ db: Database, _ needed: [String], _ body: ([String]) throws -> Void) throws {
        let columns = try columns(of: "note", db)
        guard !columns.isEmpty, needed.allSatisfy(columns.contains) else { return }
        try body(columns.filter { $0 != "id" })
    }

    private static func columns(of table: String, _ db: Database) throws -> [String] {
        try String.fetchAll(db.cachedStatement(sql: "SELECT name FROM pragma_table_info(?)"), arguments: [table])
    }

    private static func putBack(_ db: Database) throws { try db.execute(sql: "ALTER TABLE note_away RENAME TO note") }

    /// The procedure of SQLite's manual for any other change of a table, with what a migration may write on its way.
    private static func rebuild(_ db: Database, _ columns: [String], _ choices: inout Choices) throws {
        let known = try self.columns(of: "note", db)
        let list = columns.map { "\($0) TEXT" }.joined(separator: ", ")
        let kept = (["id"] + columns.filter(known.contains)).joined(separator: ", ")
        try db.execute(
            sql: """
                CREATE TABLE note_new (id INTEGER PRIMARY KEY, \(list));
                INSERT INTO note_new (\(kept)) SELECT \(kept) FROM note;
                """)
        let value = "v\(choices.serial)"
        switch choices.pick(0..<5) {
        case 0, 1: break
        case 2: try db.execute(sql: "DELETE FROM note_new WHERE id = ?", arguments: [choices.pick(0..<6)])
        case 3:
            try db.execute(
                sql: "INSERT OR IGNORE INTO note_new (id, \(columns[0])) VALUES (?, ?)",
                arguments: [choices.pick(0..<6), value])
        default:
            try db.execute(
                sql: "UPDATE note_new SET \(columns[columns.count - 1]) = ? || '.' || id WHERE id % 2 = ?",
                arguments: [value, choices.pick(0..<2)])
        }
        try db.execute(sql: "DROP TABLE note; ALTER TABLE note_new RENAME TO note")
    }
}
