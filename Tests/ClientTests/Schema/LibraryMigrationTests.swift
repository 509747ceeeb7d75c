import GRDB
import Testing

@testable import Tidemark

@Suite("A file that an older version has written")
struct LibraryMigrationTests {
    /// Has edits that await an id do so by the word of version 14.
    private static let fourteen = """
        UPDATE tidemark_blocked SET reason = 'unnamed' WHERE reason = 'awaiting_id';
        UPDATE tidemark_meta SET value = '14' WHERE key = 'schema';

        """

    /// Takes away what came with version 14.
    private static let thirteen = """
        DROP TABLE tidemark_sealed_run; UPDATE tidemark_meta SET value = '13' WHERE key = 'schema';

        """

    /// Takes away what came with version 13.
    private static let twelve =
        thirteen + """
            DROP VIEW IF EXISTS tidemark_state_note; DROP TABLE tidemark_first_capture;
            UPDATE tidemark_meta SET value = '12' WHERE key = 'schema';

            """

    /// Takes away what came with version 12.
    private static let eleven =
        twelve + """
            ALTER TABLE tidemark_table DROP COLUMN uncompared;
            UPDATE tidemark_meta SET value = '11' WHERE key = 'schema';

            """

    /// Makes of today's indexes two of version 10, spelled in another way.
    private static let ten =
        eleven + """
            DROP INDEX tidemark_operation_open; DROP INDEX tidemark_operation_finished;
            CREATE INDEX tidemark_operation_open ON tidemark_operation(scope, id)
              WHERE state IN ('sealed', 'resealed', 'replayed', 'losing');
            CREATE INDEX tidemark_operation_finished ON tidemark_operation(scope, finished_at)
              WHERE state IN ('applied', 'merged', 'deferred', 'outcome_unknown');
            UPDATE tidemark_meta SET value = '10' WHERE key = 'schema';

            """

    /// Takes away what came with version 9.
    private static let eight = """
        DROP VIEW tidemark_attachment; DROP TABLE tidemark_blob_change; DROP TABLE tidemark_blob;
        DROP TABLE tidemark_blob_file; UPDATE tidemark_meta SET value = '8' WHERE key = 'schema';

        """

    /// Makes of today's tables those of version 6: an operation's state was in three columns.
    private static let six =
        eleven + eight + """
            DROP VIEW IF EXISTS tidemark_state_note;
            DROP TABLE tidemark_history; ALTER TABLE tidemark_bootstrap DROP COLUMN total;
            DROP INDEX tidemark_operation_open; DROP INDEX tidemark_operation_rejected;
            DROP INDEX tidemark_operation_replay; DROP INDEX tidemark_operation_packable;
            DROP INDEX tidemark_operation_finished;
            ALTER TABLE tidemark_operation ADD COLUMN status TEXT;
            ALTER TABLE tidemark_operation ADD COLUMN again INTEGER;
            UPDATE tidemark_operation SET status = CASE state WHEN 'outcome_unknown' THEN 'settled' ELSE state END
              WHERE finished_at IS NOT NULL;
            ALTER TABLE tidemark_operation DROP COLUMN state;
            CREATE INDEX tidemark_operation_again ON tidemark_operation(scope, again) WHERE again IS NOT NULL;
            CREATE INDEX tidemark_operation_open ON tidemark_operation(scope, id) WHERE finished_at IS NULL;
            CREATE INDEX tidemark_operation_rejected ON tidemark_operation(id) WHERE status = 'rejected';
            CREATE INDEX tidemark_operation_finished ON tidemark_operation(finished_at) WHERE finished_at IS NOT NULL;
            UPDATE tidemark_meta SET value = '6' WHERE key = 'schema';
            """

    /// Makes of today's tables those of version 9.
    private static let nine = """
        DROP VIEW tidemark_attachment;
        ALTER TABLE tidemark_blob DROP COLUMN stored_at;
        \(LibrarySchema.attachmentView)
        UPDATE tidemark_meta SET value = '9' WHERE key = 'schema';
        """

