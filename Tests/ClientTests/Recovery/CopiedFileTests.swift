import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("A device's file that is put back, or runs twice: nothing is lost and nothing done twice (I11, T20)")
struct CopiedFileTests {
    /// A device's file that stands elsewhere, opened by an app of its own.
    private func copy(of device: Device, as name: String, server: SyncServer) async throws -> Device {
        try await device.writer.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) }
        let from = URL(filePath: device.path)
        let to = device.directory.url.appending(path: "\(name).sqlite")
        try? FileManager.default.removeItem(at: to)
        try FileManager.default.copyItem(at: from, to: to)
        return try await Device(
            "SELECT 1", tables: device.tables.map(\.name), server: server, in: device.directory, name: name)
    }

    /// Two devices with one file, in which an edit is sealed that the server does not have yet.
    private func clones(
        of rows: String, sending edit: String
    ) async throws -> (server: SyncServer, first: Device, second: Device) {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "first")
        try await first.sql(rows)
        try await first.sync()
        try await first.sql(edit)
        await first.wire.loseRequest()
        await #expect(throws: SyncError.self) { try await first.sync() }
        return (server, first, try await copy(of: first, as: "second", server: server))
    }

    private func expectSame(_ devices: [Device]) async throws {
        for device in devices + devices { try await device.sync() }
        let first = try await devices[0].rows("SELECT id, title, body, rank FROM note ORDER BY id")
        for device in devices {
            #expect(try await device.rows("SELECT id, title, body, rank FROM note ORDER BY id") == first)
            #expect(try await device.sealed() == [])
            #expect(try await device.count("tidemark_shadow_note") == 0)
        }
    }

    @Test("a device that is put back to an earlier state: old edits are answered as they were, new ones are new")
    func restored() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'a'), ('n2', 'a')")
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'sealed' WHERE id = 'n1'")
        await device.wire.loseRequest()
        await #expect(throws: SyncError.self) { try await device.sync() }
        try await device.sql("UPDATE note SET title = 'marked' WHERE id = 'n2'")
        let backup = try await copy(of: device, as: "backup", server: server)
        // The device goes on: what is in the backup is answered, acknowledged and followed by more.
        try await device.sync()
        try await device.sql(
            "UPDATE note SET body = 'behind the backup' WHERE id = 'n1'; DELETE FROM note WHERE id = 'n2'")
        for _ in 0..<2 { try await device.sync() }
        let head = try await server.head()
        // It is put back, and edited further.
        let restored = try await copy(of: backup, as: "restored", server: server)
        try await restored.sql("INSERT INTO note(id, title) VALUES ('n3', 'after')")
        try await restored.sync()
        #expect(try await server.head() == head + 1, "only what is new was done")
        #expect(
            try await restored.rows("SELECT id, title, body FROM note ORDER BY id") == [
                "\"n1\"|\"sealed\"|\"behind the backup\"", "\"n3\"|\"after\"|NULL",
            ])
        let other = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "other")
        try await expectSame([restored, other])
    }

    @Test("a file that runs on two devices: what both hold is done once, and each one's own edits arrive")
    func cloned() async throws {
        let (server, first, second) = try await clones(
            of: "INSERT INTO note(id, title) VALUES ('n1', 'a'), ('n2', 'a')",
            sending: "UPDATE note SET title = 'both' WHERE id = 'n1'; INSERT INTO note(id) VALUES ('n4')")
        let head = try await server.head()
        try await first.sql("UPDATE note SET body = 'first' WHERE id = 'n1'; INSERT INTO note(id) VALUES ('f')")
        try await second.sql("UPDATE note SET body = 'second' WHERE id = 'n2'; INSERT INTO note(id) VALUES ('s')")
        try await expectSame([first, second])
        #expect(try await server.head() == head + 6)
        #expect(
            try await first.rows("SELECT id, title, body FROM note ORDER BY id") == [
                "\"f\"|NULL|NULL", "\"n1\"|\"both\"|\"first\"", "\"n2\"|\"a\"|\"second\"", "\"n4\"|NULL|NULL",
                "\"s\"|NULL|NULL",
            ])
        // They stay apart as any two devices do.
        try await first.sql("UPDATE note SET rank = 1 WHERE id = 'n1'")
        try await second.sql("UPDATE note SET rank = 2 WHERE id = 'n2'")
        try await expectSame([first, second])
    }

    @Test(
        "a machine that is copied while it runs numbers one lane twice: both edits are taken, under keys of their own")
    func sameLane() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "first")
        let engine = try first.engine()
        try await first.sql("INSERT INTO note(id, title) VALUES ('n1', 'a'), ('n2', 'a'), ('n3', 'a')")
        try await engine.syncNow()
        // Both go on in the lane that the running engine holds.
        let lane = try #require(try await first.rows("SELECT id FROM tidemark_lane").first).replacing("\"", with: "")
        let second = try await copy(of: first, as: "second", server: server)
        try await first.sql("UPDATE note SET title = 'first' WHERE id = 'n1'")
        _ = try await first.seal(lane: lane)
        try await second.sql("UPDATE note SET title = 'second' WHERE id = 'n2'")
        _ = try await second.seal(lane: lane)
        try await second.sql("UPDATE note SET title = 'second' WHERE id = 'n3'")
        _ = try await second.seal(lane: lane)
        try await engine.syncNow()
        try await second.sync()
        try await expectSame([first, second])
        #expect(try await second.engine().rejectedOperations().isEmpty)
        #expect(
            try await first.rows("SELECT id, title FROM note ORDER BY id") == [
                "\"n1\"|\"first\"", "\"n2\"|\"second\"", "\"n3\"|\"second\"",
            ])
    }

    @Test("a server that finds every key used does not send an edit round and round")
    func mismatchForEver() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sync()
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'a')")
        for _ in 0..<3 {
            await device.wire.next { request, inner in
                var answer = try await inner.send(request)
                let text = String(decoding: answer.body, as: UTF8.self)
                let verdict = #""status":"rejected","error":{"code":"operation_mismatch","detail":"","hint":""}"#
                answer.body = Array(text.replacing(#""status":"applied","version":1"#, with: verdict).utf8)
                return answer
            }
        }
        let engine = try device.engine()
        _ = try? await engine.syncNow()
        #expect(try await engine.rejectedOperations().map(\.code) == ["operation_mismatch"])
        #expect(try await device.sealed() == [])
    }

    @Test("a clone that is behind hears of what the other has acknowledged by fetching it")
    func acknowledgedElsewhere() async throws {
        let (server, first, second) = try await clones(
            of: "INSERT INTO note(id, title) VALUES ('n1', 'a')",
            sending: "UPDATE note SET title = 'b'")
        for _ in 0..<3 { try await first.sync() }
        try await server.commit(to: "w:1") { $0.upsert("note", id: "n1", ["body": "theirs"]) }
        try await second.sync()
        #expect(try await second.count("tidemark_operation WHERE state = 'outcome_unknown'") == 1)
        #expect(try await second.rows("SELECT title, body FROM note") == ["\"b\"|\"theirs\""])
        try await expectSame([first, second])
    }

    @Test("a record that a clone made anew, on a delete whose answer the other copy got, is a new one")
    func madeAnew() async throws {
        let (_, first, second) = try await clones(
            of: "INSERT INTO note(id, title, body) VALUES ('n1', 'a', 'b')",
            sending: "DELETE FROM note")
        try await second.sql("INSERT INTO note(id, title, body) VALUES ('n1', 'anew', 'b')")
        for _ in 0..<3 { try await first.sync() }
        for _ in 0..<2 { try await second.sync() }
        #expect(try await second.count("tidemark_operation WHERE state = 'outcome_unknown'") == 1)
        #expect(try await second.engine().rejectedOperations().isEmpty)
        try await expectSame([first, second])
        #expect(try await first.rows("SELECT title, body FROM note") == ["\"anew\"|\"b\""])
    }
}
