import GRDB
import Testing
import TidemarkWire

@testable import Tidemark

/// Two devices with the same rows, of which one has a blocked edit and so gives each row a shadow and looks at it by
/// itself.
@Suite("Rows of the first capture are sealed by their keys as they would be one by one (I2, I13)")
struct SeedRunTests {
    private static let texts = """
        CREATE TABLE item (
          id TEXT PRIMARY KEY, title TEXT COLLATE NOCASE, rank INTEGER, weight REAL, bytes BLOB, any_of);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
        INSERT INTO item SELECT 'r' || i,
          CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN 'a"b\\' || i ELSE 'Zeile ü ' || i END,
          i % 7, i / 3.0, NULL, CASE i % 3 WHEN 0 THEN i WHEN 1 THEN 'x' ELSE x'00' END FROM n;
        UPDATE item SET bytes = x'0102' WHERE rank < 5;
        """
    private static let numbers = """
        CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT, rank INTEGER);
        WITH RECURSIVE n(i) AS (SELECT -40 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
        INSERT INTO item SELECT i * 3, 'row ' || i, 1 FROM n;
        """
    private static let references = """
        CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT);
        CREATE TABLE part (id TEXT PRIMARY KEY, item TEXT REFERENCES item(id));
        INSERT INTO item VALUES ('i1', 'a'), ('i2', 'b'), ('i3', 'c');
        INSERT INTO part VALUES ('p1', 'i1'), ('p2', 'i3'), ('p3', NULL);
        """
    /// Without their places: a row that cannot travel is refused in its turn here, and behind the others there.
    private static let operations = """
        SELECT scope, lane, entity, record, kind, state, CAST(members AS TEXT), content, is_insert,
        min(edited_at, 6), sealed_at, code, detail, in_group FROM tidemark_operation ORDER BY entity, record
        """

    /// A device with its rows marked, as they are once the server's scope was seen to be empty.
    private func device(_ schema: String, _ tables: [String] = ["item"]) async throws -> Device {
        let device = try await Device(schema, tables: tables)
        let installed = try await device.installed()
        try await device.writer.write { db in
            let record = try ScopeRecord.read(db, Device.scope)
            let applier = try Applier(
                db, schema: installed, record: record, declarations: Declarations(), now: 5, keepsFirstCapture: true)
            _ = try applier.insertSeeds()
        }
        return device
    }

    /// Returns the outbox and the shadows, without the times of the app's edits, which differ from device to device.
    private func standing(_ device: Device, _ tables: [String]) async throws -> [String] {
        let shadows = try await tables.asyncFlatMap { table in
            try await device.rows(
                """
                SELECT id, tidemark_state, tidemark_bases, tidemark_mark IS NULL, min(tidemark_since, 6)
                FROM tidemark_shadow_\(table) ORDER BY id
                """)
        }
        return try await device.rows(Self.operations) + shadows
    }

