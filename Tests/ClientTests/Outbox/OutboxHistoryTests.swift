import Foundation
import GRDB
import Testing
import TidemarkCore
import TidemarkGzip
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Operations that the server took are kept in compressed blocks (I11)")
struct OutboxHistoryTests {
    /// Blocks of one operation and more.
    private static var eager: SyncConfiguration {
        var configuration = SyncConfiguration()
        configuration.leastHistoryBlock = 1
        return configuration
    }

    private static let outbox = "SELECT * FROM tidemark_operation ORDER BY id"

    private func insert(_ count: Int, _ prefix: String = "n") -> String {
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
        INSERT INTO note(id, title) SELECT '\(prefix)' || i, 'title ' || i FROM n;
        """
    }

    @Test("A block returns its operations as they were, every column")
    func roundTrip() async throws {
        let (_, a, _) = try await RestorableServer.pair()
        // Fewer than the usual block has are left where they are.
        var configuration = SyncConfiguration()
        configuration.leastHistoryBlock = 1000
        let engine = try a.engine(configuration)
        try await a.sql(insert(60))
        try await engine.syncNow()
        try await a.sql("UPDATE note SET body = 'longer', rank = id % 7; DELETE FROM note WHERE id = 'n3'")
        try await engine.syncNow()
        try await a.sql("UPDATE tidemark_operation SET in_group = 'g', content = x'7b7d' WHERE record = 'n1'")
        let before = try await a.rows(Self.outbox)
        #expect(before.count == 120)
        try await Self.packAll(a)
        #expect(try await a.count("tidemark_operation") == 0)
        #expect(try await a.count("tidemark_history") >= 1)
        try await a.writer.write { db in try OutboxHistory.restoreAll(db) }
        #expect(try await a.rows(Self.outbox) == before)
        #expect(try await a.count("tidemark_history") == 0)
    }

    @Test("A block of long texts has few of them, however alike they are")
    func long() async throws {
        let (_, a, _) = try await RestorableServer.pair()
        var configuration = SyncConfiguration()
        configuration.leastHistoryBlock = 1
        try await a.sql(insert(30) + "UPDATE note SET body = printf('%.*c', 100000, 'x')")
        try await a.engine(configuration).syncNow()
        #expect(try await a.count("tidemark_operation") == 0)
        let most = try await a.rows("SELECT max(last - first + 1), sum(last - first + 1) FROM tidemark_history")
        #expect(most == ["6|30"])
    }

    @Test("A block that is made as the verdicts come holds what one of finished operations does")
    func atOnce() async throws {
        var kept: [[String]] = []
        for least in [1, 1000] {
            let (_, a, _) = try await RestorableServer.pair()
            var configuration = SyncConfiguration()
            configuration.leastHistoryBlock = least
            try await a.sql(insert(700))
            try await a.engine(configuration).syncNow()
            #expect(try await a.count("tidemark_operation") == (least == 1 ? 0 : 700))
            try await a.writer.write { db in try OutboxHistory.restoreAll(db) }
            kept.append(
                try await a.rows(
                    """
                    SELECT id, number, entity, record, kind, state, version, finished_at IS NULL, code, is_insert,
                      edited_at IS NULL, in_group, length(members) > 20, content FROM tidemark_operation ORDER BY id
                    """))
        }
        #expect(kept[0].count == 700)
        #expect(kept[0] == kept[1])
    }

    @Test("A sync packs what was taken once there is enough for a block, and leaves less than that")
    func packs() async throws {
        let (_, a, _) = try await RestorableServer.pair()
        try await a.sql(insert(63))
        let engine = try a.engine()
        try await engine.syncNow()
        #expect(try await a.count("tidemark_operation") == 63)
        try await a.sql("UPDATE note SET title = 'new' WHERE id = 'n1'")
        try await engine.syncNow()
        #expect(try await a.count("tidemark_operation") == 0)
        #expect(try await a.rows("SELECT first, last FROM tidemark_history") == ["1|64"])
    }

    @Test("An operation without a verdict, or one that the app may decide about, is in no block")
    func stays() async throws {
        let server = try Device.server(
            in: TestDirectory(), rules: [EntityRule("note") { _ in .reject(code: "no_way", detail: "No.") }])
        let device = try await Device(noteSchema, tables: ["note"], server: server)
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'x')")
        try await device.engine(Self.eager).syncNow()
        #expect(try await device.rows("SELECT state FROM tidemark_operation") == ["\"rejected\""])
        #expect(try await device.count("tidemark_history") == 0)
        await device.wire.loseAnswer()
        try await device.sql("INSERT INTO note(id, title) VALUES ('n2', 'y')")
        await #expect(throws: SyncError.self) { try await device.engine(Self.eager).syncNow() }
        for state in ["sealed", "conflict", "deferred", "outcome_unknown"] {
            try await device.sql("UPDATE tidemark_operation SET state = '\(state)'")
            try await Self.packAll(device)
            #expect(try await device.count("tidemark_history") == 0, "\(state)")
        }
        try await device.sql(
            """
            UPDATE tidemark_operation SET state = 'applied', code = NULL, lane = coalesce(lane, 'l');
            INSERT INTO tidemark_ref SELECT 'note', 'temporary', id FROM tidemark_operation
            """)
        try await Self.packAll(device)
        #expect(try await device.count("tidemark_history") == 0)
        try await device.sql("DELETE FROM tidemark_ref; UPDATE tidemark_operation SET resolved = x'00'")
        try await Self.packAll(device)
        #expect(try await device.count("tidemark_history") == 0)
        try await device.sql("UPDATE tidemark_operation SET resolved = NULL")
        try await Self.packAll(device)
        #expect(try await device.count("tidemark_history") > 0)
    }

    private static func packAll(_ device: Device) async throws {
        try await device.writer.write { db in
            let lanes = try String.fetchSet(db, sql: "SELECT lane FROM tidemark_operation WHERE lane IS NOT NULL")
            try OutboxHistory.pack(db, Device.scope, lanes: lanes, least: 1)
        }
    }

    @Test("A number between those of a block that is in none was not taken")
    func gap() async throws {
        let (_, a, _) = try await RestorableServer.pair()
        try await a.sql(insert(3))
        try await a.sync()
        let lane = try #require(
            try await a.writer.read { db in try String.fetchOne(db, sql: "SELECT lane FROM tidemark_operation") })
        try await a.sql("DELETE FROM tidemark_operation WHERE number = 2")
        try await Self.packAll(a)
        #expect(try await a.rows("SELECT first, last FROM tidemark_history") == ["1|3"])
        let taken = try await a.writer.read { db in
            try (1...4).map { try Outbox.isTaken(db, OperationKey(lane: lane, number: $0)) }
        }
        #expect(taken == [true, false, true, false])
    }

    @Test("The next opening of the file packs what earlier ones left, where it is worth a block")
    func leftovers() async throws {
        let (_, a, _) = try await RestorableServer.pair()
        for sql in [insert(7), insert(8, "m")] {
            try await a.sql(sql)
            try await a.sync()
        }
        #expect(try await a.count("tidemark_history") == 0)
        try await a.sql("UPDATE note SET title = 'x' WHERE id = 'n1'")
        try await a.sync()
        #expect(try await a.count("tidemark_history") == 1)
        #expect(try await a.count("tidemark_operation") == 8)
    }

    @Test("A deferred patch is forgotten when its whole text is packed: the next edit may be a patch again")
    func deferred() async throws {
        let (_, a, _) = try await RestorableServer.pair()
        try await a.sql(insert(1))
        try await a.sync()
        try await a.sql(
            """
            INSERT INTO tidemark_operation(
              id, scope, lane, number, entity, record, kind, state, members, sealed_at, finished_at, code)
            VALUES (0, 'w:1', 'l', 1, 'note', 'n1', 'upsert', 'deferred', x'', 1, 1, 'patch_base_unknown'),
              (-1, 'w:1', 'l', 2, 'note', 'n2', 'upsert', 'deferred', x'', 1, 1, 'patch_base_unknown')
            """)
        try await Self.packAll(a)
        #expect(try await a.rows("SELECT record FROM tidemark_operation") == ["\"n2\""])
    }

    @Test("A damaged block stops nothing: what it held is forgotten")
    func damaged() async throws {
        let (server, a, b) = try await RestorableServer.pair(
            sharing: "INSERT INTO note(id, title) VALUES ('n1', 'base')")
        let engine = try a.engine(Self.eager)
        try await a.sql("UPDATE note SET title = 'mine'")
        try await engine.syncNow()
        try await a.sql("UPDATE tidemark_history SET operations = x'00'")
        try await b.sql("DELETE FROM note")
        try await b.sync()
        try await engine.syncNow()
        #expect(try await a.count("note") == 0)
        #expect(try await engine.conflicts().isEmpty)
        try await server.backUp()
        try await a.sql("INSERT INTO note(id, title) VALUES ('n2', 'new')")
        try await engine.syncNow()
        try await a.sql("UPDATE tidemark_history SET operations = x'00'")
        let blocks = try await a.count("tidemark_history")
        try await server.restore()
        try await engine.syncNow()
        #expect(try await a.count("tidemark_history") == blocks - 1)
        #expect(try await engine.status().scopes[Device.scope]?.lastError == nil)
    }

    @Test("A server that lost them gets them back out of their blocks, in their order")
    func replayed() async throws {
        let (server, a, b) = try await RestorableServer.pair()
        try await server.backUp()
        let engine = try a.engine(Self.eager)
        try await a.sql(insert(200))
        try await engine.syncNow()
        try await a.sql("UPDATE note SET title = 'second' WHERE id = 'n7'; DELETE FROM note WHERE id = 'n9'")
        try await engine.syncNow()
        try await a.sql("UPDATE note SET title = 'third' WHERE id = 'n7'")
        try await engine.syncNow()
        #expect(try await a.count("tidemark_operation") == 0)
        try await server.restore()
        for device in [a, b, a] { try await device.engine(Self.eager).syncNow() }
        #expect(try await b.count("note") == 199)
        #expect(try await b.rows("SELECT title FROM note WHERE id = 'n7'") == ["\"third\""])
        #expect(try await b.count("note WHERE id = 'n9'") == 0)
        let contents = try await server.contents()
        for other in contents.dropFirst() { #expect(other == contents[0]) }
    }

    @Test("A delete that did not see an edit out of a block lists the edit as lost, and it can be made again")
    func lostEdit() async throws {
        let (_, a, b) = try await RestorableServer.pair(sharing: "INSERT INTO note(id, title) VALUES ('n1', 'base')")
        let engine = try a.engine(Self.eager)
        try await a.sql("UPDATE note SET title = 'mine'")
        try await engine.syncNow()
        #expect(try await a.count("tidemark_operation") == 0)
        try await b.sql("DELETE FROM note")
        try await b.sync()
        try await engine.syncNow()
        let conflict = try #require(try await engine.conflicts().first)
        #expect(conflict["title"]?.mine == "mine")
        try await engine.resolve(conflict, with: .keepMine)
        #expect(try await a.rows("SELECT title FROM note") == ["\"mine\""])
    }

    @Test("A record that was deleted here is still known, and another one is not")
    func remembered() async throws {
        let (_, a, _) = try await RestorableServer.pair()
        let engine = try a.engine(Self.eager)
        try await a.sql("INSERT INTO note(id, title) VALUES ('n1', 'x')")
        try await engine.syncNow()
        try await a.sql("DELETE FROM note")
        try await engine.syncNow()
        #expect(try await a.count("tidemark_operation") == 0)
        #expect(try await engine.state(of: "note", id: "n1") == .confirmed)
        let error = await #expect(throws: SyncError.self) { try await engine.state(of: "note", id: "n2") }
        #expect(error?.code == .recordUnknown)
    }

    @Test("Blocks are kept as long as finished operations, and go with their scope")
    func pruned() async throws {
        let (_, a, _) = try await RestorableServer.pair()
        try await a.sql("INSERT INTO note(id, title) VALUES ('n1', 'x')")
        try await a.engine(Self.eager).syncNow()
        try await a.sql("UPDATE tidemark_history SET finished_at = 1")
        try await a.writer.write { db in try Outbox.prune(db, "another:1", before: 2) }
        #expect(try await a.count("tidemark_history") == 1)
        try await a.writer.write { db in
            #expect(try Outbox.hasFinished(db, Device.scope))
            #expect(try Outbox.answered(db, Device.scope).map(\.number) == [1])
            try Outbox.prune(db, Device.scope, before: 2)
        }
        #expect(try await a.count("tidemark_history") == 0)
        try await a.sql("UPDATE note SET title = 'y'")
        try await a.engine(Self.eager).syncNow()
        #expect(try await a.count("tidemark_history") == 1)
        try await a.writer.write { db in try Outbox.clearAll(db, Device.scope) }
        #expect(try await a.count("tidemark_history") == 0)
    }

    @Test("An engine looks for what is too old as it begins, and then once a minute")
    func lookedFor() async throws {
        let (_, a, _) = try await RestorableServer.pair()
        let clock = QuickClock(seed: nil)
        try await Dependencies.$current.withValue(clock) {
            let engine = try a.engine(Self.eager)
            try await a.sql(insert(1))
            try await engine.syncNow()
            try await a.sql("UPDATE tidemark_history SET finished_at = 1")
            try await clock.sleep(for: .seconds(59))
            try await engine.syncNow()
            #expect(try await a.count("tidemark_history") == 1)
            try await clock.sleep(for: .seconds(2))
            try await engine.syncNow()
            #expect(try await a.count("tidemark_history") == 0)
        }
    }

    @Test("Integers of all sizes come back, and of a block that was altered what stands before the damage")
    func block() throws {
        let queue = try DatabaseQueue()
        try queue.write { db in
            try db.execute(sql: LibrarySchema.outbox)
            let numbers: [Int64] = [1, .max, .min, -1, 0]
            for (index, number) in numbers.enumerated() {
                try db.execute(
                    sql: """
                        INSERT INTO tidemark_operation(
                          scope, lane, number, entity, record, kind, state, members, sealed_at, finished_at, version)
                        VALUES ('s', 'l', ?, 'note', ?, 'upsert', 'applied', x'00ff', ?, ?, ?)
                        """, arguments: [index, "r\(index)", number, number, number])
            }
            var block = OutboxBlock()
            _ = try Query(db, "SELECT \(OutboxBlock.columns) FROM tidemark_operation ORDER BY id")
                .rows(db) { block.append(OutboxBlock.operation($0)) }
            let bytes = block.compressed()
            let read = OutboxBlock.operations(bytes)
            #expect(read.map(\.version) == numbers)
            #expect(read.map(\.name.record) == ["r0", "r1", "r2", "r3", "r4"])
            #expect(block.numbers == 0...4 && block.version == .max && block.count == 5)
            #expect(OutboxBlock.operations(Array(bytes.dropLast())).isEmpty)
            #expect(OutboxBlock.operations([1, 2, 3]).isEmpty)
            // Whole as gzip, and cut before that.
            let raw = try Gzip.decompress(bytes, limit: .max)
            #expect(OutboxBlock.operations(Gzip.compress(Array(raw.dropLast()))).isEmpty)
            #expect(OutboxBlock.operations(Gzip.compress(raw + [9])).isEmpty)
        }
    }

    /// Text, whole numbers, UUIDs of either case, and what only looks like them.
    static let ids = [
        "r1", "7", "-7", "9223372036854775807", "007", "0193F2C4-7A10-7ABC-8000-00000000A001",
        "0193f2c4-7a10-7abc-8000-00000000a001", "0193F2C4-7a10-7ABC-8000-00000000A001", "0193F2C4", "",
    ]

    @Test("the ids of a block's records come back as they were, beside the members that name them")
    func records() throws {
        let members = [
            #""type":"upsert","entity":"note","id":"ID","fields":{"title":"ID"}"#,
            #""type":"delete","entity":"note","id":"other"}"#, "\u{0}ID",
        ]
        try expectSame(Self.ids, members)
        let uuids = (0..<300).map { _ in UUID().uuidString }
        try expectSame(uuids, members)
        // All of them short, and all but one.
        try expectSame(uuids, Array(members.prefix(2)))
        try expectSame(uuids + ["x"], Array(members.prefix(2)))
        try expectSame((0..<300).map { String($0 * $0 - 50) }, members)
    }

    private func expectSame(_ ids: [String], _ members: [String]) throws {
        var block = OutboxBlock()
        var operations: [OutboxBlock.Operation] = []
        for (place, id) in ids.enumerated() {
            for members in members {
                var cells: [Cell] = (0..<15).map { .integer(Int64($0 * place)) }
                cells[4] = .text("note")
                cells[5] = .text(id)
                cells[7] = .blob(Array(members.replacing("ID", with: id).utf8))
                operations.append(OutboxBlock.Operation(cells: cells))
                block.append(operations[operations.count - 1])
            }
        }
        let bytes = block.compressed()
        #expect(OutboxBlock.operations(bytes).map(\.cells) == operations.map(\.cells))
        let raw = try Gzip.decompress(bytes, limit: .max)
        for count in [0, 1, 2, raw.count / 2, raw.count - 1] {
            #expect(OutboxBlock.operations(Gzip.compress(Array(raw.prefix(count)))).isEmpty)
        }
    }

    @Test("a block of before version 13, row by row, is read up to where it is damaged")
    func byRow() throws {
        var writer = ByteWriter()
        for row in 0..<3 {
            for column in 0..<15 {
                writer.integer(column == 5 ? 3 : 1)
                if column == 5 { writer.run(Array("r\(row)".utf8)) } else { writer.integer(2) }
            }
        }
        let read = OutboxBlock.operations(Gzip.compress(writer.bytes))
        #expect(read.map(\.id) == [1, 2, 3] && read.map(\.name.record) == ["r0", "r1", "r2"])
        #expect(OutboxBlock.operations(Gzip.compress(Array(writer.bytes.dropLast()))).count == 2)
    }
}
