import GRDB
import Tidemark
import TidemarkServer
package import TidemarkTesting

/// The server numbers the customers; until it has, orders refer to them by temporary ids, in a column and in a
/// document.
package enum OrderApp {
    package static var app: SimulatedApp {
        var app = SimulatedApp(
            tables: [
                .table("customer", ids: .server),
                .table("purchase", references: [.json("also", path: "$[*]", to: "customer")]),
            ],
            scopes: ["shop:1"],
            acts: [
                .init("addCustomer") { db, choices in
                    try db.act("INSERT INTO customer VALUES (?, ?)", [TemporaryID.integer(), "c\(choices.serial)"])
                },
                .init("renameCustomer") { db, choices in
                    try db.act(
                        "UPDATE customer SET name = ? WHERE id = \(customer)",
                        ["c\(choices.serial)", choices.pick(0..<3)])
                },
                .init("deleteCustomer") { db, choices in
                    let place = choices.pick(0..<3)
                    // Not every world enforces foreign keys.
                    try db.act("DELETE FROM purchase WHERE customer = \(customer)", [place])
                    try db.act("UPDATE purchase SET also = NULL WHERE also = \(alone)", [place])
                    try db.act("DELETE FROM customer WHERE id = \(customer)", [place])
                },
                .init("order") { db, choices in
                    try db.act(
                        "INSERT OR IGNORE INTO purchase VALUES (?, \(customer), ?, NULL)",
                        ["o\(choices.pick(0..<5))", choices.pick(0..<3), "w\(choices.serial)"])
                },
                .init("orderAtOnce") { db, choices in
                    let id = TemporaryID.integer()
                    try db.act("INSERT INTO customer VALUES (?, ?)", [id, "c\(choices.serial)"])
                    try db.act(
                        "INSERT OR IGNORE INTO purchase VALUES (?, ?, ?, NULL)",
                        ["o\(choices.pick(0..<5))", id, "w\(choices.serial)"])
                },
                .init("orderTogether", isGroup: true) { db, choices in
                    let id = TemporaryID.integer()
                    try db.act("INSERT INTO customer VALUES (?, ?)", [id, "c\(choices.serial)"])
                    // Unsent groups that share a record are one, and could be more than a node takes in a request.
                    try db.act(
                        "INSERT INTO purchase VALUES (?, ?, ?, NULL)", ["t\(choices.serial)", id, "w\(choices.serial)"])
                },
                .init("reassign") { db, choices in
                    try db.act(
                        "UPDATE purchase SET customer = \(customer) WHERE id = ?",
                        [choices.pick(0..<3), "o\(choices.pick(0..<5))"])
                },
                .init("shareOrder") { db, choices in
                    try db.act(
                        "UPDATE purchase SET also = \(alone) WHERE id = ?",
                        [choices.pick(0..<3), "o\(choices.pick(0..<5))"])
                },
                .init("shareAtOnce") { db, choices in
                    let id = TemporaryID.integer()
                    try db.act("INSERT INTO customer VALUES (?, ?)", [id, "c\(choices.serial)"])
                    try db.act(
                        "UPDATE purchase SET also = '[' || ? || ']' WHERE id = ?", [id, "o\(choices.pick(0..<5))"])
                },
                .init("cancel") { db, choices in
                    try db.act("DELETE FROM purchase WHERE id = ?", ["o\(choices.pick(0..<5))"])
                },
            ]
        ) { db in
            try db.execute(
                sql: """
                    CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);
                    CREATE TABLE purchase (
                        id TEXT PRIMARY KEY, customer INTEGER REFERENCES customer(id) ON DELETE CASCADE, what TEXT,
                        also TEXT);
                    """)
        }
        app.entities = [.state("customer", ids: .server)]
        app.finalInvariants = [
            .init("Nothing refers to a temporary id") { db in
                try Int.fetchOne(
                    db,
                    sql: """
                        SELECT (SELECT count(*) FROM customer WHERE id < 0) + count(*)
                        FROM purchase WHERE customer < 0 OR also LIKE '[-%'
                        """
                ) == 0
            }
        ]
        return app
    }

    /// One of the customers there are, counted from the oldest name.
    private static let customer = "(SELECT id FROM customer ORDER BY name LIMIT 1 OFFSET ?)"
    /// A document that names one.
    private static let alone = "(SELECT '[' || id || ']' FROM customer ORDER BY name LIMIT 1 OFFSET ?)"
}
