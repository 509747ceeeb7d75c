import GRDB
import Testing
import TidemarkServer

@testable import Tidemark

@Suite("Uncaptured: through changes of columns, and with scopes that go (I13)")
struct UncapturedColumnTests {
    private let world = UncapturedTests()

    @Test("a row that nobody has compared yet is counted through a change of columns too")
    func renamedMeanwhile() async throws {
        let (first, _) = try await world.pair()
        try await first.sql("DROP TABLE note; \(noteSchema)")
        try await first.engine().install()
        try await first.sql("ALTER TABLE note RENAME COLUMN body TO words")
        try await first.engine().install()
        let rows = try await first.engine().status().rows
        #expect((rows.confirmed, rows.deletes) == (0, 4))
        try await world.expectSum(first)
    }

    @Test(
        "a status needs no installation after a migration", arguments: ["ADD COLUMN more", "RENAME COLUMN id TO key"])
    func statusFirst(change: String) async throws {
        let (first, _) = try await world.pair()
        try await first.sql(UncapturedTests.rebuild(and: "UPDATE note SET title = 'new' WHERE id = 'n1'"))
        try await first.engine().install()
        try await first.sql("ALTER TABLE note \(change)")
        try await world.expectSum(first)
    }

    @Test("a column that gets another type has no edits where its values were only copied")
    func retyped() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let text = "CREATE TABLE place (id TEXT PRIMARY KEY, zip TEXT, name TEXT)"
        let newer = try await Device(text, tables: ["place"], server: server, in: directory, name: "newer")
        try await newer.sql("INSERT INTO place VALUES ('a', '007', 'A'), ('b', '08', 'B'), ('c', '9', 'C')")
        try await newer.sync()
        let older = try await Device(
            "CREATE TABLE place (id TEXT PRIMARY KEY, zip INTEGER, name TEXT)", tables: ["place"], server: server,
            in: directory, name: "older")
        try await older.sync()
        let rows = "SELECT id, zip, name FROM place ORDER BY id"
        #expect(try await older.rows(rows) == [#""a"|7|"A""#, #""b"|8|"B""#, #""c"|9|"C""#])
        try await older.sql("UPDATE place SET name = 'edited' WHERE id = 'b'")
        try await older.sql(
            """
            ALTER TABLE place RENAME TO gone; \(text); INSERT INTO place SELECT id, zip, name FROM gone;
            DROP TABLE gone; UPDATE place SET zip = 'Z' || zip WHERE id = 'c'
            """)
        for device in [older, newer, older] { try await device.sync() }
        let expected = [#""a"|"007"|"A""#, #""b"|"08"|"edited""#, #""c"|"Z9"|"C""#]
        for device in [older, newer] {
            #expect(try await device.rows(rows) == expected)
            #expect(try await device.engine().verify().isClean)
            #expect(try await device.engine().conflicts().isEmpty)
        }
    }

