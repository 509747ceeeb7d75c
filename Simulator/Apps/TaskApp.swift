import GRDB
import Tidemark
import TidemarkServer
package import TidemarkTesting

package enum TaskApp {
    /// The same with tasks in a sub-scope, which sync and fail apart from the projects that they refer to.
    package static var parted: SimulatedApp {
        var app = Self.app
        app.tables[1].subscope = "work"
        app.entities = [.state("task", subscope: "work")]
        return app
    }

    package static var app: SimulatedApp {
        SimulatedApp(
            tables: [.table("project"), .table("task")], scopes: ["w:1"],
            acts: [
                .init("addProject") { db, choices in
                    try db.act(
                        "INSERT INTO project VALUES (?, ?, ?)",
                        ["p\(choices.pick(0..<3))", "n\(choices.serial)", "s\(choices.pick(0..<3))"])
                },
                .init("replaceProject") { db, choices in
                    try db.act(
                        "INSERT OR REPLACE INTO project VALUES (?, ?, ?)",
                        ["p\(choices.pick(0..<3))", "n\(choices.serial)", "s\(choices.pick(0..<3))"])
                },
                .init("renameProject") { db, choices in
                    try db.act(
                        "UPDATE project SET name = ? WHERE id = ?", ["n\(choices.serial)", "p\(choices.pick(0..<3))"])
                },
                .init("moveSlug") { db, choices in
                    try db.act(
                        "UPDATE OR REPLACE project SET slug = ? WHERE id = ?",
                        ["s\(choices.pick(0..<3))", "p\(choices.pick(0..<3))"])
                },
                .init("deleteProject") { db, choices in
                    try db.act("DELETE FROM project WHERE id = ?", ["p\(choices.pick(0..<3))"])
                },
                .init("writeTask") { db, choices in
                    try db.act(
                        """
                        INSERT INTO task (id, project, title) VALUES (?, (SELECT id FROM project WHERE id = ?), ?)
                        ON CONFLICT (id) DO UPDATE SET title = excluded.title
                        """, [choices.pick(0..<5), "p\(choices.pick(0..<3))", "t\(choices.serial)"])
                },
                .init("setBody") { db, choices in
                    try db.act("UPDATE task SET body = ? WHERE id = ?", ["b\(choices.serial)", choices.pick(0..<5)])
                },
                .init("deleteTask") { db, choices in
                    try db.act("DELETE FROM task WHERE id = ?", [choices.pick(0..<5)])
                },
                .init("renumberTask") { db, choices in
                    let task = choices.pick(0..<5)
                    try db.act("UPDATE OR IGNORE task SET id = ? WHERE id = ?", [task + 1, task])
                },
            ]
        ) { db in
            try db.execute(
                sql: """
                    CREATE TABLE project (id TEXT PRIMARY KEY, name TEXT NOT NULL, slug TEXT UNIQUE);
                    CREATE TABLE task (
                        id INTEGER PRIMARY KEY, project TEXT REFERENCES project(id) ON DELETE CASCADE,
                        title TEXT, body TEXT);
                    """)
        }
    }
}
