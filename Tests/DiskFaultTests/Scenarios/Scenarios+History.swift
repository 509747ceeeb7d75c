import GRDB
import Tidemark
import TidemarkServer
import TidemarkWire

/// Files that go back in time, and history that is let go of.
extension Scenarios {
    /// A server that keeps nothing longer than it must.
    private static let forgetful = Cast().with { ($0.retention, $0.deviceRetention) = (.zero, .zero) }
    private static let gone =
        inSync + [
            .edit("b", "DELETE FROM task WHERE id = 't1'; UPDATE task SET title = 'theirs' WHERE id = 't2'"),
            .sync("b"),
            Step(name: "wait") { _ in try await Task.sleep(for: .milliseconds(3)) }, .compact,
        ]
    private static let mixed = """
        UPDATE task SET title = 'mine' WHERE id = 't2'; DELETE FROM task WHERE id = 't3'; \(put("m", "new"))
        """

    private static let keep = Step(name: "back up") { $0.keep() }
    private static let putServerBack = Step(name: "restore") { try await $0.putBack(.server) }
    private static let putDeviceBack = Step(name: "restore a") { try await $0.putBack(.device) }

    static let history: [Scenario] = [
        Scenario(
            name: "an outdated device is filled anew, under its edits", cast: forgetful, prepare: gone,
            script: [.edit("a", mixed), .sync("a"), .sync("b")]),
        Scenario(
            name: "an outdated device is filled anew, with an edit on its way", cast: forgetful,
            prepare: inSync + [.edit("a", mixed), .sync("a", losing: .answer)] + gone.suffix(4),
            script: [.sync("a"), .sync("b")]),
        Scenario(
            name: "the server goes back in time",
            prepare: inSync + [keep, .edit("a", mixed), .sync("a"), .sync("b"), putServerBack],
            script: [.sync("a"), .sync("b"), .sync("a")]),
        Scenario(
            name: "the server goes back in time and has moved on",
            prepare: inSync + [
                keep, .edit("a", mixed), .sync("a"), .edit("a", put("n", "open")), putServerBack, some(6, from: 20),
            ],
            script: [.sync("a"), .sync("b"), .sync("a")]),
        Scenario(
            name: "the server begins with nothing",
            prepare: [keep] + inSync + [.edit("a", mixed), .sync("a"), .sync("b"), putServerBack],
            script: [.sync("a"), .sync("b"), .sync("a")]),
        Scenario(
            name: "a device goes back in time",
            prepare: inSync + [
                .edit("a", put("n", "open")), keep, .sync("a"), .edit("a", mixed), .sync("a"), putDeviceBack,
            ],
            script: [.edit("a", put("o", "again")), .sync("a"), .sync("b")]),
        Scenario(
            name: "two devices go on from one file",
            prepare: inSync + [
                .edit("a", put("n", "open")), .sync("a", losing: .request),
                Step(name: "clone") { try await $0.cloneDevice() },
            ],
            script: [
                .edit("a", put("o", "by a")), .edit("b", put("q", "by b")), .sync("a"), .sync("b"), .sync("a"),
            ]),
        Scenario(
            name: "a record that was deleted elsewhere is revived", cast: keeping,
            prepare: inSync + [.edit("b", "DELETE FROM task WHERE id = 't1'"), .sync("b"), .sync("a")],
            script: [
                .ask("a", "restore") { engine in
                    for record in try await engine.deletedRecords() { try await engine.restore(record) }
                }, .sync("a"), .sync("b"),
            ]),
    ]

    private static let keeping = Cast().with {
        $0.tables = [
            .table("project", scope: Cast.rule), .table("task", scope: Cast.rule, keepsDeleted: .seconds(86_400)),
        ]
    }
}

/// What the server does by itself, and several at once.
extension Scenarios {
    private static let renamed = Step.commit { changes in
        for index in 0..<5 { changes.upsert("task", id: .init(stringLiteral: "t\(index)"), ["title": "renamed"]) }
        changes.delete("task", id: "t1")
    }

    static let server: [Scenario] = [
        Scenario(
            name: "the server's own program writes", prepare: inSync, script: [renamed, some(3, from: 7), .sync("a")]),
        Scenario(
            name: "writes share a commit", prepare: inSync,
            script: [
                Step(name: "commits") { stage in
                    let server = try stage.server.running()
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for index in 0..<8 {
                            group.addTask {
                                try await server.commit(to: "w:a") { changes in
                                    changes.upsert("task", id: .init(stringLiteral: "c\(index)"), ["w": "a"])
                                }
                            }
                        }
                        try await group.waitForAll()
                    }
                }, .sync("a"), .sync("b"),
            ]),
        Scenario(
            name: "history is compacted", cast: Cast().with { $0.retention = .zero },
            prepare: inSync + [renamed, some(5), .sync("a")], script: [.compact, .sync("a"), .sync("b"), .compact]),
        Scenario(
            name: "a server starts", prepare: inSync + [renamed], script: [.restartServer, .sync("a")]),
        Scenario(
            name: "two devices sync at once", prepare: inSync,
            script: [
                .edit("a", put("m", "by a") + put("t1", "by a")), .edit("b", put("n", "by b") + put("t2", "by b")),
                Step(name: "sync both") { stage in
                    let engines = stage.devices.compactMap(\.engine)
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for engine in engines { group.addTask { try await engine.syncNow() } }
                        try await group.waitForAll()
                    }
                }, .sync("a"),
            ]),
        Scenario(
            name: "an engine runs by itself", cast: Cast().with { $0.isHasty = true }, prepare: inSync,
            script: [
                .edit("a", put("m", "new") + put("t1", "x")),
                Step(name: "run") { try await $0.runUntilSent() },
            ]),
    ]
}
