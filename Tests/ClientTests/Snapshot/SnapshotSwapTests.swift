import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("A snapshot replaces, it never merges; what was edited here stays and is rebased (A14, I7, T3, T7)")
struct SnapshotSwapTests {
    typealias Base = BootstrapTests

    /// A device that holds everything and whose checkpoint the server will refuse next, and the server.
    private func outdated(_ name: String = "d") async throws -> (Device, SyncServer, TestDirectory) {
        let directory = try TestDirectory()
        let server = try await Base.server(in: directory)
        let device = try await Base.device(server, in: directory, name: name)
        try await device.sync()
        await device.wire.next(Base.problem(.checkpointExpired))
        return (device, server, directory)
    }

    private func expectSame(_ device: Device, _ server: SyncServer, _ directory: TestDirectory) async throws {
        let other = try await Base.device(server, in: directory, name: "other-\(UUID().uuidString)")
        try await other.sync()
        #expect(try await Base.content(device) == Base.content(other))
        for table in Base.tables { #expect(try await device.count("tidemark_shadow_\(table)") == 0) }
        #expect(try await device.sealed() == [])
        #expect(try await device.count("tidemark_staged") == 0)
    }

    @Test("records that a snapshot does not hold are looked for by what they stand on, in the table and among shadows")
    func others() async throws {
        let directory = try TestDirectory()
        let device = try await Base.device(try await Base.server(in: directory), in: directory)
        try await device.sync()
        try await device.sql(
            """
            DELETE FROM note WHERE id IN ('n4', 'n5', 'n6', 'n7');
            UPDATE note SET title = 'mine' WHERE id = 'n1';
            DELETE FROM note WHERE id = 'n2';
            INSERT INTO note(id, title) VALUES ('m1', 'mine');
            """)
        let shape = try #require(try await device.installed().shapes.first { $0.name == "note" })
        try await device.writer.write { db in
            let seen = try SeenRecords(db)
            func others(_ table: String, unsent: Bool) throws -> [String] {
                try SeenRecords.others(
                    db, shape, in: table, scope: Device.scope, unsent: unsent, after: nil, limit: 10
                ).compactMap { shape.recordID($0)?.text }
            }
            #expect(try others(shape.sql, unsent: false) == ["n1", "n3"])
            #expect(try others(shape.sql, unsent: true) == ["m1", "n1", "n3"])
            #expect(try others(shape.shadowSQL, unsent: false) == ["n1", "n2", "n4", "n5", "n6", "n7"])
            #expect(try others(shape.shadowSQL, unsent: true) == ["m1", "n1", "n2", "n4", "n5", "n6", "n7"])
            try seen.clear(db)
        }
    }

    @Test("edits of rows that stand, changed, were deleted or are new all survive, each with its meaning")
    func edits() async throws {
        let (device, server, directory) = try await outdated()
        try await device.sql(
            """
            UPDATE note SET title = 'mine' WHERE id IN ('n1', 'n2', 'n3');
            DELETE FROM note WHERE id IN ('n4', 'n5');
            INSERT INTO note(id, title) VALUES ('m1', 'mine'), ('s1', 'mine');
            UPDATE pair SET n = 5 WHERE b = 1;
            """)
        try await server.commit(to: "w:1") { changes in
            changes.upsert("note", id: "n2", ["body": "theirs"])
            changes.delete("note", id: "n3")
            changes.upsert("note", id: "n5", ["body": "theirs"])
            changes.upsert("note", id: "s1", ["body": "theirs"])
        }
        // Nothing can be pushed before the swap: the new rows are overlaid by what was edited here.
        await device.wire.loseRequest()
        let engine = try device.engine(Base.small())
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        await device.wire.next { request, inner in
            #expect(request.path == "/sync/push")
            throw Wire.Lost()
        }
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        try await engine.syncNow()
        #expect(
            try await device.rows("SELECT id, title, body FROM note WHERE id < 'n6' OR id > 'n9' ORDER BY id") == [
                "\"m1\"|\"mine\"|NULL", "\"n1\"|\"mine\"|NULL", "\"n2\"|\"mine\"|\"theirs\"",
                // A new row is sent whole.
                "\"s1\"|\"mine\"|NULL",
            ])
        let conflicts = Set(try await engine.conflicts().map(\.record))
        #expect(conflicts == ["n3", "s1"])
        try await expectSame(device, server, directory)
    }