    /// Makes of today's tables those of version 5, with its names.
    private static let five =
        six + """
            DROP TABLE tidemark_blocked;
            CREATE TABLE tidemark_held(
                id INTEGER PRIMARY KEY, entity TEXT NOT NULL, record TEXT NOT NULL, culprit_entity TEXT NOT NULL,
                culprit_record TEXT NOT NULL, UNIQUE (entity, record) ON CONFLICT REPLACE);
            CREATE INDEX tidemark_held_culprit ON tidemark_held(culprit_entity, culprit_record);
            CREATE TABLE tidemark_waiting(
                entity TEXT NOT NULL, record TEXT NOT NULL, parent_entity TEXT NOT NULL, parent TEXT NOT NULL,
                PRIMARY KEY (entity, record)) WITHOUT ROWID;
            CREATE INDEX tidemark_waiting_parent ON tidemark_waiting(parent_entity, parent);
            ALTER TABLE tidemark_known_version RENAME TO tidemark_ahead;
            ALTER TABLE tidemark_refetch RENAME TO tidemark_wanted;
            ALTER TABLE tidemark_quarantine RENAME TO tidemark_parked;
            ALTER TABLE tidemark_parked RENAME COLUMN move TO leaving;
            DROP INDEX tidemark_quarantine_move;
            CREATE INDEX tidemark_parked_leaving ON tidemark_parked(scope, leaving) WHERE leaving <> 0;
            ALTER TABLE tidemark_deleted_row RENAME TO tidemark_kept;
            DROP INDEX tidemark_deleted_row_record;
            CREATE INDEX tidemark_kept_record ON tidemark_kept(entity, record);
            ALTER TABLE tidemark_cascade RENAME TO tidemark_settle;
            ALTER TABLE tidemark_orphan RENAME TO tidemark_aside;
            ALTER TABLE tidemark_scope RENAME COLUMN scanning TO walking;
            ALTER TABLE tidemark_shadow_note RENAME COLUMN tidemark_routing_scope TO tidemark_place;
            UPDATE tidemark_meta SET value = '5' WHERE key = 'schema';
            """

    /// Takes away what came with the versions up to 5.
    private static let one = """
        DROP TABLE tidemark_manifest; DROP TABLE tidemark_manifested; DROP TABLE tidemark_inferred;
        DROP TABLE tidemark_confirmed;
        ALTER TABLE tidemark_table DROP COLUMN identity; ALTER TABLE tidemark_table DROP COLUMN columns;
        ALTER TABLE tidemark_table DROP COLUMN key_types; ALTER TABLE tidemark_table DROP COLUMN types;
        ALTER TABLE tidemark_scope DROP COLUMN deferred_until; ALTER TABLE tidemark_scope DROP COLUMN deferred_attempts;
        ALTER TABLE tidemark_scope DROP COLUMN deferred_clock; ALTER TABLE tidemark_scope DROP COLUMN deferred_detail;
        ALTER TABLE tidemark_scope DROP COLUMN deferred_hint; ALTER TABLE tidemark_scope DROP COLUMN attempts;
        ALTER TABLE tidemark_scope DROP COLUMN next_attempt; ALTER TABLE tidemark_settle DROP COLUMN version;
        UPDATE tidemark_meta SET value = '1' WHERE key = 'schema';
        """

    /// The library's tables and indexes with their columns, in no order.
    private func form(_ device: Device) async throws -> [String: Set<String>] {
        try await device.writer.read { db in
            let names = try String.fetchAll(
                db,
                sql: "SELECT name FROM sqlite_schema WHERE name LIKE 'tidemark\\_%' ESCAPE '\\' AND type <> 'trigger'")
            return try Dictionary(
                uniqueKeysWithValues: names.map { name in
                    let columns = try String.fetchAll(
                        db,
                        sql: """
                            SELECT name FROM pragma_table_info(?1) UNION SELECT name FROM pragma_index_info(?1)
                            UNION SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND name = ?1
                            """, arguments: [name])
                    return (name, Set(columns))
                })
        }
    }

