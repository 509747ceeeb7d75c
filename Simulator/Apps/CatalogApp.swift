import GRDB
import Tidemark
package import TidemarkTesting

/// It comes with rows: every device begins with the same kinds and shelves, which its user renames, moves and deletes.
package enum CatalogApp {
    package static var app: SimulatedApp {
        var app = SimulatedApp(
            tables: [
                .table("kind", scope: .constant("catalog:1")), .table("shelf", scope: .column("room", prefix: "room:")),
            ],
            scopes: ["catalog:1", "room:a", "room:b"], acts: kindActs + shelfActs
        ) { db in
            try db.execute(
                sql: """
                    CREATE TABLE kind (id TEXT PRIMARY KEY, title TEXT, color TEXT);
                    CREATE TABLE shelf (id INTEGER PRIMARY KEY, room TEXT NOT NULL, kind TEXT REFERENCES kind(id));
                    INSERT INTO kind VALUES ('food', 'Food', 'red'), ('rent', 'Rent', NULL), ('fun', 'Fun', 'green');
                    INSERT INTO shelf VALUES (1, 'a', 'food'), (2, 'a', 'rent'), (3, 'b', 'fun');
                    """)
        }
        app.seeded = ["kind", "shelf"]
        return app
    }

    private static let kinds = ["food", "rent", "fun", "more"]

    private static var kindActs: [SimulatedApp.Act] {
        [
            .init("addKind") { db, choices in
                try db.act(
                    "INSERT OR IGNORE INTO kind (id, title) VALUES (?, ?)", [choices.pick(kinds), "t\(choices.serial)"])
            },
            .init("replaceKind") { db, choices in
                try db.act(
                    "INSERT OR REPLACE INTO kind (id, title) VALUES (?, ?)",
                    [choices.pick(kinds), "t\(choices.serial)"])
            },
            .init("titleKind") { db, choices in
                try db.act("UPDATE kind SET title = ? WHERE id = ?", ["t\(choices.serial)", choices.pick(kinds)])
            },
            .init("colorKind") { db, choices in
                try db.act("UPDATE kind SET color = ? WHERE id = ?", ["c\(choices.serial)", choices.pick(kinds)])
            },
            .init("deleteKind") { db, choices in try db.act("DELETE FROM kind WHERE id = ?", [choices.pick(kinds)]) },
        ]
    }

    private static var shelfActs: [SimulatedApp.Act] {
        [
            .init("addShelf") { db, choices in
                try db.act(
                    "INSERT OR IGNORE INTO shelf VALUES (?, ?, ?)",
                    [choices.pick(1..<5), choices.pick(["a", "b"]), choices.pick(kinds)])
            },
            .init("moveShelf") { db, choices in
                try db.act("UPDATE shelf SET room = ? WHERE id = ?", [choices.pick(["a", "b"]), choices.pick(1..<5)])
            },
            .init("fillShelf") { db, choices in
                try db.act("UPDATE shelf SET kind = ? WHERE id = ?", [choices.pick(kinds), choices.pick(1..<5)])
            },
            .init("deleteShelf") { db, choices in try db.act("DELETE FROM shelf WHERE id = ?", [choices.pick(1..<5)]) },
        ]
    }
}
