import GRDB
import Tidemark
import TidemarkServer
package import TidemarkTesting

/// Boxes stand on shelves, each of which is a scope of its own, and are put from one on the other with what is in them.
package enum ShelfApp {
    /// The same with items in a sub-scope of each shelf.
    package static var parted: SimulatedApp {
        var app = Self.app
        app.tables[1].subscope = "items"
        app.entities = [.state("item", subscope: "items")]
        return app
    }

    package static var app: SimulatedApp {
        SimulatedApp(
            tables: [
                .table("box", scope: .column("shelf", prefix: "shelf:")),
                .table("item", scope: .column("shelf", prefix: "shelf:")),
            ],
            scopes: ["shelf:a", "shelf:b"],
            acts: [
                .init("addBox") { db, choices in
                    try db.act(
                        "INSERT INTO box VALUES (?, ?, ?)",
                        ["b\(choices.pick(0..<4))", choices.pick(["a", "b"]), "n\(choices.serial)"])
                },
                .init("labelBox") { db, choices in
                    try db.act(
                        "UPDATE box SET label = ? WHERE id = ?", ["n\(choices.serial)", "b\(choices.pick(0..<4))"])
                },
                .init("moveBox") { db, choices in
                    let (box, shelf) = ("b\(choices.pick(0..<4))", choices.pick(["a", "b"]))
                    try db.act("UPDATE box SET shelf = ? WHERE id = ?", [shelf, box])
                    try db.act("UPDATE item SET shelf = ? WHERE box = ?", [shelf, box])
                },
                .init("deleteBox") { db, choices in
                    try db.act("DELETE FROM box WHERE id = ?", ["b\(choices.pick(0..<4))"])
                },
                .init("addItem") { db, choices in
                    try db.act(
                        "INSERT OR IGNORE INTO item SELECT ?, shelf, id, ? FROM box WHERE id = ?",
                        [choices.pick(0..<5), "n\(choices.serial)", "b\(choices.pick(0..<4))"])
                },
                .init("moveItem") { db, choices in
                    try db.act(
                        "UPDATE item SET shelf = ? WHERE id = ?", [choices.pick(["a", "b"]), choices.pick(0..<5)])
                },
                .init("renameItem") { db, choices in
                    try db.act("UPDATE item SET name = ? WHERE id = ?", ["n\(choices.serial)", choices.pick(0..<5)])
                },
                .init("deleteItem") { db, choices in
                    try db.act("DELETE FROM item WHERE id = ?", [choices.pick(0..<5)])
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