    private func device() async throws -> Device {
        let directory = try TestDirectory()
        let device = try await Device(
            noteSchema, tables: ["note"], server: try Device.server(in: directory), in: directory)
        try await device.sql("INSERT INTO note (id, title) VALUES ('n', 'here')")
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'edited'")
        return device
    }

    @Test("takes today's form, whatever its version was", arguments: [1, 5, 6, 7, 8, 9, 10, 11, 12, 13])
    func form(version: Int) async throws {
        let device = try await device()
        let today = try await form(device)
        // This index came with version 8.
        if version < 8 { try await device.sql("DROP INDEX tidemark_quarantine_kept") }
        switch version {
        case 13: try await device.sql(Self.thirteen)
        case 12: try await device.sql(Self.twelve)
        case 11: try await device.sql(Self.eleven)
        case 10: try await device.sql(Self.ten)
        case 9: try await device.sql(Self.ten + Self.nine)
        case 8: try await device.sql(Self.ten + Self.eight)
        case 7:
            try await device.sql(Self.ten + Self.eight + "UPDATE tidemark_meta SET value = '7' WHERE key = 'schema'")
        case 6: try await device.sql(Self.six)
        default: try await device.sql(Self.five + (version == 1 ? Self.one : ""))
        }
        #expect(try await form(device) != today)
        try await device.engine().install()
        #expect(try await form(device) == today)
        #expect(try await device.rows("SELECT value FROM tidemark_meta WHERE key = 'schema'") == ["\"15\""])
    }

    @Test("an edit that awaits an id goes on waiting")
    func awaitingID() async throws {
        let device = try await device()
        try await device.sql(
            """
            INSERT INTO tidemark_blocked(entity, record, blocker_entity, blocker_record, reason)
            VALUES ('note', 'n', 'note', 'm', 'awaiting_id'), ('note', 'o', 'note', 'm', 'refused');
            """ + Self.fourteen)
        try await device.engine().install()
        let reasons = "SELECT record, reason FROM tidemark_blocked ORDER BY record"
        #expect(try await device.rows(reasons) == [#""n"|"awaiting_id""#, #""o"|"refused""#])
    }

    /// As version 12 kept rows that waited: each with a shadow.
    private static let shadowed = """
        INSERT INTO tidemark_shadow_note(
          id, title, body, rank, slug, tidemark_state, tidemark_bases, tidemark_mark, tidemark_since, tidemark_edited)
        SELECT id, title, body, rank, slug, 0, '{"\\u0001":0}', 1, 1, 0 FROM note;
        UPDATE note SET title = 'edited' WHERE id = 'b'; DELETE FROM note WHERE id = 'c';
        UPDATE tidemark_table SET uncompared = 'w:1';

        """

