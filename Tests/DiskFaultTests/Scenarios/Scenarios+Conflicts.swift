import GRDB
import Tidemark
import TidemarkServer
import TidemarkWire

/// Edits that did not know of each other, and those that the server refuses.
extension Scenarios {
    private static func both(_ mine: String, _ theirs: String) -> [Step] {
        [.edit("b", theirs), .sync("b"), .edit("a", mine), .sync("a"), .sync("b")]
    }

    private static let sameField = both(put("t1", "mine"), put("t1", "theirs"))
    private static let editAndDelete = both(put("t1", "mine"), "DELETE FROM task WHERE id = 't1'")

    static let conflicts: [Scenario] = [
        Scenario(
            name: "other fields of one record", prepare: inSync,
            script: both(put("t1", "mine"), "UPDATE task SET rank = 77 WHERE id = 't1'")),
        Scenario(name: "the same field, the later write", prepare: inSync, script: sameField),
        Scenario(
            name: "the same field, in the server's order", cast: .resolving(.lastWriteWins), prepare: inSync,
            script: sameField),
        Scenario(
            name: "the same field, the later edit", cast: .resolving(.lastEditWins), prepare: inSync,
            script: sameField),
        Scenario(
            name: "an edit of what was deleted", prepare: inSync,
            script: [
                .edit("b", "DELETE FROM task WHERE id = 't1'"), .sync("b"),
                .edit("a", "UPDATE task SET title = 'mine' WHERE id = 't1'"), .sync("a"),
            ]),
        Scenario(
            name: "an edit that revives what was deleted", cast: .resolving(.mergeFields, .lose), prepare: inSync,
            script: editAndDelete),
        Scenario(
            name: "the app decides", cast: .resolving(.manual), prepare: inSync,
            script: sameField + [
                .ask("a", "decide") { engine in
                    for conflict in try await engine.conflicts() { try await engine.resolve(conflict, with: .keepMine) }
                }, .sync("a"), .sync("b"),
            ]),
        Scenario(
            name: "the value of a unique column changes hands",
            prepare: inSync + [
                .edit("a", "UPDATE task SET slug = id WHERE id IN ('t1', 't2')"), .sync("a"), .sync("b"),
            ],
            script: [
                .edit(
                    "a",
                    """
                    UPDATE task SET slug = NULL WHERE id IN ('t1', 't2'); UPDATE task SET slug = 't2' WHERE id = 't1';
                    UPDATE task SET slug = 't1' WHERE id = 't2'
                    """), .sync("a"), .sync("b"),
            ]),
        Scenario(
            name: "two records want one value", prepare: inSync,
            script: both(
                "UPDATE task SET slug = 's' WHERE id = 't2'", "UPDATE task SET slug = 's' WHERE id = 't1'"),
            staysPending: true),
        Scenario(
            name: "a replaced row takes another's place",
            prepare: inSync + [.edit("a", "UPDATE task SET slug = 's' WHERE id = 't1'"), .sync("a"), .sync("b")],
            script: [
                .edit("a", "INSERT OR REPLACE INTO task (id, w, title, slug) VALUES ('t2', 'a', 'new', 's')"),
                .sync("a"), .sync("b"),
            ]),
    ]

    private static let poison = """
        INSERT OR REPLACE INTO project VALUES ('bad', 'a', ''), ('good', 'a', 'g');
        INSERT OR REPLACE INTO task (id, w, project, title)
        VALUES ('m1', 'a', 'bad', 'below'), ('m2', 'a', 'good', 'x');
        """

    static let refusals: [Scenario] = [
        Scenario(
            name: "a refused insert is let go of", cast: .strict, prepare: inSync,
            script: [
                .edit("a", poison), .sync("a"),
                .ask("a", "discard") { engine in
                    for operation in try await engine.rejectedOperations() { try await engine.discard(operation) }
                }, .sync("a"), .sync("b"),
            ]),
        Scenario(
            name: "a refused insert is mended", cast: .strict, prepare: inSync + [.edit("a", poison)],
            script: [
                .sync("a"),
                .ask("a", "retry") { engine in
                    for operation in try await engine.rejectedOperations() {
                        try await engine.retry(operation, changing: ["name": "named"])
                    }
                }, .sync("a"), .sync("b"),
            ]),
        Scenario(
            name: "a refused update", cast: .strict, prepare: inSync,
            script: [.edit("a", "UPDATE project SET name = ''"), .sync("a"), .sync("b")]),
        Scenario(
            name: "edits that go together", prepare: inSync, script: [group("g"), .sync("a"), .sync("b")]),
        Scenario(
            name: "edits that go together are refused together", cast: .strict, prepare: inSync,
            script: [group(""), .sync("a"), .sync("b")]),
        Scenario(
            name: "the answer to edits that go together is lost", prepare: inSync,
            script: [group("g"), .sync("a", losing: .answer), .edit("a", put("m1", "later")), .sync("a"), .sync("b")]),
    ]

    private static func group(_ name: String) -> Step {
        .ask("a", "group") { engine in
            try await engine.atomically { db in
                try db.execute(sql: "UPDATE project SET name = '\(name)'; \(put("m1", "with it"))")
                try db.execute(sql: "DELETE FROM task WHERE id = 't3'")
            }
        }
    }
}