    @Test("edits stay on screen while the pages come, and are sent behind the swap with the base they were made on")
    func rebased() async throws {
        let (device, server, directory) = try await outdated()
        try await server.commit(to: "w:1") { changes in
            changes.upsert("note", id: "n1", ["title": "theirs", "body": "theirs"])
            changes.delete("note", id: "n2")
        }
        let seen = Seen()
        for page in 0..<8 {
            await device.wire.nextPage { request, inner in
                if page == 0 {
                    try await device.sql("UPDATE note SET title = 'mine' WHERE id IN ('n1', 'n2')")
                    await device.wire.loseRequest()
                }
                await seen.add(try await device.rows("SELECT title FROM note WHERE id IN ('n1', 'n2')"))
                return try await inner.send(request)
            }
        }
        let engine = try device.engine(Base.small())
        for _ in 0..<3 { _ = try? await engine.syncNow() }
        try await engine.syncNow()
        // Whatever page came, what was written here stood on screen.
        #expect(await seen.rows.dropFirst().allSatisfy { $0.allSatisfy { $0 == "\"mine\"" } })
        #expect(
            try await device.rows("SELECT id, title, body FROM note WHERE id < 'n3'") == ["\"n1\"|\"mine\"|\"theirs\""])
        #expect(try await engine.conflicts().map(\.record).sorted() == ["n1", "n2"])
        try await expectSame(device, server, directory)
    }

    @Test("critical entities stand before the last page has come (A18)")
    func priority() async throws {
        let (device, server, directory) = try await outdated()
        try await server.commit(to: "w:1") { changes in
            changes.upsert("pair", id: "[\"p\",1]", ["n": 9])
            changes.upsert("note", id: "n1", ["title": "new"])
            changes.delete("pair", id: "[\"p\",3]")
        }
        for _ in 0..<3 { await device.wire.nextPage { request, inner in try await inner.send(request) } }
        await device.wire.nextPage { _, _ in throw Wire.Lost() }
        let engine = try device.engine(Base.small())
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await device.rows("SELECT b, n FROM pair ORDER BY b") == ["1|9", "2|1"])
        #expect(try await device.rows("SELECT title FROM note WHERE id = 'n1'") == ["\"t1\""])
        let bootstrap = try #require(try await engine.status().scopes["w:1"]?.bootstrap)
        #expect(bootstrap.rows == 6)
        #expect(bootstrap.entity == "note")
        // An edit of a row that stands already is made on the snapshot, not on what was complete before it.
        try await device.sql("UPDATE pair SET n = 10 WHERE b = 1; UPDATE note SET title = 'x' WHERE id = 'n2'")
        try await engine.syncNow()
        let bodies = await device.wire.bodies
        #expect(bodies.contains { $0.contains(#""id":"[\"p\",1]","baseVersion":18"#) })
        #expect(bodies.contains { $0.contains(#""id":"n2","baseVersion":15"#) })
        try await expectSame(device, server, directory)
    }

    @Test("a row that went in with a push during the scan is ahead of the snapshot and stays")
    func ahead() async throws {
        let (device, server, directory) = try await outdated()
        await device.wire.nextPage { request, inner in
            let answer = try await inner.send(request)
            try await device.sql(
                "INSERT INTO note(id, title) VALUES ('n99', 'mine'); DELETE FROM note WHERE id = 'n7'")
            return answer
        }
        for _ in 0..<6 { await device.wire.nextPage { request, inner in try await inner.send(request) } }
        // The pushes are answered long before the last page, and the scan does not show them.
        await device.wire.nextPage { _, _ in throw Wire.Lost() }
        let engine = try device.engine(Base.small())
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await device.sealed() == [])
        await device.wire.nextPage { request, inner in
            #expect(try await device.count("note WHERE id = 'n99'") == 1)
            #expect(try await device.count("note WHERE id = 'n7'") == 0)
            return try await inner.send(request)
        }
        await device.wire.loseRequest()
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await device.rows("SELECT complete FROM tidemark_scope") == ["15"])
        #expect(try await device.count("note WHERE id = 'n99'") == 1)
        #expect(try await device.count("note WHERE id = 'n7'") == 0)
        try await engine.syncNow()
        try await expectSame(device, server, directory)
    }

    @Test("a verdict that comes behind its record's swap does not revive a row that is gone (T3)")
    func lateVerdict() async throws {
        let (device, server, directory) = try await outdated()
        try await device.sql("UPDATE pair SET n = 9 WHERE b = 1")
        // The edit goes in, its answer is lost, and then somebody deletes the row.
        let engine = try device.engine(Base.small())
        await device.wire.next { request, inner in
            _ = try await inner.send(request)
            try await server.commit(to: "w:1") { $0.delete("pair", id: "[\"p\",1]") }
            throw Wire.Lost()
        }
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        // Page, push, page, push: the record's table stands by then, the others do not.
        for _ in 0..<2 { await device.wire.loseRequest() }
        for _ in 0..<2 { await #expect(throws: SyncError.self) { try await engine.syncNow() } }
        #expect(try await device.rows("SELECT swapped FROM tidemark_bootstrap") == [#""[\"pair\"]""#])
        try await engine.syncNow()
        #expect(try await device.count("pair WHERE b = 1") == 0)
        try await expectSame(device, server, directory)
    }

    @Test("a scan that can no longer be continued begins anew, and keeps what is shown", arguments: [true, false])
    func snapshotExpired(isEmpty: Bool) async throws {
        let directory = try TestDirectory()
        let server = try await Base.server(in: directory)
        let device = try await Base.device(server, in: directory)
        if !isEmpty {
            try await device.sync()
            await device.wire.next(Base.problem(.checkpointExpired))
        }
        for _ in 0..<4 { await device.wire.nextPage { request, inner in try await inner.send(request) } }
        await device.wire.nextPage { request, inner in
            try await server.commit(to: "w:1") { changes in
                changes.delete("pair", id: "[\"p\",1]")
                changes.delete("note", id: "n1")
            }
            return try await Base.problem(.snapshotExpired)(request, inner)
        }
        let shown = Seen()
        await device.wire.nextPage { request, inner in
            await shown.add(try await Base.content(device))
            return try await inner.send(request)
        }
        _ = try? await device.engine(Base.small()).syncNow()
        try await device.engine(Base.small()).syncNow()
        #expect(await shown.rows.first?.count == (isEmpty ? 8 : Base.whole))
        try await expectSame(device, server, directory)
    }

    @Test("a page of another snapshot is refused, and one that comes twice changes nothing")
    func foreignPages() async throws {
        let (device, server, directory) = try await outdated()
        let first = Seen.Answer()
        await device.wire.nextPage { request, inner in
            let answer = try await inner.send(request)
            await first.keep(answer)
            try await server.commit(to: "w:1") { $0.upsert("note", id: "n1", ["title": "new"]) }
            return answer
        }
        await device.wire.nextPage { request, inner in
            // A cache that answers with the first page of an older scan.
            var fresh = request
            fresh.query = request.query.filter { $0.name == "scope" || $0.name == "limit" }
            return try await inner.send(fresh)
        }
        let engine = try device.engine(Base.small())
        let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(error?.code == .answerUnusable)
        // Applied by hand once more: the scan has gone on since, so it is not taken.
        let page = try SnapshotAnswer(body: try #require(await first.response).body)
        let schema = try await schema(of: device)
        let outcome = try await device.writer.writeWithoutTransaction { db in
            try SnapshotTransaction(
                answer: page, scope: Device.scope, token: nil, cursor: nil, schema: schema,
                declarations: Declarations(), now: 1
            ).run(db)
        }
        #expect(!outcome.pageTaken)
        try await engine.syncNow()
        try await expectSame(device, server, directory)
    }

    private func schema(of device: Device) async throws -> SyncSchema {
        let tables = Base.tables.map { ($0, SyncedTable.ScopeRule.constant(Device.scope)) }
        return try await device.writer.write { db in
            try Installation.install(db, tables: tables, scopes: [Device.scope])
        }
    }
}

/// What a test saw on the way.
actor Seen {
    private(set) var rows: [[String]] = []

    func add(_ more: [String]) { rows.append(more) }

    actor Answer {
        private(set) var response: TransportResponse?

        func keep(_ response: TransportResponse) { self.response = response }
    }
}
