import Foundation
import GRDB
import Testing

@testable import Tidemark

@Suite("Apply: an answer changes everything it should, once, or nothing")
struct ApplyTests {
    private func note(_ id: String, _ version: Int, _ title: String) -> String {
        Device.upsert("note", id, version, #"{"title":"\#(title)"}"#)
    }

    @Test("a page that is replayed, late or foreign changes nothing")
    func replay() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let first = Device.page([note("n1", 1, "a")], next: "T1", head: 1)
        let second = Device.page(
            [note("n1", 2, "b"), Device.delete("note", "n2", 3)], since: "T1", next: "T2", head: 3)
        try await device.apply(first)
        try await device.apply(second, since: "T1")
        #expect(try await device.apply(first).pageTaken == false)
        #expect(try await device.apply(second, since: "T1").pageTaken == false)
        #expect(try await device.rows("SELECT title FROM note") == ["\"b\""])
        let foreign = second.replacing("w:1", with: "w:2")
        await #expect(throws: SyncError.self) { try await device.apply(foreign, since: "T1") }
        await #expect(throws: SyncError.self) { try await device.apply(second, since: "T2") }
    }

    @Test("an answer that is cut anywhere changes nothing")
    func cut() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let page = Array(Device.page([note("n1", 1, "a"), note("n2", 2, "b")]).utf8)
        for count in stride(from: 0, to: page.count, by: 7) {
            #expect(throws: (any Error).self) { try Answer(body: Array(page.prefix(count))) }
        }
        // Broken inside a row: found only while rows are being written, and everything is taken back.
        await #expect(throws: (any Error).self) {
            try await device.apply(
                Device.page([note("n1", 1, "a"), Device.upsert("note", "n2", 2, #"{"title":true}"#)]))
        }
        #expect(try await device.count("note") == 0)
        #expect(try await device.rows("SELECT checkpoint FROM tidemark_scope") == ["NULL"])
        #expect(try await device.count("tidemark_applying") == 0)
    }

    @Test("the server's rows are not captured, and the app's triggers run for them")
    func appTriggers() async throws {
        let device = try await Device(
            noteSchema + """
                CREATE VIRTUAL TABLE search USING fts5(title);
                CREATE TRIGGER keep_search AFTER INSERT ON note
                BEGIN INSERT INTO search(title) VALUES (NEW.title); END;
                """, tables: ["note"])
        try await device.apply(Device.page([note("n1", 1, "needle")]))
        #expect(try await device.count("search WHERE search MATCH 'needle'") == 1)
        #expect(try await device.count("tidemark_shadow_note") == 0)
        #expect(try await device.engine().status().warnings.isEmpty)
    }

    @Test("a remote change lands under a local edit of another field, and both are sent and kept")
    func rebase() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.apply(Device.page([Device.upsert("note", "n1", 1, #"{"title":"a","body":"a"}"#)], head: 1))
        try await device.sql("UPDATE note SET body = 'mine'")
        let theirs = Device.upsert("note", "n1", 5, #"{"title":"theirs","body":"theirs"}"#)
        try await device.apply(Device.page([theirs], since: "T1", next: "T2", head: 5), since: "T1")
        #expect(try await device.rows("SELECT title, body FROM note") == ["\"theirs\"|\"mine\""])
        _ = try await device.seal()
        let sealed = try #require(try await device.sealed().first)
        #expect(sealed.contains(#""baseVersion":5,"bases":{"body":1}"#))
        #expect(sealed.hasSuffix(#""fields":{"body":"mine"}"#))
    }

    @Test("an edit of a record that was deleted elsewhere stays on screen until the verdict, and is kept then")
    func deleteUnderEdit() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let here = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "a")
        let there = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "b")
        try await here.sql("INSERT INTO note (id, title) VALUES ('n1', 'a')")
        try await here.sync()
        try await there.sync()
        try await there.sql("DELETE FROM note")
        try await there.sync()
        try await here.sql("UPDATE note SET title = 'edited'")
        let engine = try here.engine()
        try await engine.syncNow()
        #expect(try await here.count("note") == 0)
        #expect(try await here.count("tidemark_shadow_note") == 0)
        let rejected = try await engine.rejectedOperations()
        #expect(rejected.map(\.code) == ["record_deleted"])
        #expect(rejected.first?.fields == ["title": "edited"])
        let conflicts = try await engine.conflicts()
        #expect(conflicts.map(\.rule) == [.deleteWins])
        #expect(conflicts.first?["title"]?.mine == "edited")
        try await engine.discard(try #require(rejected.first))
        #expect(try await engine.rejectedOperations().isEmpty)
    }

    @Test("an edit that the server took and a delete then covered unseen is listed as lost")
    func deleteOverTakenEdit() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let here = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "a")
        let there = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "b")
        try await here.sql("INSERT INTO note (id, title) VALUES ('n1', 'a'), ('n2', 'a')")
        try await here.sync()
        try await there.sync()
        try await here.sql("UPDATE note SET title = 'edited' WHERE id = 'n1'")
        try await here.sync()
        try await there.sql("DELETE FROM note")
        try await there.sync()
        let engine = try here.engine()
        try await engine.syncNow()
        #expect(try await here.count("note") == 0)
        let conflicts = try await engine.conflicts()
        #expect(conflicts.map(\.record) == ["n1"])
        #expect(conflicts.first?["title"]?.mine == "edited")
        #expect(conflicts.first?.rule == .deleteWins)
    }

    @Test("a tombstone that lands under an edit leaves the row on screen until the edit has its verdict")
    func tombstoneUnderEdit() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.apply(Device.page([note("n1", 1, "a")], head: 1))
        try await device.sql("UPDATE note SET title = 'mine'")
        let deletion = Device.delete("note", "n1", 5)
        try await device.apply(Device.page([deletion], since: "T1", next: "T2", head: 5), since: "T1")
        #expect(try await device.rows("SELECT title FROM note") == ["\"mine\""])
        let entries = try await device.seal()
        // The base is the row that was edited, so that the server sees an edit of a deleted record.
        #expect(try await device.sealed().first?.contains(#""baseVersion":1,"#) == true)
        let verdict = """
            {"lane":"lane-0001","number":1,"status":"rejected",
            "error":{"code":"record_deleted","detail":"d","hint":"h"}}
            """
        try await device.apply(Device.page([], since: "T2", next: "T3", head: 5, results: [verdict]), since: "T2")
        #expect(entries.count == 1)
        #expect(try await device.count("note") == 0)
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test("a verdict is applied once, and only by its own key")
    func verdictReplay() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'a')")
        _ = try await device.seal()
        let foreign = #"{"lane":"lane-9999","number":1,"status":"applied","version":3}"#
        try await device.apply(#"{"results":[\#(foreign)]}"#)
        #expect(try await device.sealed().count == 1)
        let own = #"{"lane":"lane-0001","number":1,"status":"applied","version":3}"#
        try await device.apply(#"{"results":[\#(own)]}"#)
        #expect(try await device.sealed().isEmpty)
        try await device.sql("UPDATE note SET title = 'b'")
        try await device.apply(#"{"results":[\#(own)]}"#)
        #expect(try await device.marked("note") == ["n1"])
        #expect(try await device.rows("SELECT title FROM note") == ["\"b\""])
    }

    @Test("a version that a verdict brought is not undone by an older row of a scan under way")
    func ahead() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.apply(Device.page([note("n0", 1, "x")], head: 5, hasMore: true))
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'mine')")
        _ = try await device.seal()
        try await device.apply(
            Device.page(
                [note("n1", 3, "older")], since: "T1", next: "T2", head: 5, hasMore: true,
                results: [#"{"lane":"lane-0001","number":1,"status":"applied","version":9}"#]), since: "T1")
        #expect(try await device.rows("SELECT title FROM note WHERE id = 'n1'") == ["\"mine\""])
        try await device.apply(Device.page([], since: "T2", next: "T3", head: 5), since: "T2")
        #expect(try await device.rows("SELECT record, version FROM tidemark_known_version") == ["\"n1\"|9"])
        try await device.apply(Device.page([], since: "T3", next: "T4", head: 9), since: "T3")
        #expect(try await device.count("tidemark_known_version") == 0)
    }

    @Test("an entity or a field of a newer schema is passed over")
    func unknown() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let changes = [
            Device.upsert("future", "f", 1, #"{"x":1}"#), Device.upsert("note", "n1", 2, #"{"new":[],"title":"a"}"#),
            #"{"type":"idmap","entity":"note","tempId":"t","id":"n9","version":3}"#, #"{"type":"marvel"}"#,
        ]
        let outcome = try await device.apply(Device.page(changes))
        #expect(outcome.applied == 1)
        #expect(outcome.skipped == 3)
        #expect(try await device.rows("SELECT title FROM note") == ["\"a\""])
    }

    @Test("foreign keys are guarded again after an apply, whether it went well or not")
    func foreignKeys() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.apply(Device.page([note("n1", 1, "a")]))
        let broken = Device.page([Device.upsert("note", "n2", 2, #"{"title":true}"#)], since: "T1")
        _ = try? await device.apply(broken, since: "T1")
        #expect(try await device.rows("PRAGMA foreign_keys") == ["1"])
    }
}
