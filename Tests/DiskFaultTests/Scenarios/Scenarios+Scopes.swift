import GRDB
import Tidemark
import TidemarkServer
import TidemarkWire

/// Scopes that come and go, and schemas that grow.
extension Scenarios {
    private static let spreadOut = [some(3), some(3, scope: "w:b", from: 3), .sync("a"), .sync("b")]
    private static let move = Step.edit("a", "UPDATE task SET w = 'b', title = 'moved' WHERE id = 't1'")

    static let scopes: [Scenario] = [
        Scenario(
            name: "two scopes are filled", cast: .spread, prepare: Array(spreadOut.prefix(2)), script: [.sync("a")]),
        Scenario(
            name: "a row moves to another scope", cast: .spread, prepare: spreadOut,
            script: [move, .sync("a"), .sync("b")]),
        Scenario(
            name: "a row moves and comes back while the answer is lost", cast: .spread, prepare: spreadOut,
            script: [
                move, .sync("a", losing: .answer),
                .edit("a", "UPDATE task SET w = 'a', title = 'back' WHERE id = 't1'"),
                .sync("a"), .sync("b"),
            ]),
        Scenario(
            name: "access to a scope is lost and comes back, with edits in it", cast: .spread, prepare: spreadOut,
            script: [
                .edit("a", put("t4", "mine", w: "b") + put("m", "new", w: "b")), .edit("a", put("t1", "mine")),
                .withdraw("w:b"), .sync("a", expecting: .scopeForbidden), .grant("w:b"), .sync("a"), .sync("b"),
            ]),
        Scenario(
            name: "access is lost while a row moves", cast: .spread, prepare: spreadOut,
            script: [
                move, .withdraw("w:b"), .sync("a", expecting: .scopeForbidden), .grant("w:b"), .sync("a"), .sync("a"),
                .sync("b"),
            ]),
        Scenario(
            name: "a scope is left and followed again", cast: .spread,
            prepare: spreadOut + [.edit("a", put("t4", "mine", w: "b"))],
            script: [
                .follow("a", ["w:a"]), .ask("a", "leave") { try await $0.leave("w:b") },
                .follow("a", ["w:a", "w:b"]), .sync("a"), .sync("b"),
            ]),
        Scenario(
            name: "a scope is left for good", cast: .spread, prepare: spreadOut,
            script: [.follow("a", ["w:a"]), .ask("a", "leave") { try await $0.leave("w:b") }, .sync("a")]),
    ]

    private static let mood = "ALTER TABLE task ADD COLUMN mood TEXT DEFAULT 'calm'"
    private static let newer =
        inSync + [
            .upgrade("b"), .edit("b", "UPDATE task SET mood = 'merry ' || id"), .sync("b"), .sync("a"),
        ]
    private static let moods = ["SELECT id, w, mood FROM task"]

    static let schema: [Scenario] = [
        Scenario(
            name: "a column is added and fetched", prepare: newer, script: [.upgrade("a"), .sync("a")],
            migrations: [mood], moreQueries: moods),
        Scenario(
            name: "a column is added while edits wait", prepare: newer,
            script: [
                .edit("a", put("t1", "mine") + put("m", "new")), .sync("a", losing: .answer), .upgrade("a"),
                .edit("a", "UPDATE task SET mood = 'mine' WHERE id = 't2'"), .sync("a"), .sync("b"),
            ], migrations: [mood], moreQueries: moods),
        Scenario(
            name: "a migration fills its column", prepare: inSync,
            script: [.upgrade("a"), .sync("a"), .upgrade("b"), .sync("b")],
            migrations: [mood + "; UPDATE task SET mood = 'filled' WHERE id < 't3'"], moreQueries: moods),
        Scenario(
            name: "the first start, and the first edits", script: [.edit("a", put("m", "new")), .sync("a")],
            beginning: .nothing),
        Scenario(
            name: "a start with an edit on its way",
            prepare: inSync + [
                .edit("a", put("t1", "mine")), .sync("a", losing: .answer), .edit("a", put("m", "new")),
            ],
            script: [.sync("a")], beginning: .closed),
        Scenario(
            name: "rows that are there before capture",
            prepare: [.edit("a", put("m1", "old") + put("m2", "old"))], script: [.sync("a"), .sync("b")]),
        Scenario(
            name: "a comparison repairs a row that was changed behind capture's back",
            prepare: inSync + [
                Step(name: "flip a") { stage in
                    try await stage["a"].write { db in
                        try db.execute(sql: "INSERT INTO tidemark_applying VALUES (1)")
                        try db.execute(sql: "UPDATE task SET title = 'flipped' WHERE id = 't2'")
                        try db.execute(sql: "DELETE FROM tidemark_applying")
                    }
                }
            ], script: [.ask("a", "sync and verify") { _ = try await $0.verify(repairing: true) }]),
    ]
}
