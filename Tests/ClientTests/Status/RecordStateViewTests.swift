import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Views: how every record of a table stands, in one query", .hangLimit)
struct RecordStateViewTests {
    /// A table with a key of some kind.
    struct Kind: Sendable, CustomStringConvertible {
        var description: String
        var columns: String
        var key: String
        /// The nth record's key, as SQL writes it.
        var literal: @Sendable (Int) -> String

        /// SQL for whether a row is the nth.
        func isRecord(_ number: Int) -> String { "(\(key)) = (\(literal(number)))" }
    }

    static let kinds = [
        Kind(description: "text", columns: "id TEXT PRIMARY KEY", key: "id") { "'it''s n\($0)'" },
        Kind(description: "integer", columns: "id INTEGER PRIMARY KEY", key: "id") { "\($0 - 3)" },
        Kind(description: "UUID", columns: "id BLOB PRIMARY KEY", key: "id") {
            "x'00ff\($0)3e09f8b41d5a7c0fe7f80010203'"
        },
        Kind(description: "short blob", columns: "id BLOB PRIMARY KEY", key: "id") { "x'\($0)8fe'" },
        Kind(description: "text and integer", columns: "a TEXT, b INTEGER, PRIMARY KEY (b, a)", key: "a, b") {
            #"'"\#($0)"', 9007199254740993"#
        },
        Kind(description: "blob and number", columns: "a BLOB, b NUMERIC, PRIMARY KEY (a, b)", key: "a, b") {
            "x'0\($0)', \($0).5"
        },
        Kind(description: "anything", columns: "id PRIMARY KEY", key: "id") { $0 % 2 == 0 ? "'n\($0)'" : "\($0)" },
        Kind(description: "odd names", columns: #""the ""key""" TEXT PRIMARY KEY"#, key: #""the ""key""""#) {
            "'\($0)'"
        },
    ]

    /// What the view says of each row, and what `state(of:)` says, in the rows' order.
    static func states(
        _ device: Device, _ table: String = "t"
    ) async throws -> (view: [RecordState], one: [RecordState]) {
        try await device.writer.read { db in
            let rule = try #require(try TableRules.all(db)[table])
            let shape = try #require(try TableSchema.supported(db, table: table, rule: rule))
            let keys = shape.key.map(\.sql).joined(separator: ", ")
            let rows = try Query(db, "SELECT \(keys) FROM \(shape.sql) ORDER BY title").rows(db) {
                $0.cells(0..<shape.key.count)
            }
            let joined = try RecordState.fetchAll(
                db,
                sql: """
                    SELECT tidemark_state, tidemark_reason FROM \(shape.sql)
                    LEFT JOIN \(quoted("tidemark_state_" + table)) USING (\(keys)) ORDER BY title
                    """)
            return (
                joined,
                try rows.map { key in
                    let name = shape.recordID(key)?.text ?? KeyText(key).text
                    return try #require(try RecordState(db, shape, name, key: key))
                }
            )
        }
    }

    private static func pair(_ kind: Kind) async throws -> Pair {
        let rule = EntityRule("t") { edit in
            edit.proposed["note"] == "bad" ? .reject(code: "not_here", detail: "No, \(edit.isDelete).") : .accept
        }
        return try await Pair(
            .state("t", conflict: .manual), schema: "CREATE TABLE t (title INTEGER, note TEXT, \(kind.columns))",
            rules: [rule])
    }

