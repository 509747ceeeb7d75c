import Foundation
import GRDB
import Testing

@testable import Tidemark

@Suite("Quarantine: a row that the app's schema does not take never fails the page")
struct QuarantinedRowTests {
    private func slug(_ id: String, _ version: Int, _ slug: String) -> String {
        Device.upsert("note", id, version, #"{"slug":"\#(slug)"}"#)
    }

    @Test("two records that swap a unique value both arrive, in either order", arguments: [false, true])
    func swap(isReversed: Bool) async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.apply(Device.page([slug("n1", 1, "x"), slug("n2", 2, "y")]))
        let changes = [slug("n1", 3, "y"), slug("n2", 4, "x")]
        try await device.apply(
            Device.page(isReversed ? changes.reversed() : changes, since: "T1", next: "T2"), since: "T1")
        #expect(try await device.rows("SELECT id, slug FROM note ORDER BY id") == ["\"n1\"|\"y\"", "\"n2\"|\"x\""])
        #expect(try await device.count("tidemark_quarantine") == 0)
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test("of two records with one unique value the smaller id stands, whoever comes first", arguments: [false, true])
    func candidates(isReversed: Bool) async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let changes = [slug("n1", 1, "x"), slug("n2", 2, "x")]
        try await device.apply(Device.page(isReversed ? changes.reversed() : changes))
        #expect(try await device.rows("SELECT id FROM note") == ["\"n1\""])
        guard case .quarantined = try await device.engine().state(of: "note", id: "n2") else {
            Issue.record("the loser is not shown as quarantined")
            return
        }
        #expect(try await device.engine().status().quarantined == 1)
        // The winner gives the value up: the loser takes its place.
        try await device.apply(Device.page([slug("n1", 3, "z")], since: "T1", next: "T2"), since: "T1")
        #expect(try await device.rows("SELECT id FROM note ORDER BY id") == ["\"n1\"", "\"n2\""])
        #expect(try await device.count("tidemark_quarantine") == 0)
    }

