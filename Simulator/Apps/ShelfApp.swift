import GRDB
import Tidemark
import TidemarkServer
package import TidemarkTesting

/// Boxes stand on shelves, each of which is a scope of its own, and are put from one on the other with what is in them.
package enum ShelfApp {
    package static var app: SimulatedApp {
        SimulatedApp(
            tables: [
                .table("box", scope: .column("shelf", prefix: "shelf:")),
                .table("item", scope: .column("shelf", prefix: "shelf:")),
            ],
            scopes: ["shelf:a", "shelf:b"],
            acts: [
                .init("addBox") { db, choices in
                    try db.execute(
                        sql: "INSERT INTO box VALUES (?, ?, ?)",
                        arguments: ["b\(choices.pick(0..<4))", choices.pick(["a", "b"]), "n\(choices.serial)"])
                },
                .init("labelBox") { db, choices in
                    try db.execute(
                        sql: "UPDATE box SET label = ? WHERE id = ?",
                        arguments: ["n\(choices.serial)", "b\(choices.pick(0..<4))"])
                },
                .init("moveBox") { db, choices in
                    let (box, shelf) = ("b\(choices.pick(0..<4))", choices.pick(["a", "b"]))
                    try db.execute(sql: "UPDATE box SET shelf = ? WHERE id = ?", arguments: [shelf, box])
                    try db.execute(sql: "UPDATE item SET shelf = ? WHERE box = ?", arguments: [shelf, box])
                },
                .init("deleteBox") { db, choices in
                    try db.execute(sql: "DELETE FROM box WHERE id = ?", arguments: ["b\(choices.pick(0..<4))"])
                },
                .init("addItem") { db, choices in
                    try db.execute(
                        sql: "INSERT OR IGNORE INTO item SELECT ?, shelf, id, ? FROM box WHERE id = ?",
                        arguments: [choices.pick(0..<5), "n\(choices.serial)", "b\(choices.pick(0..<4))"])
                },
                .init("moveItem") { db, choices in
                    try db.execute(
                        sql: "UPDATE item SET shelf = ? WHERE id = ?",
                        arguments: [choices.pick(["a", "b"]), choices.pick(0..<5)])
                },
                .init("renameItem") { db, choices in
                    try db.execute(
                        sql: "UPDATE item SET name = ? WHERE id = ?",
                        arguments: ["n\(choices.serial)", choices.pick(0..<5)])
                },
                .init("deleteItem") { db, choices in
                    try db.execute(sql: "DELETE FROM item WHERE id = ?", arguments: [choices.pick(0..<5)])
                },
            ]
        ) { db in
            try db.execute(
                sql: """
                    CREATE TABLE box (id TEXT PRIMARY KEY, shelf TEXT NOT NULL, label TEXT);
                    CREATE TABLE item (
                        id INTEGER PRIMARY KEY, shelf TEXT NOT NULL,
                        box TEXT REFERENCES box(id) ON DELETE SET NULL, name TEXT);
                    """)
        }
    }
}
