import GRDB
import Tidemark
import TidemarkServer
package import TidemarkTesting

/// Each table has another policy: notes with long texts merge field by field, decisions are the app's to make, the
/// later edit of a mood stands, and a list that somebody has edited is not gone.
package enum NotebookApp {
    package static var app: SimulatedApp {
        var app = SimulatedApp(
            tables: [.table("note"), .table("decision", conflicts: .manual), .table("mood"), .table("list")],
            scopes: ["book:1"], acts: noteActs + otherActs
        ) { db in
            try db.execute(
                sql: """
                    CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT, body TEXT, seen INTEGER);
                    CREATE TABLE decision (id INTEGER PRIMARY KEY, what TEXT, why TEXT);
                    CREATE TABLE mood (id INTEGER PRIMARY KEY, face TEXT, word TEXT);
                    CREATE TABLE list (id INTEGER PRIMARY KEY, name TEXT, entries TEXT);
                    """)
        }
        app.entities = [
            .state("note", serverFields: ["seen"], patch: ["body"]),
            .state("decision", conflict: .manual),
            .state("mood", conflict: .lastEditWins, priority: 0),
            .state("list", deletes: .lose),
        ]
        app.onConflict = { conflict in
            // Decided alike wherever it is asked.
            conflict.fields.first?.mine?.hashText.map { $0 % 2 == 0 } ?? true ? .keepMine : .takeTheirs
        }
        return app
    }

    private static var noteActs: [SimulatedApp.Act] {
        [
            .init("addNote") { db, choices in
                let lines = (0..<60).map { "Line \($0) of what was written as number \(choices.serial).\n" }
                try db.act(
                    "INSERT OR IGNORE INTO note VALUES (?, ?, ?, NULL)",
                    [choices.pick(0..<3), "t\(choices.serial)", lines.joined()])
            },
            .init("titleNote") { db, choices in
                try db.act("UPDATE note SET title = ? WHERE id = ?", ["t\(choices.serial)", choices.pick(0..<3)])
            },
            .init("writeNote") { db, choices in
                try db.act(
                    "UPDATE note SET body = replace(body, 'Line ' || ? || ' ', ?) WHERE id = ?",
                    [choices.pick(0..<60), "Now \(choices.serial) Line 7 ", choices.pick(0..<3)])
            },
            .init("deleteNote") { db, choices in
                try db.act("DELETE FROM note WHERE id = ?", [choices.pick(0..<3)])
            },
        ]
    }

    private static var otherActs: [SimulatedApp.Act] {
        let tables = [("decision", "what", "why"), ("mood", "face", "word"), ("list", "name", "entries")]
        return tables.flatMap { table, first, second -> [SimulatedApp.Act] in
            [
                .init("\(table)Add") { db, choices in
                    try db.act(
                        "INSERT OR IGNORE INTO \(table) VALUES (?, ?, ?)",
                        [choices.pick(0..<2), "f\(choices.serial)", "s\(choices.serial)"])
                },
                .init("\(table)First") { db, choices in
                    try db.act(
                        "UPDATE \(table) SET \(first) = ? WHERE id = ?", ["f\(choices.serial)", choices.pick(0..<2)])
                },
                .init("\(table)Second") { db, choices in
                    try db.act(
                        "UPDATE \(table) SET \(second) = ? WHERE id = ?", ["s\(choices.serial)", choices.pick(0..<2)])
                },
                .init("\(table)Delete") { db, choices in
                    try db.act("DELETE FROM \(table) WHERE id = ?", [choices.pick(0..<2)])
                },
            ]
        }
    }
}

extension Value {
    /// The bytes of a text, added up.
    fileprivate var hashText: Int? {
        guard case .text(let text) = self else { return nil }
        return text.utf8.reduce(0) { $0 + Int($1) }
    }
}