    @Test("a row that a CHECK, a NOT NULL, a STRICT type or a trigger refuses is quarantined with the reason")
    func refusals() async throws {
        let device = try await Device(
            """
            CREATE TABLE strict (id TEXT PRIMARY KEY, n INTEGER NOT NULL CHECK (n > 0)) STRICT;
            CREATE TRIGGER refuse BEFORE INSERT ON strict WHEN NEW.n = 13
            BEGIN SELECT RAISE(ABORT, 'thirteen'); END;
            """, tables: ["strict"])
        let rows = ["null", "-1", "\"text\"", "13", "7"]
        let changes = rows.enumerated().map { Device.upsert("strict", "s\($0)", $0 + 1, #"{"n":\#($1)}"#) }
        let outcome = try await device.apply(Device.page(changes))
        #expect(outcome.quarantined == 4)
        #expect(try await device.rows("SELECT n FROM strict") == ["7"])
        let reasons = try await device.rows("SELECT reason FROM tidemark_quarantine ORDER BY record")
        #expect(reasons.last?.contains("thirteen") == true)
        // A later version that fits finds its place; a tombstone takes the quarantined row away.
        try await device.apply(
            Device.page(
                [Device.upsert("strict", "s0", 9, #"{"n":1}"#), Device.delete("strict", "s1", 10)], since: "T1",
                next: "T2"), since: "T1")
        #expect(try await device.rows("SELECT id FROM strict ORDER BY id") == ["\"s0\"", "\"s4\""])
        #expect(try await device.count("tidemark_quarantine") == 2)
    }

    @Test("a local edit that loses its unique value keeps its edit and is sent")
    func evictedEdit() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, title, slug) VALUES ('n2', 'mine', 'x')")
        try await device.apply(Device.page([slug("n1", 1, "x")]))
        #expect(try await device.rows("SELECT id FROM note") == ["\"n1\""])
        _ = try await device.seal()
        #expect(try await device.sealed().first?.contains(#""id":"n2""#) == true)
        #expect(try await device.sealed().first?.contains(#""title":"mine""#) == true)
    }

    @Test("a child that comes before its parent arrives")
    func childFirst() async throws {
        let device = try await Device(family, tables: ["parent", "child"])
        try await device.apply(
            Device.page([
                Device.upsert("child", "c", 1, #"{"parent":"p"}"#), Device.upsert("parent", "p", 2, "{}"),
            ]))
        #expect(try await device.count("child JOIN parent ON parent.id = child.parent") == 1)
    }

    @Test("children of a deleted parent go by the schema's own rule, as edits, once the scan has ended")
    func deletedParent() async throws {
        let device = try await Device(family, tables: ["parent", "child"])
        try await device.apply(
            Device.page([
                Device.upsert("parent", "p", 1, "{}"), Device.upsert("child", "c1", 2, #"{"parent":"p"}"#),
                Device.upsert("child", "c2", 3, #"{"friend":"p"}"#),
                Device.upsert("child", "c3", 4, #"{"parent":"q"}"#),
                Device.upsert("grandchild", "g", 5, "{}"),
            ]))
        try await device.sql("INSERT INTO grandchild VALUES ('g', 'c1')")
        let first = Device.page([Device.delete("parent", "p", 9)], since: "T1", next: "T2", hasMore: true)
        try await device.apply(first, since: "T1")
        #expect(try await device.count("child") == 3)
        try await device.apply(Device.page([], since: "T2", next: "T3"), since: "T2")
        #expect(try await device.rows("SELECT id, friend FROM child ORDER BY id") == ["\"c2\"|NULL", "\"c3\"|NULL"])
        #expect(try await device.count("grandchild") == 0)
        #expect(try await device.marked("child") == ["c1", "c2"])
    }

    private let family = """
        CREATE TABLE parent (id TEXT PRIMARY KEY);
        CREATE TABLE child (id TEXT PRIMARY KEY, parent TEXT REFERENCES parent ON DELETE CASCADE,
          friend TEXT REFERENCES parent(id) ON DELETE SET NULL);
        CREATE TABLE grandchild (id TEXT PRIMARY KEY, child TEXT REFERENCES child(id) ON DELETE CASCADE);
        """

    @Test(
        "the smaller id stands under partial, expression and generated unique indexes too, in any order",
        arguments: [
            "a TEXT, gone INTEGER); CREATE UNIQUE INDEX u ON t(a) WHERE gone = 0",
            "a TEXT, gone INTEGER); CREATE UNIQUE INDEX u ON t(lower(a))",
            "a TEXT, gone INTEGER, g TEXT AS (lower(a)) STORED UNIQUE)",
            "a TEXT, gone INTEGER, g TEXT AS (lower(a)), UNIQUE (gone, g))",
        ])
    func hiddenContenders(columns: String) async throws {
        let isPartial = columns.contains("WHERE")
        let low = Device.upsert("t", "b", 2, #"{"a":"x","gone":0}"#)
        let high = Device.upsert("t", "c", 1, #"{"a":"x","gone":0}"#)
        let bystander = Device.upsert("t", "a", 3, #"{"a":"\#(isPartial ? "x" : "y")","gone":1}"#)
        for order in [[high, low, bystander], [bystander, high, low], [low, high, bystander]] {
            let device = try await Device("CREATE TABLE t (id TEXT PRIMARY KEY, \(columns);", tables: ["t"])
            try await device.apply(Device.page(order))
            #expect(try await device.rows("SELECT id FROM t ORDER BY id") == ["\"a\"", "\"b\""])
            #expect(try await device.rows("SELECT record FROM tidemark_quarantine") == ["\"c\""])
            #expect(try await device.count("tidemark_shadow_t") == 0)
        }
    }

    @Test("a row that a trigger refuses for want of another row comes up when that row has come")
    func refusedByTrigger() async throws {
        let device = try await Device(
            """
            CREATE TABLE p (id TEXT PRIMARY KEY, t TEXT); CREATE TABLE k (id TEXT PRIMARY KEY, p TEXT);
            CREATE TRIGGER guard BEFORE INSERT ON k WHEN NOT EXISTS (SELECT 1 FROM p WHERE id = NEW.p)
            BEGIN SELECT RAISE(ABORT, 'no parent'); END;
            """, tables: ["p", "k"])
        try await device.apply(Device.page([Device.upsert("k", "k1", 1, #"{"p":"p1"}"#)], head: 1))
        #expect(try await device.rows("SELECT contends FROM tidemark_quarantine") == ["1"])
        try await device.apply(
            Device.page([Device.upsert("p", "p1", 2, #"{"t":"x"}"#)], since: "T1", next: "T2", head: 2), since: "T1")
        try await device.apply(Device.page([], since: "T2", next: "T3", head: 2), since: "T2")
        #expect(try await device.count("k") == 1)
    }
}
