import GRDB
import Tidemark
import TidemarkServer
package import TidemarkTesting

/// Double entry: what one account gives another one gets, in one group. The server refuses some entries, and with each
/// of them its counterpart has to go, and what was noted on them.
package enum LedgerApp {
    package static var app: SimulatedApp {
        var app = SimulatedApp(
            tables: [.table("entry"), .table("note")], scopes: ["ledger:1"],
            acts: [
                .init("transfer", isGroup: true) { db, choices in
                    let (amount, from) = (choices.pick(1..<10), choices.pick(0..<3))
                    for (sign, account) in [(-1, from), (1, from + 1)] {
                        try db.act(
                            "INSERT INTO entry VALUES (?, ?, ?, ?)",
                            [
                                "\(choices.serial)\(sign < 0 ? "a" : "b")", choices.serial % 5, account, sign * amount,
                            ])
                    }
                },
                .init("correct", isGroup: true) { db, choices in
                    let (amount, transfer) = (choices.pick(1..<10), choices.pick(0..<5))
                    try db.act(
                        "UPDATE entry SET amount = CASE WHEN amount < 0 THEN -? ELSE ? END WHERE \(isWhole)",
                        [amount, amount, transfer])
                },
                .init("annotate") { db, choices in
                    try db.act(
                        "INSERT INTO note SELECT ?, id, ? FROM entry ORDER BY rowid DESC LIMIT 1",
                        ["\(choices.serial)n", "t\(choices.serial)"])
                },
                .init("cancel", isGroup: true) { db, choices in
                    try db.act("DELETE FROM entry WHERE \(isWhole)", [choices.pick(0..<5)])
                },
            ]
        ) { db in
            try db.execute(
                sql: """
                    CREATE TABLE entry (id TEXT PRIMARY KEY, transfer INTEGER, account INTEGER, amount INTEGER);
                    CREATE TABLE note (
                        id TEXT PRIMARY KEY, entry TEXT REFERENCES entry(id) ON DELETE CASCADE, words TEXT);
                    """)
        }
        app.rules = [
            EntityRule("entry") { edit in
                guard case .integer(let amount)? = edit.mine["amount"], amount > 0, amount % 4 == 0 else {
                    return .accept
                }
                return .reject(code: "amount_refused", detail: "No account takes fours.")
            }
        ]
        app.finalInvariants = [
            .init("What accounts give and get is the same") { db in
                try Int.fetchOne(db, sql: "SELECT coalesce(sum(amount), 0) FROM entry") == 0
            }
        ]
        return app
    }

    /// While pages come in, one entry of a pair may be here and the other not yet.
    private static let isWhole = """
        transfer = ? AND (SELECT count(*) FROM entry AS half WHERE rtrim(half.id, 'ab') = rtrim(entry.id, 'ab')) = 2
        """
}
