import GRDB
import Testing

@testable import Tidemark

// Schemas that a trigger's name, place or order says little about.
extension UncapturedTests {
    @Test("a table that is restored from a dump with its triggers, at the same place in the file, is compared")
    func restoredFromDump() async throws {
        let (first, second) = try await pair()
        // The second time it would stand where it stood, and so would its triggers.
        for title in ["older", "oldest"] {
            try await first.writer.write { db in
                let schema = try String.fetchAll(
                    db, sql: "SELECT sql FROM sqlite_master WHERE tbl_name = 'note' AND sql IS NOT NULL ORDER BY rowid")
                try db.execute(sql: "CREATE TEMP TABLE dump AS SELECT * FROM note; DROP TABLE note; \(schema[0])")
                try db.execute(sql: "INSERT INTO note SELECT * FROM dump; DROP TABLE dump")
                try db.execute(sql: "UPDATE note SET title = ? WHERE id = 'n1'", arguments: [title])
                for sql in schema.dropFirst() { try db.execute(sql: sql) }
            }
            try await first.sync()
            try await second.sync()
            #expect(try await second.rows(Self.all) == first.rows(Self.all))
            #expect(try await second.count("note WHERE title = '\(title)'") == 1)
            try await expectSum(first)
        }
    }

    @Test("a table whose old rows are kept under another name is captured under its own")
    func renamedAway() async throws {
        let (first, second) = try await pair()
        try await first.sql(
            "ALTER TABLE note RENAME TO note_old; \(noteSchema) INSERT INTO note SELECT * FROM note_old")
        try await first.sql("UPDATE note SET title = 'unseen' WHERE id = 'n1'; UPDATE note_old SET title = 'old'")
        try await expectSum(first)
        try await first.sync()
        try await first.sql("UPDATE note SET title = 'seen' WHERE id = 'n2'; UPDATE note_old SET title = 'older'")
        try await first.sync()
        try await second.sync()
        #expect(try await second.rows(Self.all) == first.rows(Self.all))
        #expect(try await second.count("note WHERE title LIKE '%seen'") == 2)
        try await expectSum(first)
    }

    @Test("a trigger of the app's that ends a row's other triggers hides no edit, though it came later")
    func ignoring() async throws {
        let (first, second) = try await pair()
        try await first.sql(
            """
            CREATE TRIGGER quiet AFTER UPDATE ON note BEGIN SELECT RAISE(IGNORE); END;
            CREATE TRIGGER gone AFTER DELETE ON note BEGIN SELECT RAISE(IGNORE); END;
            UPDATE note SET title = 'unseen' WHERE id = 'n1'; DELETE FROM note WHERE id = 'n2'
            """)
        try await first.sync()
        try await first.sql("UPDATE note SET title = 'seen' WHERE id = 'n3'; DELETE FROM note WHERE id = 'n4'")
        #expect(try await first.engine().syncNow().pushed == 2)
        try await second.sync()
        #expect(try await second.rows(Self.all) == first.rows(Self.all))
        #expect(try await second.count("note") == 2)
    }

    @Test("a REPLACE by the row's own number is captured: the row that had it is deleted")
    func replacedByNumber() async throws {
        let (first, second) = try await pair()
        try await first.sql(
            """
            INSERT OR REPLACE INTO note (rowid, id, title) SELECT rowid, 'n9', 'new' FROM note WHERE id = 'n1';
            UPDATE OR REPLACE note SET rowid = (SELECT rowid FROM note WHERE id = 'n2') WHERE id = 'n3'
            """)
        try await expectSum(first)
        try await first.sync()
        try await second.sync()
        #expect(try await second.rows("SELECT id FROM note ORDER BY id") == [#""n3""#, #""n4""#, #""n9""#])
        #expect(try await first.engine().verify().isClean)
        try await expectSum(first)
    }
}
