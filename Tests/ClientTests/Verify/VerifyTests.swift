import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Verify: convergence that a device can prove (F2)")
struct VerifyTests {
    @Test("one flipped row among 100,000 is found and repaired, in few requests of few bytes", .hangLimit)
    func flipped() async throws {
        let directory = try TestDirectory()
        let server = try await noteServer(directory, notes: 100_000)
        let device = try await Device(verifySchema, tables: ["note"], server: server, in: directory, usesPool: true)
        try await device.sync()
        try await flip(device, "UPDATE note SET title = 'flipped' WHERE id = 'n77777'")
        let repaired = try await device.engine().verify(repairing: true)
        #expect(repaired.isClean && repaired.records == 100_000)
        #expect((repaired.differing, repaired.repaired) == (1, 1))
        #expect(try compared(repaired).differingIDs == ["n77777"])
        // Two exchanges and their declarations, two comparisons, four steps down and the record itself.
        #expect(repaired.roundTrips <= 9, "\(repaired.roundTrips)")
        #expect(repaired.bytesReceived < 20_000, "\(repaired.bytesReceived)")
        #expect(try await device.rows("SELECT title FROM note WHERE id = 'n77777'") == [#""Note 77777""#])
        #expect(try await device.count("tidemark_shadow_note") == 0)
        #expect(try await device.sealed().isEmpty)
    }

    @Test("a part may be said to hold any number of records")
    func counts() {
        #expect([-1, 0, 64, 65, 80, 81].map { DigestBisection.step($0) } == [1, 1, 1, 5, 5, 6])
        #expect(DigestBisection.step(.max) == .max / 16 + 1)
    }

