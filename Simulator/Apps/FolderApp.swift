import GRDB
import Tidemark
package import TidemarkTesting

/// One folder and one note in it, which goes with it: as little as two records can be that refer to one another.
package enum FolderApp {
    package static var app: SimulatedApp {
        SimulatedApp(
            tables: [.table("folder"), .table("note")], scopes: ["desk:1"],
            acts: [
                .init("rename") { db, choices in
                    try db.act("UPDATE folder SET name = ? WHERE id = 1", ["~\(choices.serial)"])
                },
                .init("write") { db, choices in
                    try db.act("UPDATE note SET text = ? WHERE id = 1", ["~\(choices.serial)"])
                },
                .init("delete") { db, _ in try db.act("DELETE FROM folder WHERE id = 1", []) },
                .init("insert") { db, choices in
                    try db.act("INSERT OR IGNORE INTO folder VALUES (1, ?)", ["~\(choices.serial)"])
                },
                .init("put") { db, choices in
                    try db.act("INSERT OR IGNORE INTO note SELECT 1, id, ? FROM folder", ["~\(choices.serial)"])
                },
            ]
        ) { db in
            try db.execute(
                sql: """
                    CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT);
                    CREATE TABLE note (
                        id INTEGER PRIMARY KEY, folder INTEGER NOT NULL REFERENCES folder(id) ON DELETE CASCADE,
                        text TEXT);
                    """)
        }
    }
}