    @Test("every state is told, with its reason, as state(of:) tells it, whatever the key is", arguments: kinds)
    func agrees(kind: Kind) async throws {
        let pair = try await Self.pair(kind)
        for number in 1...6 {
            try await pair.here.sql("INSERT INTO t (title, \(kind.key)) VALUES (\(number), \(kind.literal(number)))")
        }
        try await Device.sync(pair.here, pair.there)
        #expect(try await Self.states(pair.here).view == Array(repeating: .confirmed, count: 6))
        func edit(_ device: Device, _ number: Int, _ note: String) async throws {
            try await device.sql("UPDATE t SET note = '\(note)' WHERE \(kind.isRecord(number))")
        }
        try await edit(pair.there, 4, "theirs")
        try await pair.there.sync()
        try await edit(pair.here, 4, "mine")
        try await edit(pair.here, 5, "bad")
        try await edit(pair.here, 6, "bad")
        try await pair.here.sync()
        try await edit(pair.here, 3, "on its way")
        await pair.here.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await pair.here.sync() }
        try await edit(pair.here, 2, "later")
        try await edit(pair.here, 6, "once more")
        let refused = RecordState.rejected(reason: "No, false.")
        let (view, one) = try await Self.states(pair.here)
        #expect(view == [.confirmed, .pending, .sent, .undecided, refused, .pending])
        #expect(one == view)
        try await pair.here.sync()
        #expect(
            try await Self.states(pair.here).view == [
                .confirmed, .confirmed, .confirmed, .undecided, refused, .confirmed,
            ])
    }

    @Test("an edit that a refused record blocks says so, and so does one that waits for an id")
    func blocked() async throws {
        let directory = try TestDirectory()
        let rule = EntityRule("p") { $0.proposed["title"] == "bad" ? .reject(code: "no", detail: "No.") : .accept }
        let device = try await Device(
            """
            CREATE TABLE p (id TEXT PRIMARY KEY, title TEXT);
            CREATE TABLE t (id TEXT PRIMARY KEY, title TEXT, p TEXT REFERENCES p);
            """, tables: ["p", "t"], server: try Device.server(in: directory, rules: [rule]), in: directory)
        try await device.sql(
            "INSERT INTO p VALUES ('q', 'bad'); INSERT INTO t VALUES ('c', 'x', 'q'), ('d', 'y', NULL)")
        for _ in 0..<2 { try await device.sync() }
        let (view, one) = try await Self.states(device)
        #expect(view == [.blocked(reason: "It refers to p q, whose insert was refused."), .confirmed])
        #expect(one == view)
        try await device.writer.write { db in
            let names = ["d", "q"].map { RecordName(entity: "t", record: $0) }
            try BlockedEdits.block(db, names[0], by: Blocker(name: names[1], reason: .awaitingID))
        }
        let behind = RecordState.blocked(reason: "It waits for t q, which goes first.")
        #expect(try await Self.states(device).view.last == behind)
        #expect(try await Self.states(device).one.last == behind)
    }

    @Test("a write that no trigger saw is inferred until it was held against the server's row", arguments: kinds)
    func unseen(kind: Kind) async throws {
        let device = try await Self.pair(kind).here
        try await device.sql(
            "INSERT INTO t (title, \(kind.key)) VALUES (1, \(kind.literal(1))), (2, \(kind.literal(2)))")
        try await device.sync()
        try await device.writer.write { db in
            try SyncEngine.removeCapture(db)
            try db.execute(sql: "UPDATE t SET note = 'unseen' WHERE title = 2")
        }
        try await device.engine().install()
        #expect(try await Self.states(device).view == [.confirmed, .inferred])
        #expect(try await Self.states(device).one == [.confirmed, .inferred])
        try await device.sync()
        #expect(try await Self.states(device).view == [.confirmed, .confirmed])
    }

    @Test("a key that cannot travel is rejected in both, as far as it is of its column's type")
    func unsendable() async throws {
        let device = try await Device("CREATE TABLE t (id TEXT PRIMARY KEY, title INTEGER)", tables: ["t"])
        try await device.sql("INSERT INTO t VALUES ('', 1), ('a' || char(9) || 'b', 2), ('[\"x\"]', 3), (x'00', 4)")
        try await device.sync()
        let (view, one) = try await Self.states(device)
        #expect(view.prefix(3) == one.prefix(3))
        guard case .rejected = view[0], case .rejected = view[1] else { return #expect(Bool(false), "\(view)") }
        #expect(view[2] == .confirmed)
    }

    @Test("an engine's next look at a rebuilt, renamed or extended table finds the view as it has to be")
    func migrated() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        try await device.sync()
        for migration in [
            "ALTER TABLE note RENAME COLUMN title TO headline", "ALTER TABLE note ADD COLUMN more TEXT",
            "ALTER TABLE note DROP COLUMN rank", "ALTER TABLE note RENAME COLUMN id TO key",
            """
            CREATE TABLE other (key TEXT PRIMARY KEY, headline TEXT, body TEXT, slug TEXT);
            INSERT INTO other SELECT key, headline, body, slug FROM note; DROP TABLE note;
            ALTER TABLE other RENAME TO note
            """, "VACUUM",
        ] {
            try await device.writer.writeWithoutTransaction { db in
                if migration.contains("DROP COLUMN") { try SyncEngine.removeCapture(db) }
                try db.execute(sql: migration)
            }
            try await device.engine().install()
            let key =
                migration.contains(" id TO key") || migration.contains("other") || migration == "VACUUM" ? "key" : "id"
            try await device.sql("UPDATE note SET body = coalesce(body, '') || 'x'")
            #expect(
                try await device.rows("SELECT tidemark_state FROM note LEFT JOIN tidemark_state_note USING (\(key))")
                    == [#""pending""#], "\(migration)")
            try await device.sync()
        }
        let copy = device.directory.url.appending(path: "copy.sqlite").path
        try await device.writer.writeWithoutTransaction { db in try db.execute(sql: "VACUUM INTO '\(copy)'") }
        let copied = try DatabaseQueue(path: copy)
        #expect(
            try await copied.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM tidemark_state_note") } == 0)
    }

    @Test("it goes with a table that is released, and names nothing that is gone")
    func tableReleased() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.writer.write { db in try SyncedTable.release(db, beside: "w:2") }
        #expect(try await device.count("sqlite_master WHERE name LIKE 'tidemark_s%_note'") == 0)
        // SQLite refuses it while a view names what is not there.
        try await device.sql("ALTER TABLE note RENAME TO memo")
    }

    @Test("it goes with the library, and a table of another name keeps it")
    func removed() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sync()
        #expect(try await device.count("sqlite_master WHERE name = 'tidemark_state_note'") == 1)
        try await device.sql("ALTER TABLE note RENAME TO memo; ALTER TABLE memo RENAME TO note")
        #expect(try await device.count("sqlite_master WHERE name = 'tidemark_state_note'") == 1)
        try await device.writer.write { db in _ = try SyncEngine.uninstall(db) }
        #expect(try await device.count("sqlite_master WHERE name LIKE 'tidemark%'") == 0)
    }

    @Test("a join of 100,000 rows reads each list once, and looks the rows up in an index", arguments: kinds)
    func plan(kind: Kind) async throws {
        let device = try await Device("CREATE TABLE t (title INTEGER, \(kind.columns))", tables: ["t"])
        let plan = try await device.writer.read { db in
            try Row.fetchAll(
                db, sql: "EXPLAIN QUERY PLAN SELECT * FROM t LEFT JOIN tidemark_state_t USING (\(kind.key))"
            ).map { $0["detail"] as String }
        }
        // Names of subqueries differ between versions of SQLite.
        #expect(plan.contains { $0.contains("AUTOMATIC") && $0.hasPrefix("SEARCH") }, "\(plan)")
        #expect(plan.contains { $0.contains("tidemark_operation USING INDEX tidemark_operation_open") }, "\(plan)")
        #expect(plan.contains { $0.contains("tidemark_operation USING INDEX tidemark_operation_rejected") }, "\(plan)")
        #expect(!plan.contains { $0.contains("tidemark_operation_record") }, "\(plan)")
    }
}
