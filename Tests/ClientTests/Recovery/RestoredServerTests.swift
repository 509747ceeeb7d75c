import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("A store that went back in time: devices replay what they had done (I11, T19)")
struct RestoredServerTests {
    /// Syncs these devices in turn, and expects that all hold the same and have nothing left to do.
    private func expectRecovered(_ server: RestorableServer, after devices: Device...) async throws {
        for device in devices { try await device.sync() }
        let contents = try await server.contents()
        for other in contents.dropFirst() { #expect(other == contents[0]) }
        #expect(try await server.leftovers() == 0)
    }

    @Test("edits that were answered, on their way or not sent yet all come back", arguments: [true, false])
    func restored(hasGrown: Bool) async throws {
        let (server, a, b) = try await RestorableServer.pair(
            sharing: "INSERT INTO note(id, title) VALUES ('n1', 'old'), ('n2', 'old'), ('n3', 'old')")
        try await server.backUp()
        try await a.sql(
            """
            UPDATE note SET title = 'answered' WHERE id = 'n1'; DELETE FROM note WHERE id = 'n2';
            INSERT INTO note(id, title) VALUES ('m1', 'answered'); INSERT INTO tag VALUES (7, 'answered');
            """)
        try await Device.sync(a, b)
        try await a.sql("UPDATE note SET body = 'on its way' WHERE id = 'n1'")
        await a.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await a.sync() }
        try await a.sql("UPDATE note SET body = 'not sent' WHERE id = 'm1'; INSERT INTO tag VALUES (8, 'not sent')")
        try await server.restore()
        if hasGrown {
            // It has numbers of its own by then, beyond those that the devices know.
            for index in 0..<12 {
                try await server.server.commit(to: "w:1") {
                    $0.upsert("note", id: "n3", ["rank": .integer(Int64(index))])
                }
            }
        }
        let report = try await a.engine().syncNow()
        #expect(report.pushed == 7)
        try await expectRecovered(server, after: b, a)
        #expect(
            try await b.rows("SELECT id, title, body FROM note ORDER BY id") == [
                "\"m1\"|\"answered\"|\"not sent\"", "\"n1\"|\"answered\"|\"on its way\"", "\"n3\"|\"old\"|NULL",
            ])
        #expect(try await b.rows("SELECT id, name FROM tag ORDER BY id") == ["7|\"answered\"", "8|\"not sent\""])
        // What is there again is not replayed again.
        let head = try await server.head()
        try await Device.sync(a, b)
        #expect(try await server.head() == head)
    }

    @Test("the later edit wins again, whoever is back first", arguments: [true, false])
    func order(aFirst: Bool) async throws {
        let (server, a, b) = try await RestorableServer.pairWithLaterEdit()
        try await server.restore()
        for device in aFirst ? [a, b, a] : [b, a, b] { try await device.sync() }
        try await expectRecovered(server)
        #expect(try await a.rows("SELECT title, body FROM note") == ["\"later\"|\"a\""])
    }

    @Test("an edit while a scope is filled after a loss does not keep the rest of a row that nobody replays")
    func editedWhileFilled() async throws {
        let long = String(repeating: "x", count: 200)
        let (server, a, b) = try await RestorableServer.pair(
            sharing: "INSERT INTO note(id, title, body, rank) VALUES ('n1', 'old', '\(long)', 1), ('n2', '', '', 1)")
        try await server.backUp()
        try await a.sql("UPDATE note SET rank = 2 WHERE id = 'n1'")
        try await Device.sync(a, b)
        // That device never comes back.
        try await server.restore()
        var configuration = SyncConfiguration()
        (configuration.snapshotRange, configuration.firstSnapshotPage) = (1...1, 1)
        await b.wire.nextPage { request, inner in
            let answer = try await inner.send(request)
            try await b.sql("UPDATE note SET title = 'new' WHERE id = 'n1'")
            return answer
        }
        let engine = try b.engine(configuration)
        try await engine.syncNow()
        try await engine.syncNow()
        #expect(try await b.rows("SELECT title, rank FROM note WHERE id = 'n1'") == ["\"new\"|1"])
        #expect(try await engine.verify().isClean)
    }

    @Test("finished edits of a scope are kept until that scope has heard from its server")
    func keptByScope() async throws {
        let server = try RestorableServer()
        let a = try await server.device("a")
        try await a.sql("INSERT INTO note(id, title) VALUES ('n1', 'x')")
        try await a.sync()
        // Weeks later: another scope of the file syncs first.
        try await a.sql("UPDATE tidemark_operation SET finished_at = 1")
        try await a.writer.write { db in try Outbox.prune(db, "another:1", before: 2) }
        #expect(try await a.count("tidemark_operation") == 1)
        try await a.writer.write { db in try Outbox.prune(db, Device.scope, before: 2) }
        #expect(try await a.count("tidemark_operation") == 0)
    }

    @Test("edits taken before the first page of a filling come back, where the page is another history's")
    func firstPage() async throws {
        let (server, a, b) = try await RestorableServer.pair()
        try await server.backUp()
        try await a.sql("INSERT INTO note(id, title) VALUES ('n1', 'taken')")
        await a.wire.nextPage { _, _ in throw Wire.Lost() }
        await #expect(throws: SyncError.self) { try await a.sync() }
        #expect(try await server.head() == 1)
        try await server.restore()
        // It has a version of its own by then in the place of the lost one.
        try await server.server.commit(to: "w:1") { $0.upsert("note", id: "x1", ["rank": 1]) }
        try await expectRecovered(server, after: a, b, a)
        #expect(try await b.rows("SELECT id, title FROM note ORDER BY id") == ["\"n1\"|\"taken\"", "\"x1\"|NULL"])
    }

    @Test("taken edits come back though the token may only read when the loss is found", arguments: [false, true])
    func onlyReading(hasGrown: Bool) async throws {
        let (server, a, b) = try await RestorableServer.pair()
        try await server.backUp()
        try await a.sql("INSERT INTO note(id, title) VALUES ('n1', 'taken')")
        await a.wire.nextPage { _, _ in throw Wire.Lost() }
        await #expect(throws: SyncError.self) { try await a.sync() }
        try await server.restore()
        // It has a version of its own by then in the place of the lost one.
        if hasGrown { try await server.server.commit(to: "w:1") { $0.upsert("note", id: "x1", ["rank": 1]) } }
        let transport = await InProcessTransport(to: server.server) { _ in .read(as: "ada") }
        await a.wire.connect(to: transport)
        for _ in 0..<2 { _ = try? await a.sync() }
        if !hasGrown { try await server.server.commit(to: "w:1") { $0.upsert("note", id: "x1", ["rank": 1]) } }
        await a.wire.connect(to: InProcessTransport(to: server.server) { _ in .readWrite(as: "ada") })
        try await expectRecovered(server, after: a, b, a)
        #expect(try await b.rows("SELECT id, title FROM note ORDER BY id") == ["\"n1\"|\"taken\"", "\"x1\"|NULL"])
    }

    @Test("several edits of one record come back one by one and stay on screen all the while (I5)")
    func series() async throws {
        let server = try RestorableServer()
        let a = try await server.device("a")
        for index in 0..<30 {
            try await server.server.commit(to: "w:1") { $0.upsert("note", id: RecordID("x\(index)")!, ["rank": 1]) }
        }
        try await a.sync()
        try await server.backUp()
        try await a.sql("INSERT INTO note(id, title) VALUES ('n1', 'first')")
        try await a.sync()
        try await a.sql(
            "UPDATE note SET title = 'second', body = 'b' WHERE id = 'n1'; DELETE FROM note WHERE id = 'x3'")
        try await a.sync()
        try await a.sql(
            "UPDATE note SET title = 'third' WHERE id = 'n1'; INSERT INTO note(id, title) VALUES ('x3', 'anew')")
        try await a.sync()
        try await a.sql("UPDATE note SET rank = 4 WHERE id = 'n1'")
        try await server.restore()
        let seen = Seen()
        let look: Wire.Step = { request, inner in
            await seen.add(
                try await a.rows("SELECT id, title, body, rank FROM note WHERE id IN ('n1', 'x3') ORDER BY id"))
            return try await inner.send(request)
        }
        for _ in 0..<20 {
            await a.wire.next(look)
            await a.wire.nextPage(look)
        }
        var configuration = SyncConfiguration()
        configuration.operationLimit = 2
        configuration.snapshotRange = 10...10
        configuration.firstSnapshotPage = 10
        let engine = try a.engine(configuration)
        try await engine.syncNow()
        #expect(await seen.rows.count > 6)
        let shown = ["\"n1\"|\"third\"|\"b\"|4", "\"x3\"|\"anew\"|NULL|NULL"]
        #expect(await seen.rows.allSatisfy { $0 == shown })
        #expect(
            try await a.rows("SELECT id, title, body, rank FROM note WHERE id IN ('n1', 'x3') ORDER BY id") == shown)
        try await expectRecovered(server)
    }

    @Test("a record that was made anew, and deleted before anybody heard of the loss, stays deleted (I1)")
    func deletedAgain() async throws {
        let (server, a, b) = try await RestorableServer.pair(
            sharing: "INSERT INTO note(id, title) VALUES ('n1', 'old')")
        try await a.sql("DELETE FROM note")
        try await Device.sync(a, b)
        try await server.backUp()
        try await a.sql("INSERT INTO note(id, title) VALUES ('n1', 'anew')")
        try await Device.sync(a, b)
        try await server.restore()
        try await b.sql("DELETE FROM note")
        try await Device.sync(b, a, b)
        for device in [a, b] { #expect(try await device.count("note") == 0) }
    }

    @Test("a row lets go of a record that was deleted after a loss, where the device had lost nothing (I4)")
    func deletedParent() async throws {
        let family = """
            CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT);
            CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT REFERENCES note(id) ON DELETE SET NULL);
            """
        let server = try RestorableServer()
        let a = try await server.device("a", schema: family)
        let b = try await server.device("b", schema: family)
        try await a.sql("INSERT INTO note(id) VALUES ('n1'), ('n2')")
        try await Device.sync(a, b)
        try await a.sql("DELETE FROM note WHERE id = 'n2'")
        try await a.sync()
        try await server.backUp()
        // All that is lost is the verdict that refuses this.
        try await b.sql("UPDATE note SET title = 'late' WHERE id = 'n2'")
        try await b.sync()
        try await server.restore()
        try await a.sql("DELETE FROM note WHERE id = 'n1'")
        try await a.sync()
        try await b.sql("INSERT INTO tag VALUES (1, 'n1')")
        try await Device.sync(b, b, a)
        for device in [a, b] { #expect(try await device.rows("SELECT * FROM tag") == ["1|NULL"]) }
    }

    @Test("a store that is lost altogether is filled again by its devices, as far as they remember")
    func lostAltogether() async throws {
        let (server, a, b) = try await RestorableServer.pair(
            sharing: "INSERT INTO note(id, title) VALUES ('n1', 'a'), ('n2', 'a')")
        try await b.sql("UPDATE note SET title = 'b' WHERE id = 'n1'; INSERT INTO tag VALUES (1, 'b')")
        try await Device.sync(b, a)
        try await server.lose()
        try await expectRecovered(server, after: a, b, a)
        #expect(try await a.rows("SELECT id, title FROM note ORDER BY id") == ["\"n1\"|\"b\"", "\"n2\"|\"a\""])
        #expect(try await a.count("tag") == 1)
    }

    @Test("a key that is lost, with the log as it was, repeats nothing")
    func lostKey() async throws {
        let (server, a, b) = try await RestorableServer.pair(
            sharing: "INSERT INTO note(id, title) VALUES ('n1', 'a'), ('n2', 'a')")
        try await b.sql("UPDATE note SET title = 'b' WHERE id = 'n1'")
        let head = try await server.head()
        try await server.changeKey()
        try await Device.sync(a, b, a)
        #expect(try await server.head() == head + 1)
        try await expectRecovered(server)
    }

    @Test("a store that goes back twice, the second time before what was replayed was answered")
    func twice() async throws {
        let (server, a, b) = try await RestorableServer.pair(
            sharing: "INSERT INTO note(id, title) VALUES ('n1', 'old'), ('n2', 'old')")
        try await server.backUp()
        try await a.sql("UPDATE note SET title = 'a' WHERE id = 'n1'")
        try await Device.sync(a, b)
        try await b.sql("UPDATE note SET title = 'b' WHERE id = 'n1'; UPDATE note SET body = 'b' WHERE id = 'n2'")
        try await b.sync()
        try await server.restore()
        try await a.sync()
        // The device replays its edits, but hears of no verdict.
        for _ in 0..<3 {
            await b.wire.next { request, inner in
                let answer = try await inner.send(request)
                guard answer.status == 200 else { return answer }
                throw Wire.Lost()
            }
        }
        for _ in 0..<3 { _ = try? await b.sync() }
        try await server.restore()
        try await expectRecovered(server, after: a, b, a, b)
        #expect(
            try await a.rows("SELECT id, title, body FROM note ORDER BY id") == [
                "\"n1\"|\"b\"|NULL", "\"n2\"|\"old\"|\"b\"",
            ])
    }

    @Test("versions of the lost history count for nothing: rows that are older by number are taken")
    func versions() async throws {
        let (server, a, b) = try await RestorableServer.pair(
            sharing: "INSERT INTO note(id, title) VALUES ('n1', 'old')")
        try await server.backUp()
        for index in 0..<20 {
            try await server.server.commit(to: "w:1") { $0.upsert("note", id: "n1", ["rank": .integer(Int64(index))]) }
        }
        try await b.sync()
        // An edit under which rows of the lost part came, and one that a verdict of it was applied to.
        try await b.sql("UPDATE note SET body = 'mine'")
        await b.wire.loseRequest()
        await #expect(throws: SyncError.self) { try await b.sync() }
        try await server.restore()
        try await server.server.commit(to: "w:1") { $0.upsert("note", id: "n1", ["title": "new"]) }
        try await b.sync()
        #expect(try await b.rows("SELECT title, body, rank FROM note") == ["\"new\"|\"mine\"|NULL"])
        try await a.sync()
        try await expectRecovered(server)
        #expect(try await b.rows("SELECT complete FROM tidemark_scope") == ["3"])
    }

    @Test("rows of the lost part that came in an unfinished scan hide nothing of what is there now")
    func ahead() async throws {
        let server = try RestorableServer()
        let a = try await server.device("a")
        for index in 0..<6 {
            try await server.server.commit(to: "w:1") { $0.upsert("note", id: RecordID("n\(index)")!, ["rank": 0]) }
        }
        try await a.sync()
        try await server.backUp()
        for index in 0..<6 {
            try await server.server.commit(to: "w:1") { $0.upsert("note", id: RecordID("n\(index)")!, ["rank": 1]) }
        }
        var configuration = SyncConfiguration()
        (configuration.pageRange, configuration.firstPage) = (4...4, 4)
        await a.wire.next { request, inner in try await inner.send(request) }
        await a.wire.loseRequest()
        await #expect(throws: SyncError.self) { try await a.engine(configuration).syncNow() }
        #expect(try await a.count("tidemark_known_version") == 4)
        try await server.restore()
        try await server.server.commit(to: "w:1") { $0.upsert("note", id: "n0", ["rank": 2]) }
        try await a.sync()
        #expect(try await a.rows("SELECT rank FROM note ORDER BY id") == ["2", "0", "0", "0", "0", "0"])
        try await expectRecovered(server)
    }

    private static let family = """
        CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, body TEXT, rank INTEGER);
        CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT REFERENCES note(id));
        """

    @Test("a replayed edit needs its parents by their new numbers", arguments: [false, true])
    func needs(isPutOff: Bool) async throws {
        let server = try RestorableServer()
        let a = try await server.device("a", schema: Self.family)
        let b = try await server.device("b", schema: Self.family)
        let engine = try a.engine()
        for index in 0..<10 { try await a.sql("INSERT INTO note(id, title) VALUES ('n\(index)', 'old')") }
        try await engine.syncNow()
        try await b.sync()
        try await server.backUp()
        try await a.sql("INSERT INTO note(id, title) VALUES ('p', 'parent'); INSERT INTO tag VALUES (1, 'p')")
        try await engine.syncNow()
        try await server.restore()
        if isPutOff {
            await a.wire.next { request, inner in try await inner.send(request) }
            await a.wire.next { request, inner in
                // The parent's verdict is lost, and the other one could not be done.
                let body = String(decoding: request.body, as: UTF8.self)
                let lane = try #require(body.firstMatch(of: /"lane":"(\w+)","number":2/)).1
                let results = #"{"results":[{"lane":"\#(lane)","number":2,"status":"deferred","after":1}]}"#
                return TransportResponse(
                    status: 200, headers: ["Content-Type": "application/json"], body: Array(results.utf8))
            }
        }
        try await engine.syncNow()
        #expect(try await a.rows("SELECT id, name FROM tag") == ["1|\"p\""])
        try await engine.syncNow()
        try await b.sync()
        #expect(try await a.rows("SELECT id, name FROM tag") == ["1|\"p\""])
        try await expectRecovered(server)
        #expect(try await b.rows("SELECT id, name FROM tag") == ["1|\"p\""])
        #expect(try await b.count("note WHERE id = 'p'") == 1)
    }
}