    /// Seals, and expects of each hash that came with an operation to be that of the row which stands there.
    private func seal(_ device: Device, _ declared: Declarations = Declarations()) async throws -> [OutboxEntry] {
        let schema = try await device.installed()
        let sealed = try await device.seal(declarations: declared)
        return try await device.writer.read { db in
            try sealed.map { entry in
                var entry = entry
                guard let hash = entry.seed?.hash else { return entry }
                let (shape, id) = (try #require(schema[entry.entity]), try #require(RecordID(entry.record)))
                let row = try RecordTable(shape).row(db, try #require(shape.key(of: id)))
                #expect(try RowHash(shape).hash(PackedID.encode(id), #require(row)) == hash)
                entry.seed = nil
                return entry
            }
        }
    }

    /// Seals on both devices until nothing is left, and expects the same in both files.
    ///
    /// - Parameter edit: what the app does before.
    private func expectSame(
        _ schema: String, _ tables: [String] = ["item"], edit: String = "", rounds: Int = 1,
        declared: Declarations = Declarations()
    ) async throws -> [OutboxEntry] {
        let (runs, single) = (try await device(schema, tables), try await device(schema, tables))
        for device in [runs, single] { try await device.sql(edit) }
        // Where any edit is blocked, each is looked at by itself.
        try await single.sql(
            """
            INSERT INTO tidemark_blocked(entity, record, blocker_entity, blocker_record, reason)
            VALUES ('other', 'o1', 'other', 'o2', 'refused')
            """)
        var sealed: [OutboxEntry] = []
        for _ in 0..<rounds {
            let entries = try await seal(runs, declared)
            let others = try await seal(single, declared)
            #expect(entries.map(\.key) == others.map(\.key))
            #expect(try await runs.rows(Self.operations) == single.rows(Self.operations))
            let kept = try await runs.writer.read { db in
                try Outbox.open(db, scope: Device.scope, limit: 1000)
            }
            #expect(entries == kept)
            sealed = entries
            let installed = try await runs.installed()
            try await runs.writer.write { db in try SealedRun.unfold(db, installed) }
            if try await runs.count("tidemark_first_capture") == 0 {
                #expect(try await standing(runs, tables) == standing(single, tables))
            }
            // As if they were answered.
            for device in [runs, single] {
                try await device.sql("DELETE FROM tidemark_operation WHERE state = 'sealed'")
            }
        }
        return sealed
    }

    @Test("values of all types, in batches of a thousand")
    func texts() async throws {
        let last = try await expectSame(Self.texts, rounds: 2)
        #expect(last.count == 200)
        #expect(last.last?.key.number == 1200)
    }

    @Test("rows with numbers for keys")
    func numbers() async throws { #expect(try await expectSame(Self.numbers).count == 81) }

    @Test("a table whose rows refer to others, and the one that they refer to")
    func references() async throws {
        let entries = try await expectSame(Self.references, ["part", "item"])
        #expect(entries.map(\.record).firstIndex(of: "i3")! < entries.map(\.record).firstIndex(of: "p2")!)
    }

    @Test("rows that were edited, deleted or made since, and those that cannot travel")
    func mixed() async throws {
        let large = "CAST(zeroblob(1100000) AS TEXT)"
        let entries = try await expectSame(
            Self.numbers,
            edit: """
                UPDATE item SET title = 'edited' WHERE id = 3;
                DELETE FROM item WHERE id = 6;
                INSERT INTO item VALUES (1000, 'made', 2);
                DELETE FROM item WHERE id = 1000;
                INSERT INTO item VALUES (1001, 'made', 2);
                UPDATE item SET id = 2000 WHERE id = 9;
                """, rounds: 2)
        #expect(!entries.isEmpty)
        let entriesToo = try await expectSame(
            Self.numbers.replacing(
                "'row ' || i", with: "CASE i WHEN 2 THEN CAST(x'ff' AS TEXT) WHEN 4 THEN \(large) ELSE 'row' END"),
            rounds: 2)
        #expect(entriesToo.isEmpty)
    }

    static let declarations: [EntityDeclaration] = [
        EntityDeclaration("item", conflict: .lastEditWins), EntityDeclaration("item", direction: .pull),
        EntityDeclaration("item", kind: .events), EntityDeclaration("item", serverFields: ["rank"]),
    ]

    @Test("tables with rules of their own", arguments: declarations)
    func declared(_ entity: EntityDeclaration) async throws {
        _ = try await expectSame(Self.numbers, declared: Declarations(entities: [entity]))
    }

    @Test("a row that changed while no trigger stood goes out as it stands, and one that is gone does not")
    func unseen() async throws {
        let device = try await device(Self.numbers)
        let schema = try await device.installed()
        let triggers = try await device.rows("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for trigger in triggers { try await device.sql("DROP TRIGGER \(trigger)") }
        try await device.sql("UPDATE item SET title = 'ROW 1' WHERE id = 3; DELETE FROM item WHERE id = 6")
        let sealed = try await batch(of: device, schema)
        #expect(sealed.count == 80 && !sealed.contains { $0.record == "6" })
        let changed = try #require(sealed.first { $0.record == "3" })
        #expect(String(decoding: changed.members, as: UTF8.self).contains(#""title":"ROW 1""#))
        #expect(try await device.marked("item").isEmpty)
    }

    /// Seals one batch without another look at the app's schema.
    private func batch(of device: Device, _ schema: SyncSchema, limit: Int = 1000) async throws -> [OutboxEntry] {
        try await device.writer.write { db in
            try OutboxBatcher(
                db: db, schema: schema, scope: try ScopeRecord.read(db, Device.scope), declarations: Declarations(),
                lane: "lane-0001", now: 1, operationLimit: limit
            ).batch()
        }
    }

    @Test("a batch without room for a whole part goes on behind its last row")
    func room() async throws {
        let device = try await device(Self.texts)
        let schema = try await device.installed()
        var records: [String] = []
        while records.count < 1200 {
            let sealed = try await batch(of: device, schema, limit: 70).map(\.record)
            try await device.sql("DELETE FROM tidemark_operation")
            #expect(sealed.count == min(70, 1200 - records.count))
            records += sealed
            let left = try await device.rows("SELECT coalesce(sum(records), 0) FROM tidemark_first_capture")
            #expect(left == ["\(1200 - records.count)"])
            let view = try await device.count("tidemark_state_item")
            #expect(view == 1200 - records.count)
            guard !sealed.isEmpty else { return }
        }
        #expect(Set(records).count == 1200)
        #expect(try await device.count("tidemark_shadow_item") == 0)
        let sealed = "SELECT sum(last_operation - first_operation + 1), min(first), max(last) FROM tidemark_sealed_run"
        let ends = "SELECT count(*), min(id), max(id) FROM item"
        #expect(try await device.rows(sealed) == device.rows(ends))
    }

    @Test("towards the end of a long push a request takes fewer rows than the one before")
    func tapered() async throws {
        let device = try await device(Self.texts)
        let schema = try await device.installed()
        var counts: [Int] = []
        while counts.reduce(0, +) < 1200 {
            counts.append(try await batch(of: device, schema, limit: 20).count)
            try await device.sql("DELETE FROM tidemark_operation")
            guard counts.last != 0 else { break }
        }
        #expect(counts.reduce(0, +) == 1200)
        #expect(counts.prefix(48).allSatisfy { $0 == 20 })
        #expect(counts.dropLast().last == 5)
        #expect(counts == counts.sorted(by: >))
    }

    @Test("a run takes one statement for its rows, and few for their operations")
    func statements() async throws {
        let device = try await device(Self.texts)
        let schema = try await device.installed()
        let count = try await device.writer.write { db in
            var count = 0
            db.trace(options: .statement) { _ in count += 1 }
            defer { db.trace() }
            let batch = try OutboxBatcher(
                db: db, schema: schema, scope: try ScopeRecord.read(db, Device.scope), declarations: Declarations(),
                lane: "lane-0001", now: 1
            ).batch()
            #expect(batch.count == 1000 && batch.allSatisfy { $0.seed?.hash != nil })
            return count
        }
        #expect(count < 100)
    }
}

extension Sequence {
    fileprivate func asyncFlatMap<T>(_ body: (Element) async throws -> [T]) async rethrows -> [T] {
        var result: [T] = []
        for element in self { result += try await body(element) }
        return result
    }
}