    @Test("rows of a first capture that waited for the server with shadows give way to its rows or are sent")
    func waiting() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let other = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "other")
        try await other.sql("INSERT INTO note (id, title) VALUES ('a', 'theirs')")
        try await other.sync()
        let rows = "INSERT INTO note (id, title) VALUES ('a', 'mine'), ('b', 'mine'), ('c', 'mine'), ('d', 'mine');"
        let device = try await Device(noteSchema + rows, tables: ["note"], server: server, in: directory)
        _ = try await device.installed()
        try await device.sql("DELETE FROM tidemark_first_capture;" + Self.shadowed + Self.twelve)
        try await device.sync()
        try await other.sync()
        let kept = "SELECT id, title FROM note ORDER BY id"
        #expect(try await device.rows(kept) == [#""a"|"theirs""#, #""b"|"edited""#, #""d"|"mine""#])
        #expect(try await other.rows(kept) == device.rows(kept))
        for place in ["tidemark_shadow_note", "tidemark_inferred", "tidemark_table WHERE uncompared IS NOT NULL"] {
            #expect(try await device.count(place) == 0)
        }
    }

    @Test("keeps what it held: edits that wait, rows off their table, the scan, and edits not sent yet")
    func contents() async throws {
        let device = try await device()
        try await device.sql(
            Self.five + """
                INSERT INTO tidemark_held(entity, record, culprit_entity, culprit_record)
                  VALUES ('note', 'a', 'note', 'p');
                INSERT INTO tidemark_waiting VALUES ('note', 'b', 'note', 'q');
                INSERT INTO tidemark_parked(entity, record, scope, reason, contends, fresh, data, leaving)
                  VALUES ('note', 'c', 'w:1', 'why', 0, 0, '{}', 2);
                """)
        try await device.writer.write { db in try LibrarySchema.install(db) }
        #expect(
            try await device.rows("SELECT record, blocker_record, reason FROM tidemark_blocked ORDER BY record")
                == [#""a"|"p"|"refused""#, #""b"|"q"|"awaiting_id""#])
        #expect(try await device.rows("SELECT record, move FROM tidemark_quarantine") == [#""c"|2"#])
        try await device.sql("DELETE FROM tidemark_quarantine; DELETE FROM tidemark_blocked")
        try await device.sync()
        #expect(try await device.count("tidemark_shadow_note") == 0)
        #expect(try await device.count("tidemark_operation WHERE state = 'applied'") == 2)
    }

    @Test("keeps how its operations stand")
    func states() async throws {
        let device = try await device()
        try await device.sql(
            Self.six + """
                INSERT INTO tidemark_operation(
                  scope, lane, number, entity, record, kind, members, sealed_at, finished_at, status, again)
                VALUES ('w:1', 'l', 1, 'note', 'a', 'upsert', '', 1, NULL, NULL, NULL),
                  ('w:1', 'l', 2, 'note', 'b', 'upsert', '', 1, NULL, NULL, 1),
                  ('w:1', 'l', 3, 'note', 'c', 'upsert', '', 1, NULL, NULL, 3),
                  ('w:1', 'l', 4, 'note', 'd', 'upsert', '', 1, 2, 'merged', NULL),
                  ('w:1', 'l', 5, 'note', 'e', 'upsert', '', 1, 2, 'settled', 1),
                  ('w:1', 'l', 6, 'note', 'f', 'upsert', '', 1, 2, 'conflict', NULL),
                  ('w:1', NULL, NULL, 'note', 'g', 'upsert', '', 1, 2, 'rejected', NULL),
                  ('w:1', 'l', 7, 'note', 'h', 'upsert', '', 1, 2, 'applied', 1),
                  ('w:1', 'l', 8, 'note', 'i', 'upsert', '', 1, 2, 'deferred', 3);
                UPDATE sqlite_sequence SET seq = 99 WHERE name = 'tidemark_operation';
                CREATE TABLE short (id INTEGER PRIMARY KEY); CREATE VIEW stale AS SELECT * FROM short; DROP TABLE short;
                """)
        try await device.writer.write { db in try LibrarySchema.install(db) }
        #expect(
            try await device.rows("SELECT record, state FROM tidemark_operation WHERE record <> 'n' ORDER BY record")
                == [
                    #""a"|"sealed""#, #""b"|"replayed""#, #""c"|"resealed""#, #""d"|"merged""#,
                    #""e"|"outcome_unknown""#, #""f"|"conflict""#, #""g"|"rejected""#, #""h"|"applied""#,
                    #""i"|"deferred""#,
                ])
        #expect(try await device.rows("SELECT seq FROM sqlite_sequence WHERE name = 'tidemark_operation'") == ["99"])
    }
}
