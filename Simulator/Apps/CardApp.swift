import GRDB
import Tidemark
package import TidemarkTesting

/// One card with two sides: as little as an app can be, so that all its worlds of some steps can be played.
package enum CardApp {
    package static var app: SimulatedApp {
        SimulatedApp(
            tables: [.table("card")], scopes: ["deck:1"],
            acts: [
                act("front", "UPDATE card SET front = ? WHERE id = 1"),
                act("back", "UPDATE card SET back = ? WHERE id = 1"),
                act("delete", "DELETE FROM card WHERE id = 1 AND ? IS NOT NULL"),
                act("insert", "INSERT OR IGNORE INTO card VALUES (1, ?, NULL)"),
            ]
        ) { db in try db.execute(sql: "CREATE TABLE card (id INTEGER PRIMARY KEY, front TEXT, back TEXT)") }
    }

    /// Prepared once: with the triggers on the table that takes longer than all else that an act does.
    private static func act(_ name: String, _ sql: String) -> SimulatedApp.Act {
        .init(name) { db, choices in
            try db.cachedStatement(sql: sql).execute(arguments: ["~\(choices.serial)"])
        }
    }
}
