import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting

@testable import Tidemark

/// Triggers of the app's that are newer than the capture triggers run before those, and may write to the very row.
@Suite("An edit is captured whatever a newer trigger does to its row (I13)")
struct SelfWritingTriggerTests {
    struct Story: Sendable, CustomStringConvertible {
        var description: String
        var schema = "CREATE TABLE t (id TEXT PRIMARY KEY, a, b)"
        /// There and synced before the triggers come.
        var rows = ""
        var triggers: String
        var edits: String
    }

    static let stories: [Story] = [
        Story(
            description: "parent and child that make each other",
            schema: "CREATE TABLE t (id TEXT PRIMARY KEY, a, b); CREATE TABLE c (id TEXT PRIMARY KEY, t TEXT)",
            triggers: """
                CREATE TRIGGER p AFTER INSERT ON t BEGIN INSERT OR IGNORE INTO c VALUES ('c' || NEW.id, NEW.id); END;
                CREATE TRIGGER q AFTER INSERT ON c BEGIN INSERT OR IGNORE INTO t (id) VALUES (NEW.t); END
                """, edits: "INSERT INTO t VALUES ('1', 'mine', 0)"),
        Story(
            description: "a stub at the new key", rows: "INSERT INTO t VALUES ('1', 'x', 0)",
            triggers: """
                CREATE TRIGGER z AFTER UPDATE OF id ON t BEGIN INSERT OR IGNORE INTO t (id) VALUES (NEW.id); END
                """,
            edits: "UPDATE t SET id = '2' WHERE id = '1'"),
        Story(
            description: "a row in the place of a deleted one", rows: "INSERT INTO t VALUES ('1', 'x', 0)",
            triggers: """
                CREATE TRIGGER z AFTER DELETE ON t WHEN OLD.a <> 'trash'
                BEGIN INSERT INTO t VALUES (OLD.id, 'trash', 0); END
                """, edits: "DELETE FROM t WHERE id = '1'"),
        Story(
            description: "that row deleted, too", rows: "INSERT INTO t VALUES ('1', 'x', 0)",
            triggers: """
                CREATE TRIGGER z AFTER DELETE ON t WHEN OLD.a <> 'trash'
                BEGIN INSERT INTO t VALUES (OLD.id, 'trash', 0); END
                """, edits: "DELETE FROM t WHERE id = '1'; DELETE FROM t WHERE id = '1'"),
        Story(
            description: "a stub at the old key, deleted", rows: "INSERT INTO t VALUES ('1', 'x', 0)",
            triggers: """
                CREATE TRIGGER z AFTER UPDATE OF id ON t WHEN NEW.id <> OLD.id
                BEGIN INSERT INTO t VALUES (OLD.id, 'moved', 0); END
                """, edits: "UPDATE t SET id = '2' WHERE id = '1'; DELETE FROM t WHERE a = 'moved'"),
        Story(
            description: "a unique value that is taken", schema: "CREATE TABLE t (id TEXT PRIMARY KEY, a UNIQUE, b)",
            rows: "INSERT INTO t VALUES ('n', 'q', 0)",
            triggers: "CREATE TRIGGER z AFTER INSERT ON t BEGIN UPDATE OR IGNORE t SET a = NEW.a WHERE id = 'n'; END",
            edits: "INSERT INTO t VALUES ('1', 'x', 2)"),
        Story(
            description: "an upsert of the row",
            triggers: """
                CREATE TRIGGER z AFTER INSERT ON t WHEN NEW.a = 'x'
                BEGIN INSERT INTO t VALUES (NEW.id, 'y', 0) ON CONFLICT DO UPDATE SET a = 'up'; END
                """, edits: "INSERT INTO t VALUES ('1', 'x', 0)"),
        Story(
            description: "a row deleted as it comes",
            triggers: """
                CREATE TRIGGER z AFTER INSERT ON t WHEN NEW.a = 'tmp' BEGIN DELETE FROM t WHERE id = NEW.id; END
                """, edits: "INSERT INTO t VALUES ('7', 'tmp', 0); INSERT INTO t VALUES ('8', 'stays', 0)"),
        Story(
            description: "a row that gets another key as it comes",
            triggers: """
                CREATE TRIGGER z AFTER INSERT ON t WHEN NEW.id NOT LIKE 'k%'
                BEGIN UPDATE t SET id = 'k' || NEW.id WHERE id = NEW.id; END
                """, edits: "INSERT INTO t VALUES ('7', 'x', 0)"),
        Story(
            description: "a further key", rows: "INSERT INTO t VALUES ('1', 'x', 0)",
            triggers: """
                CREATE TRIGGER z AFTER UPDATE OF id ON t WHEN NEW.id NOT LIKE 'k%'
                BEGIN UPDATE t SET id = 'k' || NEW.id WHERE id = NEW.id; END
                """, edits: "UPDATE t SET id = '2' WHERE id = '1'"),
        Story(
            description: "a numbered row that SQLite gives its key",
            schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b)", rows: "INSERT INTO t VALUES (1, 'x', 0)",
            triggers: "CREATE TRIGGER z AFTER INSERT ON t BEGIN UPDATE t SET b = NEW.id WHERE id = NEW.id; END",
            edits: "INSERT INTO t (a) VALUES ('new'); INSERT OR IGNORE INTO t VALUES (1, 'ignored', 0)"),
        numberedAndDeleted(""), numberedAndDeleted(" AUTOINCREMENT"), numberedAndDeleted(" /* no autoincrement */"),
        numberedAndDeleted("", first: -7),
    ]

    private static func numberedAndDeleted(_ rule: String, first: Int = 1) -> Story {
        Story(
            description: "a numbered row that is deleted as it comes\(rule.lowercased()), behind \(first)",
            schema: "CREATE TABLE t (id INTEGER PRIMARY KEY\(rule), a, b)",
            rows: "INSERT INTO t VALUES (\(first), 'x', 0)",
            triggers: """
                CREATE TRIGGER z AFTER INSERT ON t WHEN NEW.a = 'tmp' BEGIN DELETE FROM t WHERE id = NEW.id; END
                """,
            edits: """
                INSERT INTO t (a) VALUES ('tmp'); INSERT INTO t (a) VALUES ('tmp'); INSERT INTO t (a) VALUES ('stays');
                INSERT INTO t (a) VALUES ('tmp')
                """)
    }

    @Test(
        "The user's values reach the other device, whatever a trigger makes of the row",
        arguments: stories, [false, true])
    func captured(story: Story, isTemporary: Bool) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let tables = story.schema.contains("TABLE c") ? ["t", "c"] : ["t"]
        let first = try await Device(story.schema, tables: tables, server: server, in: directory, name: "first")
        let second = try await Device(story.schema, tables: tables, server: server, in: directory, name: "second")
        try await first.sql(story.rows)
        try await first.sync()
        try await second.sync()
        let create = isTemporary ? "CREATE TEMP TRIGGER" : "CREATE TRIGGER"
        let triggers = story.triggers.replacing("CREATE TRIGGER", with: create)
        for device in isTemporary ? [first] : [first, second] {
            try await device.sql(triggers)
            try await device.sync()
        }
        try await first.sql(story.edits)
        let expected = try await rows(first)
        #expect(try await first.engine().status().rows.total == count(first, tables))
        for device in [first, second, first] { try await device.sync() }
        for device in [first, second] {
            #expect(try await rows(device) == expected)
            let status = try await device.engine().status()
            #expect(try await status.rows.total == count(device, tables))
            #expect((status.rows.outgoing, status.rejected) == (0, 0))
            #expect(try await device.engine().verify().isClean)
        }
    }

    private func rows(_ device: Device) async throws -> [String] {
        try await device.rows("SELECT * FROM t ORDER BY id")
    }

    private func count(_ device: Device, _ tables: [String]) async throws -> Int {
        var count = 0
        for table in tables { count += try await device.count(table) }
        return count
    }

    @Test(
        "a row that others have deleted goes, although a trigger of the app's fails on it",
        arguments: ["BEFORE", "AFTER"], [true, false])
    func archive(when: String, isSynced: Bool) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = """
            CREATE TABLE t (id TEXT PRIMARY KEY, a UNIQUE); CREATE TABLE gone (id TEXT PRIMARY KEY, a);
            CREATE TRIGGER z \(when) DELETE ON t BEGIN INSERT INTO gone VALUES (OLD.id, OLD.a); END
            """
        let tables = isSynced ? ["t", "gone"] : ["t"]
        let first = try await Device(schema, tables: tables, server: server, in: directory, name: "first")
        let second = try await Device(schema, tables: tables, server: server, in: directory, name: "second")
        try await first.sql(
            "INSERT INTO t VALUES ('1', 'x'), ('2', 'y'), ('3', 'z'); INSERT INTO gone VALUES ('2', 'old')")
        try await first.sync()
        try await second.sync()
        try await second.sql("DELETE FROM t WHERE id = '1'")
        // Two rows exchange a unique value.
        try await second.sql(
            """
            UPDATE t SET a = 'tmp' WHERE id = '2'; UPDATE t SET a = 'y' WHERE id = '3';
            UPDATE t SET a = 'z' WHERE id = '2'
            """)
        for device in [second, first, second, first] { try await device.sync() }
        for device in [first, second] {
            #expect(try await device.rows("SELECT * FROM t ORDER BY id") == [#""2"|"z""#, #""3"|"y""#])
            #expect(try await device.engine().verify().isClean)
            #expect(try await device.engine().status().rows.quarantined == 0)
        }
    }
}
