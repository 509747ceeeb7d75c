import GRDB
import Tidemark
package import TidemarkTesting

/// Its triggers write whenever rows change, also while the server's changes come in: to the row itself, to another
/// synced table, to a search index and to a count that is not synced.
package enum TriggerApp {
    package static var app: SimulatedApp {
        var app = SimulatedApp(tables: [.table("item"), .table("box")], scopes: ["store:1"], acts: acts) { db in
            try db.execute(sql: schema)
        }
        app.migrating = ["item": []]
        app.invariants = [
            .init("The search index is that of the items") { db in
                do {
                    try db.act("INSERT INTO search(search, rank) VALUES ('integrity-check', 1)", [])
                    return true
                } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT { return false }
            },
            .init("The items are counted") { db in
                try Int.fetchOne(db.cachedStatement(sql: "SELECT n - (SELECT count(*) FROM item) FROM tally")) == 0
            },
        ]
        return app
    }

    private static let schema = """
        CREATE TABLE box (id INTEGER PRIMARY KEY, label TEXT, items INTEGER NOT NULL DEFAULT 0);
        CREATE TABLE item (
            id INTEGER PRIMARY KEY, box INTEGER, title TEXT, touched INTEGER NOT NULL DEFAULT 0);
        CREATE TABLE tally (n INTEGER NOT NULL);
        INSERT INTO tally VALUES (0);
        CREATE VIRTUAL TABLE search USING fts5(title, content='item', content_rowid='id');

        CREATE TRIGGER touch AFTER UPDATE OF box, title ON item BEGIN
            UPDATE item SET touched = touched + 1 WHERE id = NEW.id;
        END;
        CREATE TRIGGER fill AFTER INSERT ON item BEGIN UPDATE box SET items = items + 1 WHERE id = NEW.box; END;
        CREATE TRIGGER empty AFTER DELETE ON item BEGIN UPDATE box SET items = items - 1 WHERE id = OLD.box; END;

        CREATE TRIGGER index_insert AFTER INSERT ON item BEGIN
            INSERT INTO search(rowid, title) VALUES (NEW.id, NEW.title);
            UPDATE tally SET n = n + 1;
        END;
        CREATE TRIGGER index_update AFTER UPDATE OF id, title ON item BEGIN
            INSERT INTO search(search, rowid, title) VALUES ('delete', OLD.id, OLD.title);
            INSERT INTO search(rowid, title) VALUES (NEW.id, NEW.title);
        END;
        CREATE TRIGGER index_delete AFTER DELETE ON item BEGIN
            INSERT INTO search(search, rowid, title) VALUES ('delete', OLD.id, OLD.title);
            UPDATE tally SET n = n - 1;
        END;
        """

    private static var acts: [SimulatedApp.Act] {
        [
            .init("addBox") { db, choices in
                try db.act(
                    "INSERT OR IGNORE INTO box (id, label) VALUES (?, ?)",
                    [choices.pick(0..<2), "l\(choices.serial)"])
            },
            .init("labelBox") { db, choices in
                try db.act("UPDATE box SET label = ? WHERE id = ?", ["l\(choices.serial)", choices.pick(0..<2)])
            },
            .init("deleteBox") { db, choices in
                try db.act("DELETE FROM box WHERE id = ?", [choices.pick(0..<2)])
            },
            .init("addItem") { db, choices in
                try db.act(
                    "INSERT OR IGNORE INTO item (id, box, title) VALUES (?, ?, ?)",
                    [choices.pick(0..<4), choices.pick(0..<2), "title \(choices.serial)"])
            },
            .init("titleItem") { db, choices in
                try db.act(
                    "UPDATE item SET title = ? WHERE id = ?", ["title \(choices.serial)", choices.pick(0..<4)])
            },
            .init("moveItem") { db, choices in
                try db.act(
                    "UPDATE item SET box = ? WHERE id = ?", [choices.pick(0..<2), choices.pick(0..<4)])
            },
            .init("deleteItem") { db, choices in
                try db.act("DELETE FROM item WHERE id = ?", [choices.pick(0..<4)])
            },
            .init("manyItems") { db, choices in
                for number in 0..<choices.pick([3, 5, 60]) {
                    try db.act(
                        """
                        INSERT INTO item (id, box, title) VALUES (?, 0, ?)
                        ON CONFLICT (id) DO UPDATE SET title = excluded.title
                        """, [number, "title \(choices.serial).\(number)"])
                }
            },
            .init("dropTriggers") { db, choices in
                let triggers = try String.fetchAll(
                    db,
                    sql: """
                        SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'item'
                        AND name GLOB 'tidemark_capture_*' ORDER BY name
                        """)
                for trigger in triggers { try db.execute(sql: "DROP TRIGGER \"\(trigger)\"") }
            },
        ]
    }
}
