import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Names: of tables and columns, as SQLite has them")
struct TableNameTests {
    private func quote(_ name: String) -> String { "\"" + name.replacing("\"", with: "\"\"") + "\"" }

    private func schema(_ table: String) -> String {
        """
        CREATE TABLE \(quote(table)) (
          "the key" TEXT PRIMARY KEY, "a.b" TEXT, "\"\"" TEXT, "order" TEXT UNIQUE, "größe" INTEGER, "1,2" TEXT);
        """
    }

    @Test(
        "a table of any name is filled, edited, compared and repaired",
        arguments: [
            "Order Details", "group", "1st", "Größe", "a.b", "it's", "x-y,z", "[x]", "`t`", "%41", "a/b",
            "表", "a  b", String(repeating: "n", count: 128),
        ])
    func travels(table: String) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let one = try await Device(schema(table), tables: [table], server: server, in: directory, name: "a")
        let two = try await Device(schema(table), tables: [table], server: server, in: directory, name: "b")
        let name = quote(table)
        try await one.sql("INSERT INTO \(name) VALUES ('k', 'x', 'y', 'z', 1, NULL), ('l', 'x', 'y', 'w', 1, NULL)")
        for device in [one, two] { try await device.sync() }
        try await two.sql(
            "UPDATE \(name) SET \"a.b\" = 'new', \"\"\"\" = 'quote', \"größe\" = 2 WHERE \"the key\" = 'k'")
        try await one.sql("REPLACE INTO \(name) VALUES ('m', 'x', 'y', 'w', 1, NULL)")
        for device in [two, one, two] { try await device.sync() }
        for device in [one, two] {
            #expect(
                try await device.rows("SELECT * FROM \(name) ORDER BY 1") == [
                    #""k"|"new"|"quote"|"z"|2|NULL"#, #""m"|"x"|"y"|"w"|1|NULL"#,
                ])
            #expect(try await device.engine().verify().isClean)
        }
        try await two.sql(
            """
            INSERT INTO tidemark_applying VALUES (1); UPDATE \(name) SET "order" = 'flipped' WHERE "the key" = 'm';
            DELETE FROM tidemark_applying;
            """)
        let report = try await two.engine().verify(repairing: true)
        #expect(report.differing == 1 && report.repaired == 1)
        #expect(try await two.rows("SELECT \"order\" FROM \(name) ORDER BY 1") == [#""w""#, #""z""#])
    }

    @Test("a name with quotes and backslashes in it is escaped on its way out, and read on its way in")
    func quotes() async throws {
        let name = #"say "hi\o"#
        let device = try await Device(schema(name), tables: [name])
        try await device.sql("INSERT INTO \(quote(name)) (\"the key\") VALUES ('k')")
        _ = try await device.seal()
        #expect(try await device.sealed().first?.contains(#""entity":"say \"hi\\o""#) == true)
        let changes = ["1", "2"].map { Device.upsert(#"say \"hi\\o"#, $0, 1, #"{"a.b":"x","\"":"y"}"#) }
        try await device.apply(Device.page(changes))
        #expect(try await device.count("\(quote(name)) WHERE \"a.b\" = 'x' AND \"\"\"\" = 'y'") == 2)
    }

    @Test("a column that a migration adds is fetched, whatever the names")
    func backfilled() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let old = "CREATE TABLE \"Order Details\" (id TEXT PRIMARY KEY)"
        let one = try await Device(schema("x"), tables: ["x"], server: server, in: directory, name: "a")
        let two = try await Device(old, tables: ["Order Details"], server: server, in: directory, name: "b")
        let add = "ALTER TABLE \"Order Details\" ADD COLUMN \"unit, price\" INTEGER"
        try await one.sql(old + ";" + add)
        let engine = try SyncEngine(
            for: one.writer, tables: [.table("Order Details")], scopes: [Device.scope], transport: one.wire)
        try await engine.install()
        try await one.sql("INSERT INTO \"Order Details\" VALUES ('k', 7)")
        try await engine.syncNow()
        try await two.sync()
        try await two.sql(add)
        try await two.sync()
        #expect(try await two.rows("SELECT * FROM \"Order Details\"") == [#""k"|7"#])
    }

    @Test("tables whose names look like parts of each other's are captured side by side")
    func alike() async throws {
        let names = ["note", "note_evict0", "note_evict0_insert", "note.group", "note.mark", "insert_note"]
        let device = try await Device(
            names.map { "CREATE TABLE \(quote($0)) (id TEXT PRIMARY KEY, slug TEXT UNIQUE);" }.joined(), tables: names)
        for name in names { try await device.sql("INSERT INTO \(quote(name)) VALUES ('\(name)', 's')") }
        _ = try await device.seal()
        #expect(try await device.sealed().count == names.count)
        try await device.engine().install()
        try await device.sync()
        #expect(try await device.engine().status().pending == 0)
    }

    @Test("names that differ in letters beyond ASCII are two tables and two columns")
    func beyondASCII() async throws {
        let device = try await Device(
            """
            CREATE TABLE Ä (id TEXT PRIMARY KEY, Ö TEXT, ö TEXT); CREATE TABLE ä (id TEXT PRIMARY KEY);
            """, tables: ["Ä", "ä"])
        try await device.engine().install()
        try await device.sql("INSERT INTO Ä VALUES ('1', 'x', 'y'); INSERT INTO ä VALUES ('2')")
        try await device.sync()
        #expect(try await device.engine().verify().isClean)
        #expect(try await device.engine().verify().records == 2)
    }

    @Test("a table is named in whichever case, and its entity as the file spells it")
    func otherCase() async throws {
        let device = try await Device("CREATE TABLE MiXed (id TEXT PRIMARY KEY, v TEXT)", tables: ["mixed"])
        try await device.sql("INSERT INTO mixed VALUES ('1', 'x')")
        _ = try await device.seal()
        #expect(try await device.sealed().first?.contains(#""entity":"MiXed""#) == true)
        #expect(try await device.engine().state(of: "MIXED", id: "1") == .sent)
        try await device.sync()
        #expect(try await device.engine().state(of: "mixed", id: "1") == .confirmed)
    }

    @Test("changes of an entity in another case are applied to the table, and not passed over")
    func comesInOtherCase() async throws {
        let device = try await Device("CREATE TABLE MiXed (id TEXT PRIMARY KEY, v TEXT)", tables: ["MiXed"])
        let first = try await device.apply(
            Device.page([
                Device.upsert("mixed", "1", 1, #"{"v":"x"}"#), Device.upsert("MIXED", "2", 2, #"{"v":"y"}"#),
                Device.upsert("MiXed", "3", 3, #"{"v":"z"}"#), Device.upsert("other", "4", 4, #"{"v":"z"}"#),
            ]))
        #expect(first.applied == 3)
        try await device.apply(Device.page([Device.delete("mixED", "2", 5)], since: "T1", next: "T2"), since: "T1")
        #expect(try await device.rows("SELECT id, v FROM MiXed ORDER BY id") == [#""1"|"x""#, #""3"|"z""#])
    }

    @Test("two devices that spell a table in two cases agree, also about what was there before")
    func twoSpellings() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        func schema(_ name: String) -> String { "CREATE TABLE \(name) (id TEXT PRIMARY KEY, v TEXT)" }
        let one = try await Device(schema("MiXed"), tables: ["MiXed"], server: server, in: directory, name: "a")
        try await one.sql("INSERT INTO MiXed VALUES ('1', 'x'), ('2', 'y')")
        try await one.sync()
        let two = try await Device(schema("mixed"), tables: ["mixed"], server: server, in: directory, name: "b")
        try await two.sync()
        #expect(try await two.rows("SELECT id, v FROM mixed ORDER BY id") == [#""1"|"x""#, #""2"|"y""#])
        #expect(try await two.engine().verify().isClean)
        try await one.sql("UPDATE MiXed SET v = 'z' WHERE id = '1'; DELETE FROM MiXed WHERE id = '2'")
        try await one.sync()
        try await two.sync()
        #expect(try await two.rows("SELECT id, v FROM mixed") == [#""1"|"z""#])
        #expect(try await two.engine().verify().isClean)
    }

    @Test("two devices that spell columns in two cases fill the same ones, and tell of conflicts in their own words")
    func columnsInTwoCases() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let one = try await Device(
            "CREATE TABLE Note (Id TEXT PRIMARY KEY, Title TEXT, BODY TEXT)", tables: ["Note"], server: server,
            in: directory, name: "a")
        let two = try await Device(
            "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, body TEXT)", tables: ["note"], server: server,
            in: directory, name: "b")
        try await one.sql("INSERT INTO Note VALUES ('a', 'one', 'x'), ('b', 'one', 'x')")
        try await two.sql("INSERT INTO note VALUES ('c', 'two', 'y'), ('a', 'two', 'y')")
        for device in [one, two, one] { try await device.sync() }
        try await one.sql("UPDATE Note SET Title = 'edited by one' WHERE id IN ('b', 'c')")
        try await two.sql("UPDATE note SET body = 'edited by two' WHERE id IN ('b', 'c')")
        for device in [one, two, one, two] { try await device.sync() }
        try await one.sql("UPDATE Note SET Title = 'mine' WHERE id = 'b'")
        try await one.sync()
        try await two.sql("UPDATE note SET title = 'later' WHERE id = 'b'")
        for device in [two, one, two] { try await device.sync() }
        for device in [one, two] {
            #expect(
                try await device.rows("SELECT * FROM note ORDER BY id") == [
                    #""a"|"two"|"y""#, #""b"|"later"|"edited by two""#, #""c"|"edited by one"|"edited by two""#,
                ])
            #expect(try await device.engine().verify().isClean)
            #expect(try await device.engine().status().pending == 0)
        }
        let names = try await two.engine().conflicts().flatMap(\.fields).map(\.name)
        #expect(!names.isEmpty && Set(names).isSubset(of: ["title", "body"]))
    }

    @Test("a trigger is seen to write to a synced table however that is quoted")
    func quotedWrites() async throws {
        for target in [
            #""Order Details""#, "[Order Details]", "`Order Details`", "'Order Details'",
        ] {
            let device = try await Device(
                """
                CREATE TABLE "Order Details" (id TEXT PRIMARY KEY, v TEXT); CREATE TABLE note (id TEXT PRIMARY KEY);
                CREATE TABLE log (id TEXT, v TEXT);
                CREATE TRIGGER touch AFTER INSERT ON NOTE BEGIN UPDATE \(target) SET v = 1; END;
                CREATE TRIGGER kept AFTER INSERT ON note
                BEGIN INSERT INTO log VALUES ('update "Order Details" set', NEW.id); END;
                """, tables: ["note", "Order Details"])
            let warnings = try await device.engine().installed().status().warnings
            #expect(warnings.count == 1 && warnings[0].contains("'touch'"), "\(target): \(warnings)")
        }
    }
}

extension SyncEngine {
    fileprivate func installed() async throws -> SyncEngine {
        try await install()
        return self
    }
}
