import Foundation
import Tidemark
import TidemarkServer
import TidemarkWire

/// The stories whose every call fails once.
enum Scenarios {
    static let all = exchanges + conflicts + refusals + schema + scopes + history + server

    /// Some projects and tasks, written by the server's own program.
    static func some(_ tasks: Int, scope: Scope = "w:a", from first: Int = 0) -> Step {
        .commit(scope) { changes in
            let w = Value.text(String(scope.name.dropFirst(2)))
            changes.upsert("project", id: "p", ["w": "a", "name": "Project"])
            for index in first..<(first + tasks) {
                changes.upsert(
                    "task", id: .init(stringLiteral: "t\(index)"),
                    ["w": w, "title": .text("Task \(index)"), "rank": .integer(Int64(index))])
            }
        }
    }

    /// Both devices are in sync on some rows.
    static let inSync: [Step] = [some(5), .sync("a"), .sync("b")]

    /// A text that is long enough to travel as patches.
    static let text = (0..<60).map { "Line \($0): the tide comes and goes.\n" }.joined()

    static func put(_ id: String, _ title: String, w: String = "a") -> String {
        """
        INSERT INTO task (id, w, title) VALUES ('\(id)', '\(w)', '\(title)')
        ON CONFLICT (id) DO UPDATE SET w = excluded.w, title = excluded.title;
        """
    }
}

/// Pushing and pulling.
extension Scenarios {
    static let exchanges: [Scenario] =
        [
            Scenario(name: "an empty device is filled, page by page", prepare: [some(8)], script: [.sync("a")]),
            Scenario(
                name: "an empty device that has edits already is filled",
                prepare: [some(5)], script: [.edit("a", put("m", "mine") + put("t1", "mine")), .sync("a"), .sync("b")]),
            Scenario(name: "one insert", prepare: inSync, script: [.edit("a", put("m", "new")), .sync("a")]),
            Scenario(
                name: "more edits than one request takes", prepare: inSync,
                script: [.edit("a", (0..<9).map { put("m\($0)", "new") }.joined()), .sync("a"), .sync("b")]),
            Scenario(
                name: "updates and deletes", prepare: inSync,
                script: [
                    .edit("a", "UPDATE task SET title = 'changed', rank = NULL WHERE id = 't1'"),
                    .edit("a", "DELETE FROM task WHERE id = 't2'"), .sync("a"), .sync("b"),
                ]),
            Scenario(
                name: "several pages of changes", prepare: inSync + [some(10, from: 3)],
                script: [.sync("a"), .sync("a")]),
            Scenario(
                name: "deletes of others", prepare: inSync + [.edit("b", "DELETE FROM task"), .sync("b")],
                script: [.sync("a")]),
            Scenario(
                name: "a parent goes, and its children with it",
                prepare: inSync + [.edit("b", "UPDATE task SET project = 'p'"), .sync("b"), .sync("a")],
                script: [.edit("a", "DELETE FROM project"), .sync("a"), .sync("b")]),
            Scenario(
                name: "a parent goes elsewhere, and its children here",
                prepare: inSync + [
                    .edit("a", "UPDATE task SET project = 'p' WHERE id < 't3'"), .edit("b", "DELETE FROM project"),
                    .sync("b"),
                ],
                script: [.sync("a"), .sync("b"), .sync("a")]),
            Scenario(
                name: "the key of a row changes", prepare: inSync,
                script: [.edit("a", "UPDATE OR IGNORE task SET id = 'u1' WHERE id = 't1'"), .sync("a"), .sync("b")]),
            Scenario(
                name: "a long text is patched on both sides",
                prepare: [.edit("a", put("m", "long") + "UPDATE task SET body = '\(text)'"), .sync("a"), .sync("b")],
                script: [
                    .edit("b", "UPDATE task SET body = replace(body, 'Line 7:', 'Line seven:')"), .sync("b"),
                    .edit("a", "UPDATE task SET body = replace(body, 'Line 50:', 'Line fifty:')"), .sync("a"),
                    .sync("b"),
                ]),
            Scenario(
                name: "the answer is lost, and the record edited again", prepare: inSync,
                script: [
                    .edit("a", put("t1", "first")), .sync("a", losing: .answer), .edit("a", put("t1", "second")),
                    .restart("a"), .sync("a"), .sync("b"),
                ]),
            Scenario(
                name: "the request is lost", prepare: inSync,
                script: [.edit("a", put("m", "new")), .sync("a", losing: .request), .sync("a")]),
            Scenario(
                name: "the answer is cut", prepare: inSync + [some(4, from: 8)],
                script: [.edit("a", put("m", "new")), .sync("a", losing: .cut), .restart("a"), .sync("a")]),
            Scenario(
                name: "the request comes twice", prepare: inSync,
                script: [.edit("a", put("m", "new") + put("t1", "x")), .sync("a", losing: .repeated), .sync("b")]),
            Scenario(
                name: "entries are only added to", cast: .events,
                prepare: [.edit("b", "INSERT INTO audit VALUES ('e0', 'a', 'x')"), .sync("b")],
                script: [
                    .edit("a", "INSERT OR IGNORE INTO audit VALUES ('e1', 'a', 'x'), ('e2', 'a', 'y')"), .sync("a"),
                    .edit("b", "INSERT OR IGNORE INTO audit VALUES ('e3', 'a', 'z')"), .sync("b"), .sync("a"),
                ]),
        ] + tickets

    private static let order = """
        INSERT INTO ticket VALUES (-2305843009213693953, 'a', 'parent', NULL) ON CONFLICT DO NOTHING;
        INSERT INTO ticket VALUES (-2305843009213693954, 'a', 'child', -2305843009213693953) ON CONFLICT DO NOTHING;
        """

    private static let tickets: [Scenario] = [
        Scenario(
            name: "the server makes the ids", cast: .tickets, script: [.edit("a", order), .sync("a"), .sync("b")]),
        Scenario(
            name: "ids come while their records are edited", cast: .tickets, prepare: [.edit("a", order)],
            script: [
                .sync("a", losing: .answer),
                .edit("a", "UPDATE ticket SET title = title || '!' WHERE title NOT LIKE '%!'"),
                .restart("a"), .sync("a"), .sync("b"),
            ]),
    ]
}