    @Test(
        "rows that are missing, too many or different are found together, whatever kind the key is",
        arguments: [
            "id TEXT PRIMARY KEY", "id INTEGER PRIMARY KEY", "id ANY PRIMARY KEY",
            "id TEXT PRIMARY KEY, part TEXT DEFAULT 'x'",
        ])
    func kinds(key: String) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = "CREATE TABLE note (\(key), title TEXT);"
        let first = try await Device(schema, tables: ["note"], server: server, in: directory, name: "first")
        let device = try await Device(schema, tables: ["note"], server: server, in: directory, name: "second")
        try await first.writer.write { db in
            for index in 0..<700 {
                try db.execute(
                    sql: "INSERT INTO note (id, title) VALUES (?, ?)", arguments: [index * 7, "Note \(index)"])
            }
        }
        try await first.sync()
        try await device.sync()
        #expect(try await device.engine().verify().records == 700)
        try await flip(
            device,
            """
            DELETE FROM note WHERE id IN (7, 14, 21, 4893);
            INSERT INTO note (id, title) VALUES (8, 'extra'), (5000, 'last');
            UPDATE note SET title = 'other' WHERE id IN (700, 707, 70);
            INSERT INTO note (id, title) VALUES (1, 'extra')
            """)
        let report = try await device.engine().verify(repairing: true, discardingLocal: true)
        let ids = ["1", "14", "21", "4893", "5000", "7", "70", "700", "707", "8"]
        #expect(
            try compared(report).differingIDs.map { $0.trimmingCharacters(in: ["[", "]"]) }.sorted() == ids.sorted())
        #expect(report.isClean && report.repaired == 10)
        let all = "SELECT * FROM note ORDER BY id"
        #expect(try await device.rows(all) == first.rows(all))
        #expect(try await first.engine().verify().isClean)
    }

    @Test("keys of several columns")
    func composite() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = "CREATE TABLE place (x INTEGER, y TEXT, name TEXT, PRIMARY KEY (x, y)) WITHOUT ROWID;"
        let first = try await Device(schema, tables: ["place"], server: server, in: directory, name: "first")
        let device = try await Device(schema, tables: ["place"], server: server, in: directory, name: "second")
        try await first.writer.write { db in
            for index in 0..<5000 {
                try db.execute(
                    sql: "INSERT INTO place VALUES (?, ?, ?)",
                    arguments: [index / 10, "y\(index % 10)", "Place \(index)"])
            }
        }
        try await first.sync()
        try await device.sync()
        #expect(try await device.engine().verify().records == 5000)
        try await flip(device, "UPDATE place SET name = 'x' WHERE x = 77 AND y = 'y7'; DELETE FROM place WHERE x = 499")
        let report = try await device.engine().verify(repairing: true)
        #expect(report.isClean && report.differing == 11)
        #expect(try compared(report, "place").differingIDs.contains(#"[77,"y7"]"#))
    }

    @Test("every kind of value counts the same on both sides", arguments: 1...4 as ClosedRange<UInt64>)
    func values(seed: UInt64) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema =
            "CREATE TABLE note "
            + "(id TEXT PRIMARY KEY, \"any \"\"thing\"\"\", t TEXT, i INTEGER, r REAL, n NUMERIC, b BLOB);"
        let first = try await Device(schema, tables: ["note"], server: server, in: directory, name: "first")
        let second = try await Device(schema, tables: ["note"], server: server, in: directory, name: "second")
        var generator = SplitMix64(seed: seed)
        func random() -> UInt64 { generator.next() >> 11 }
        let hostile = [
            "0", "-0.0", "0.0", "1e300", "5e-324", "9e999", "-9e999", "9223372036854775807", "-9223372036854775808",
            "9007199254740993", "9007199254740992.0", "1e16", "0.0001", "0.00001", "123456789.125", "''",
            "'a' || char(0) || 'b'",
            "'\"\\/' || char(10) || char(13) || char(9) || char(1) || char(127)", "'é'", "'e' || char(769)",
            "char(128512)",
            "x''", "x'00ff'", "NULL", "'null'", "'1'", "'1.0'", "CAST(x'f09f9880' AS TEXT)", "1.5e-7",
            "100000000000000000000",
        ]
        for index in 0..<60 {
            let values = (0..<6).map { _ in
                random() % 5 == 0
                    ? "\(Double(random()) / Double(random() | 1))" : hostile[Int(random() % UInt64(hostile.count))]
            }
            try await first.sql("INSERT INTO note VALUES ('n\(index)', \(values.joined(separator: ", ")))")
        }
        let report = try await first.engine().verify()
        #expect(report.isClean && report.records == 60 && report.differing == 0, "\(report)")
        #expect(try await second.engine().verify().isClean)
        let all = "SELECT * FROM note ORDER BY id"
        #expect(try await second.rows(all) == first.rows(all))
        for column in ["\"any \"\"thing\"\"\"", "t", "i", "r", "n", "b"] {
            try await flip(
                second, "UPDATE note SET \(column) = CASE WHEN \(column) IS NULL THEN 1 ELSE NULL END WHERE id = 'n7'")
            let found = try await second.engine().verify(repairing: true)
            #expect(found.differing == 1 && found.isClean, "\(column)")
        }
    }

    @Test("a device that lacks columns verifies the others; one that has more compares their defaults")
    func columns() async throws {
        let directory = try TestDirectory()
        let server = try await noteServer(directory, notes: 40)
        let lean = try await Device(
            "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT);", tables: ["note"], server: server, in: directory,
            name: "lean")
        let rich = try await Device(
            """
            CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, done INTEGER, mood TEXT NOT NULL DEFAULT 'calm',
              rank REAL DEFAULT 0, seen TEXT DEFAULT CURRENT_TIMESTAMP, code TEXT DEFAULT 7, n INTEGER DEFAULT '12');
            """, tables: ["note"], server: server, in: directory, name: "rich")
        #expect(try await lean.engine().verify().isClean)
        let report = try await rich.engine().verify()
        #expect(report.isClean, "\(report)")
        #expect(try compared(report).gaps == [VerifyReport.Gap(column: "seen", reason: .computedDefault)])
        // Some records have the field now, the others still lack it.
        try await rich.sql("UPDATE note SET mood = 'merry', rank = 0.5 WHERE id IN ('n3', 'n4')")
        #expect(try await rich.engine().verify().isClean)
        #expect(try await lean.engine().verify().isClean)
        try await flip(rich, "UPDATE note SET mood = 'grim' WHERE id IN ('n4', 'n5')")
        let found = try await rich.engine().verify(repairing: true)
        #expect(try compared(found).differingIDs == ["n4", "n5"])
        #expect(found.isClean)
        #expect(try await rich.rows("SELECT mood FROM note WHERE id IN ('n4', 'n5')") == [#""merry""#, #""calm""#])
        try await flip(lean, "UPDATE note SET title = 'x' WHERE id = 'n9'")
        #expect(try await lean.engine().verify(repairing: true).repaired == 1)
    }

    @Test("edits are compared by what lies beneath them, and a repair leaves them alone")
    func edits() async throws {
        let directory = try TestDirectory()
        let server = try await noteServer(directory, notes: 20)
        let device = try await Device(verifySchema, tables: ["note"], server: server, in: directory)
        try await device.sync()
        try await flip(device, "UPDATE note SET title = 'flipped' WHERE id IN ('n5', 'n6')")
        let edits = """
            UPDATE note SET done = 1 WHERE id IN ('n1', 'n5'); DELETE FROM note WHERE id = 'n2';
            INSERT INTO note (id, title) VALUES ('mine', 'fresh'); UPDATE note SET id = 'renamed' WHERE id = 'n3';
            """
        let asking = AskingWire(device.wire) { try await device.sql(edits) }
        let engine = try SyncEngine(
            for: device.writer, tables: device.tables, scopes: [Device.scope], transport: asking)
        let report = try await engine.verify(repairing: true)
        #expect(report.isClean, "\(report)")
        #expect(try compared(report).differingIDs == ["n5", "n6"])
        try await device.sync()
        #expect(try await device.engine().verify().differing == 0)
        #expect(
            try await device.rows(
                "SELECT id, title, done FROM note WHERE id IN ('n1', 'n2', 'n5', 'n6', 'mine') ORDER BY id") == [
                    #""mine"|"fresh"|0"#, #""n1"|"Note 1"|1"#, #""n5"|"Note 5"|1"#, #""n6"|"Note 6"|0"#,
                ])
    }

    @Test("rows that are quarantined count")
    func quarantined() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        try await server.commit(to: "w:1") { changes in
            for id in ["a", "b", "c"] {
                changes.upsert("note", id: RecordID(id)!, ["slug": "same", "body": .text(id)])
            }
        }
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        let report = try await device.engine().verify()
        #expect(report.isClean && report.records == 3)
        #expect(try await device.count("tidemark_quarantine") == 2)
        try await device.sql(
            """
            UPDATE tidemark_quarantine SET data = CAST('{"slug":"same","body":"x"}' AS BLOB) WHERE record = 'b'
            """)
        let found = try await device.engine().verify(repairing: true)
        #expect(try compared(found).differingIDs == ["b"])
        #expect(found.isClean)
        #expect(
            try await device.rows("SELECT CAST(data AS TEXT) FROM tidemark_quarantine WHERE record = 'b'")[0].contains(
                #"\"body\":\"b\""#))
    }
}