    @Test("a name that goes to another column is that one's", arguments: [false, true])
    func renamedAndAdded(isSwapped: Bool) async throws {
        let (first, second) = try await world.pair()
        let swap =
            isSwapped
            ? "ALTER TABLE note RENAME COLUMN title TO x; ALTER TABLE note RENAME COLUMN body TO title;"
                + "ALTER TABLE note RENAME COLUMN x TO body"
            : "ALTER TABLE note RENAME COLUMN title TO old; ALTER TABLE note ADD COLUMN title TEXT"
        for device in [first, second] {
            try await device.sql(swap)
            try await device.sync()
        }
        try await first.sync()
        // What each name held is the server's, and an exchange is undone by nobody.
        let rows = try await first.rows("SELECT id, title, body FROM note ORDER BY id")
        #expect(rows.first == (isSwapped ? #""n1"|"x"|"a""# : #""n1"|"a"|"x""#))
        #expect(try await second.rows("SELECT id, title, body FROM note ORDER BY id") == rows)
        try await first.sql("UPDATE note SET title = 'new' WHERE id = 'n1'")
        for device in [first, second, first] { try await device.sync() }
        #expect(try await second.rows("SELECT title FROM note WHERE id = 'n1'") == [#""new""#])
        for device in [first, second] { #expect(try await device.engine().verify().isClean) }
    }

    @Test(
        "a value that was written into a new column before its capture, and gives way, is listed (I13)",
        arguments: ["ADD COLUMN mood TEXT", "RENAME COLUMN title TO old; ALTER TABLE note ADD COLUMN title TEXT"])
    func listed(change: String) async throws {
        let (first, second) = try await world.pair()
        let column = change.hasPrefix("ADD") ? "mood" : "title"
        if column == "mood" { try await second.sql("ALTER TABLE note \(change); UPDATE note SET mood = 'theirs'") }
        try await second.sync()
        let theirs = try await second.rows("SELECT \(column) FROM note ORDER BY id")
        try await first.sql(
            "ALTER TABLE note \(change); UPDATE note SET \(column) = 'mine', body = 'too' WHERE id = 'n1'")
        for device in [first, second, first] { try await device.sync() }
        #expect(try await first.rows("SELECT \(column) FROM note ORDER BY id") == theirs)
        let conflicts = try await first.engine().conflicts()
        #expect(conflicts.map(\.record) == ["n1"])
        #expect(conflicts.first?.fields.map(\.name) == [column])
        #expect(conflicts.first?.fields.map(\.mine) == [.text("mine")])
        #expect(conflicts.first?.rule == .firstCapture)
        #expect(try await second.rows("SELECT body FROM note WHERE id = 'n1'") == [#""too""#])
        for device in [first, second] { #expect(try await device.engine().verify().isClean) }
    }

    @Test("an edit that was orphaned keeps what its table has no column for any more")
    func orphanedWithoutColumn() async throws {
        let (first, _) = try await world.pair()
        try await first.sql("UPDATE note SET title = 'mine', body = 'mine too' WHERE id = 'n1'")
        let away = try SyncEngine(
            for: first.writer, tables: first.tables, scopes: ["w:other"], transport: first.wire)
        try await away.leave(Device.scope)
        try await first.sql("ALTER TABLE note RENAME COLUMN title TO headline")
        for _ in 0..<2 {
            try await first.sync()
            let edits = try await first.engine().orphanedEdits()
            #expect(edits.map(\.fields) == [["title": .text("mine")]])
            #expect(edits.first?.reason == "The table has no column 'title' any more.")
        }
        #expect(try await first.rows("SELECT body FROM note WHERE id = 'n1'") == [#""mine too""#])
        #expect(try await first.engine().status().pending == 0)
    }

    @Test("a row that was deleted unseen, made again and orphaned comes back with its scope")
    func orphanedUnseen() async throws {
        let (first, second) = try await world.pair()
        try await first.sql(
            UncapturedTests.rebuild(
                and: "DELETE FROM note WHERE id = 'n1'; UPDATE note SET title = 'unseen' WHERE id = 'n2'"))
        try await first.engine().install()
        try await first.sql(
            "INSERT INTO note (id, title) VALUES ('n1', 'again'); UPDATE note SET body = 'seen' WHERE id = 'n2'")
        let away = try SyncEngine(
            for: first.writer, tables: first.tables, scopes: ["w:other"], transport: first.wire)
        try await away.leave(Device.scope)
        try await first.sync()
        try await second.sync()
        for device in [first, second] {
            #expect(
                try await device.rows("SELECT title, body FROM note WHERE id IN ('n1', 'n2') ORDER BY id") == [
                    #""again"|NULL"#, #""unseen"|"seen""#,
                ])
        }
    }

    @Test("a migration's values of a new column arrive, also where the first fill has not begun")
    func newColumnBeforeFilling() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "first")
        let second = try await Device(
            noteSchema + "; ALTER TABLE note ADD COLUMN mood TEXT", tables: ["note"], server: server, in: directory,
            name: "second")
        try await first.sql("INSERT INTO note (id, title) VALUES ('n1', 'a')")
        await first.wire.nextPage { _, _ in throw Wire.Lost() }
        await #expect(throws: SyncError.self) { try await first.sync() }
        #expect(try await first.count("tidemark_operation WHERE state = 'applied'") == 1)
        try await first.sql("ALTER TABLE note ADD COLUMN mood TEXT; UPDATE note SET mood = 'calm'")
        for device in [first, second] { try await device.sync() }
        for device in [first, second] {
            #expect(try await device.rows("SELECT mood FROM note") == [#""calm""#])
            #expect(try await device.engine().verify().isClean)
        }
    }

    @Test("a column that is spelled in another case by a migration is the same one")
    func respelled() async throws {
        let (first, second) = try await world.pair()
        try await first.sql("UPDATE note SET title = 'mine' WHERE id = 'n1'")
        try await first.sql("ALTER TABLE note RENAME COLUMN title TO Title")
        let report = try await first.engine().syncNow()
        #expect(report.pushed == 1)
        try await second.sync()
        for device in [first, second] {
            #expect(try await device.rows("SELECT title FROM note WHERE id IN ('n1', 'n2')") == [#""mine""#, #""b""#])
            #expect(try await device.engine().verify().isClean)
        }
    }

    /// A second device has given every note a mood; the first has no such column and is rebuilt.
    private func moods() async throws -> (first: Device, second: Device) {
        let (first, second) = try await world.pair()
        try await second.sql("ALTER TABLE note ADD COLUMN mood TEXT; UPDATE note SET mood = 'glad'")
        try await second.sync()
        try await first.sync()
        return (first, second)
    }

    private static let withMood = "body TEXT, rank INTEGER, slug TEXT UNIQUE, mood TEXT DEFAULT 'calm'"

    @Test("a rebuild that adds a column sends no default over the others' values, whatever else was edited unseen")
    func addedByRebuild() async throws {
        let (first, second) = try await moods()
        try await second.sql("UPDATE note SET title = 'theirs' WHERE id IN ('n2', 'n3')")
        try await second.sync()
        try await first.sql(
            UncapturedTests.rebuild(
                Self.withMood,
                and: "UPDATE note SET title = 'mine' WHERE id IN ('n1', 'n2'); DELETE FROM note WHERE id = 'n4'"))
        try await first.sync()
        #expect(try await first.engine().conflicts().map { $0.fields.map(\.name) } == [["title"]])
        try await first.sync()
        try await second.sync()
        for device in [first, second] {
            #expect(
                try await device.rows("SELECT id, title, mood FROM note ORDER BY id")
                    == [#""n1"|"mine"|"glad""#, #""n2"|"theirs"|"glad""#, #""n3"|"theirs"|"glad""#])
        }
        #expect(try await first.engine().status().pending == 0)
    }

    @Test(
        "a rebuild that rewrites too many rows sends nothing of them before it is confirmed, also with a new column",
        arguments: [false, true])
    func filledByRebuild(isMeant: Bool) async throws {
        let (first, second) = try await moods()
        let count = UncapturedScan.updateBound + 1
        try await first.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
            INSERT INTO note (id, title) SELECT 'm' || i, 'precious' FROM n
            """)
        for device in [first, second] { try await device.sync() }
        try await first.sql(
            UncapturedTests.rebuild(
                Self.withMood, and: "UPDATE note SET title = 'oops', mood = 'filled' WHERE id LIKE 'm%'"))
        for device in [first, first, second] { try await device.sync() }
        #expect(try await second.count("note WHERE title = 'precious' AND mood IS NULL") == count)
        let engine = try first.engine()
        #expect(try await engine.inferredEdits() == [InferredEdits(table: "note", updates: count, deletes: 0)])
        if isMeant { try await engine.confirmInferredEdits() } else { try await engine.discardInferredEdits() }
        for device in [first, second] { try await device.sync() }
        for device in [first, second] {
            // A value that nobody wrote is the column's default here, and nothing there.
            let rest = isMeant ? "title = 'oops' AND mood = 'filled'" : "title = 'precious' AND mood IS NOT 'filled'"
            #expect(try await device.count("note WHERE id LIKE 'm%' AND \(rest)") == count)
        }
        #expect(try await engine.status().pending == 0)
    }

    @Test("a column that comes while rows wait for their comparison is fetched for them too")
    func addedMeanwhile() async throws {
        let (first, second) = try await moods()
        try await second.sql("UPDATE note SET title = 'theirs' WHERE id = 'n3'")
        try await second.sync()
        try await first.sql(
            """
            CREATE TABLE fresh (id TEXT PRIMARY KEY, title TEXT, rank INTEGER, slug TEXT UNIQUE);
            INSERT INTO fresh (id, title) SELECT id, title FROM note; DROP TABLE note;
            ALTER TABLE fresh RENAME TO note; UPDATE note SET title = 'mine' WHERE id = 'n1'
            """)
        try await first.engine().install()
        try await first.sql("ALTER TABLE note ADD COLUMN mood TEXT DEFAULT 'calm'")
        for device in [first, first, second] { try await device.sync() }
        for device in [first, second] {
            #expect(
                try await device.rows("SELECT id, title, mood FROM note WHERE id < 'n4' ORDER BY id")
                    == [#""n1"|"mine"|"glad""#, #""n2"|"b"|"glad""#, #""n3"|"theirs"|"glad""#])
        }
        // Nobody has touched that row here.
        #expect(try await first.engine().conflicts().isEmpty)
        #expect(try await first.engine().status().pending == 0)
    }
}
