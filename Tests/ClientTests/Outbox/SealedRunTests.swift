import GRDB
import Testing
import TidemarkWire

@testable import Tidemark

@Suite("Rows of the first capture that are under way have no shadows until something happens to them (I2)")
struct SealedRunTests {
    private static let count = 200
    private static let lacked = "tidemark_shadow_item WHERE tidemark_state = 0 AND tidemark_bases IS NOT NULL"

    /// A device whose rows are sealed.
    private func sealed() async throws -> (Device, [OutboxEntry]) {
        let schema =
            ItemDevices.filled(Self.count) + "CREATE TABLE part (id TEXT PRIMARY KEY, item TEXT REFERENCES item);"
        let device = try await Device(schema, tables: ["item", "part"])
        let shape = try #require(try await device.installed()["item"])
        try await device.writer.write { db in _ = try FirstCapture.end(db, shape, in: Device.scope) }
        let sealed = try await device.seal()
        #expect(sealed.count == Self.count)
        #expect(try await device.count("tidemark_shadow_item") == 0)
        return (device, sealed)
    }

    /// Answers operations as a server does that takes them.
    ///
    /// - Parameters:
    ///   - remembered: what the process knows of the operations that it has sealed.
    ///   - verdict: of the last one, where it is another.
    private func answer(
        _ device: Device, _ entries: [OutboxEntry], remembered: [OutboxEntry], verdict: String? = nil
    ) async throws {
        let results = entries.enumerated().map { place, entry in
            let members = place == entries.count - 1 ? verdict : nil
            return """
                {"lane":"\(entry.key.lane)","number":\(entry.key.number),\(
                    members ?? #""status":"applied","version":\#(entry.key.number)"#)}
                """
        }
        let seeds = remembered.reduce(into: [:]) { $0[$1.key] = $1.seed }
        let schema = try await device.installed()
        let transaction = ApplyTransaction(
            answer: try Answer(body: Array(#"{"results":[\#(results.joined(separator: ","))]}"#.utf8)),
            scope: Device.scope, since: nil, acknowledged: [:], lane: "lane-0001", schema: schema,
            declarations: Declarations(), now: 2, seeds: seeds, leastBlock: 1)
        _ = try await Dependencies.current.use(device.writer, .write, at: .apply) { db in try transaction.run(db) }
    }

    @Test("an answer that takes all of them leaves none")
    func taken() async throws {
        let (device, sealed) = try await sealed()
        try await answer(device, sealed, remembered: sealed)
        #expect(try await device.count("tidemark_sealed_run") == 0)
        #expect(try await device.count("tidemark_shadow_item") == 0)
        #expect(try await device.rows("SELECT records FROM tidemark_manifested") == ["\(Self.count)"])
    }

    @Test("an answer to a process that did not seal them takes them one by one")
    func forgotten() async throws {
        let (device, sealed) = try await sealed()
        try await answer(device, sealed, remembered: [])
        #expect(try await device.count("tidemark_sealed_run") == 0)
        #expect(try await device.count("tidemark_shadow_item") == 0)
        #expect(try await device.rows("SELECT records FROM tidemark_manifested") == ["\(Self.count)"])
    }

    @Test("an answer to some of them leaves the others as rows that the server lacks", arguments: [false, true])
    func partly(isRepeated: Bool) async throws {
        let (device, sealed) = try await sealed()
        let some = Array(sealed.prefix(Self.count / 2))
        try await answer(device, isRepeated ? some + some : some, remembered: sealed)
        #expect(try await device.count("tidemark_sealed_run") == 0)
        #expect(try await device.count("tidemark_shadow_item") == Self.count / 2)
        #expect(try await device.count(Self.lacked) == Self.count / 2)
        try await answer(device, Array(sealed.suffix(Self.count / 2)), remembered: sealed)
        #expect(try await device.count("tidemark_shadow_item") == 0)
        #expect(try await device.rows("SELECT records FROM tidemark_manifested") == ["\(Self.count)"])
    }

    @Test("an operation that the server puts off or refuses leaves its row as one that the server lacks")
    func putOff() async throws {
        for verdict in [
            #""status":"deferred","after":1"#,
            #""status":"rejected","error":{"code":"forbidden","detail":"No.","hint":"Ask."}"#,
        ] {
            let (device, sealed) = try await sealed()
            try await answer(device, sealed, remembered: sealed, verdict: verdict)
            #expect(try await device.count("tidemark_sealed_run") == 0)
            #expect(try await device.rows("SELECT records FROM tidemark_manifested") == ["\(Self.count - 1)"])
            let schema = try await device.installed()
            let shape = try #require(schema["item"])
            let row = try await device.count("item WHERE id = 'r200'")
            let shadow = try await device.count("tidemark_shadow_item WHERE id = 'r200' AND tidemark_state = 0")
            // A refused row is taken away; one that is put off stays.
            #expect(row == shadow)
            let isLeft = try await device.writer.read { db in try FirstCapture.contains(db, shape, [.text("r200")]) }
            #expect(!isLeft)
        }
    }

    @Test("a table that the process does not name gets the shadows of its rows all the same")
    func unnamed() async throws {
        let (device, _) = try await sealed()
        let tables = try SyncedTable.resolve([.table("part")], scopes: [Device.scope])
        try await device.writer.write { db in
            let schema = try Installation.install(db, tables: tables, scopes: [Device.scope])
            #expect(schema["item"] == nil)
            try SealedRun.unfold(db, schema)
        }
        #expect(try await device.count("tidemark_sealed_run") == 0)
        #expect(try await device.count(Self.lacked) == Self.count)
    }

    @Test("a write while nothing was captured is no part of what was sent")
    func uncaptured() async throws {
        let (device, _) = try await sealed()
        let schema = try await device.installed()
        try await device.writer.write { db in
            try db.execute(
                sql: """
                    INSERT INTO tidemark_applying(flag) VALUES (1);
                    UPDATE item SET title = 'unseen' WHERE id = 'r007'; DELETE FROM item WHERE id = 'r008';
                    DELETE FROM tidemark_applying
                    """)
            try SealedRun.unfold(db, schema)
        }
        #expect(try await device.count(Self.lacked + " AND title LIKE 'row %'") == Self.count)
    }

    @Test("an edit that refers to one of them is not sealed before it in another lane")
    func referred() async throws {
        let (device, sealed) = try await sealed()
        try await device.sql("INSERT INTO part VALUES ('p1', 'r001')")
        let again = try await device.seal(lane: "lane-0002")
        #expect(again.map(\.key) == sealed.map(\.key))
        #expect(try await device.count("tidemark_sealed_run") == 0)
        #expect(try await device.count(Self.lacked) == Self.count)
    }

    @Test("a page of another device's meets them as rows that the server was thought to lack")
    func page() async throws {
        let (device, _) = try await sealed()
        try await device.apply(Device.page([Device.upsert("item", "r005", 9, #"{"title":"theirs","rank":9}"#)]))
        #expect(try await device.count("tidemark_sealed_run") == 0)
        #expect(try await device.count(Self.lacked) == Self.count - 1)
    }

    @Test("a table that is rebuilt meanwhile has them still under way, and nothing unseen")
    func rebuilt() async throws {
        let (device, _) = try await sealed()
        try await device.sql(
            """
            CREATE TABLE copy (id TEXT PRIMARY KEY, title TEXT, rank INTEGER); INSERT INTO copy SELECT * FROM item;
            DROP TABLE item; ALTER TABLE copy RENAME TO item
            """)
        _ = try await device.installed()
        #expect(try await device.count("tidemark_sealed_run") == 0)
        #expect(try await device.count("tidemark_inferred") == 0)
        #expect(try await device.count(Self.lacked) == Self.count)
    }

    @Test("a column that comes meanwhile is sent behind them")
    func newColumn() async throws {
        let (device, _) = try await sealed()
        try await device.sql("ALTER TABLE item ADD COLUMN color TEXT NOT NULL DEFAULT 'red'")
        _ = try await device.installed()
        #expect(try await device.count("tidemark_sealed_run") == 0)
        #expect(try await device.count(Self.lacked + " AND tidemark_mark > 0") == Self.count)
    }

    @Test("rows under way count as pending, edited or not")
    func counted() async throws {
        let (device, _) = try await sealed()
        try await device.sql("UPDATE item SET title = 'edited' WHERE id = 'r001'; DELETE FROM item WHERE id = 'r002'")
        let rows = try #require(try await device.engine().status().tables["item"])
        #expect(rows.total == Self.count - 1)
        #expect((rows.outgoing, rows.confirmed, rows.deletes) == (Self.count - 1, 0, 1))
    }

    @Test("a sealed run is dropped only whole and untouched, and else its rows get the shadows of sealed rows")
    func dropped() async throws {
        let (device, sealed) = try await sealed()
        let schema = try await device.installed()
        let shape = try #require(schema["item"])
        let run = try #require(sealed.first?.seed?.run)
        func isDropped(_ taken: Int, after edit: String = "") async throws -> Bool {
            try await device.writer.write { db in
                var isDropped = false
                try db.inSavepoint {
                    try db.execute(sql: edit)
                    isDropped = try SealedRun.drop(db, shape, run, taken: taken)
                    return .rollback
                }
                return isDropped
            }
        }
        #expect(try await isDropped(200))
        #expect(try await !isDropped(199))
        for edit in [
            "UPDATE item SET title = 'under way' WHERE id = 'r002'", "DELETE FROM item WHERE id = 'r002'",
            "INSERT INTO item VALUES ('r0021', 'between', 1)",
        ] { #expect(try await !isDropped(200, after: edit)) }
        try await device.sql("UPDATE item SET title = 'under way' WHERE id = 'r002'")
        try await device.writer.write { db in try SealedRun.unfold(db, schema) }
        let shadows = "tidemark_shadow_item WHERE tidemark_state = 0 AND tidemark_bases IS NOT NULL"
        #expect(try await device.count(shadows) == 200)
        #expect(try await device.count(shadows + " AND title <> 'under way' AND tidemark_mark IS NOT NULL") == 1)
        #expect(try await device.count("tidemark_sealed_run") == 0)
    }
}
