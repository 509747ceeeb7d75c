import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Text that is not UTF-8 stays text, and stays on its device, whatever becomes of its scope (I13)")
struct UnsendableTextTests {
    private static let types = "SELECT id, typeof(title), hex(title) FROM item ORDER BY id"

    private func types(_ device: Device) async throws -> [String] {
        try await device.writer.read { db in
            try Row.fetchAll(db, sql: Self.types).map { "\($0[0] as String) \($0[1] as String) \($0[2] as String)" }
        }
    }

    @Test("a scope that is lost and regained sends no bytes over the good value, and takes no new row away")
    func lostScope() async throws {
        let world = try MultiScopeWorld()
        let first = try await world.device("first", scopes: ["w:a"])
        let second = try await world.device("second", scopes: ["w:a"])
        try await first.sql("INSERT INTO item (id, w, title) VALUES ('1', 'a', 'x'), ('2', 'a', 'x')")
        try await first.sync()
        try await second.sync()
        try await first.sql(
            """
            UPDATE item SET title = CAST(X'ff' AS TEXT) WHERE id = '1';
            INSERT INTO item (id, w, title) VALUES ('5', 'a', CAST(X'fe' AS TEXT));
            INSERT INTO item (id, w, title) VALUES ('6', 'a', CAST(zeroblob(1048577) AS TEXT))
            """)
        for isSealed in [true, false] {
            if isSealed { try await first.sync() }
            await world.withdrawn.insert("w:a")
            await #expect(throws: SyncError.self) { try await first.sync() }
            #expect(try await first.items().map { $0.prefix(1) } == ["5", "6"])
            let status = try await first.engine().status()
            #expect(status.rows.total == 2)
            let edit = try #require(try await first.engine().orphanedEdits().first)
            #expect(edit.record == "1")
            #expect(edit.fields == ["title": .blob([0xff])])

            await world.withdrawn.remove("w:a")
            try await first.sync()
            #expect(try await types(first).prefix(3) == ["1 text FF", "2 text 78", "5 text FE"])
            #expect(try await first.engine().status().rows.unable == 3)
            #expect(try await first.engine().status().rows.total == 4)
            try await second.sync()
            #expect(try await types(second) == ["1 text 78", "2 text 78"])
        }
        // What can be sent in its place goes.
        try await first.sql("UPDATE item SET title = 'good' WHERE id <> '2'")
        try await first.sync()
        try await second.sync()
        #expect(try await second.items() == ["1 a good", "2 a x", "5 a good", "6 a good"])
    }

    @Test("a row that waits outside the table for its place comes back as the text that it was")
    func quarantined() async throws {
        let world = try MultiScopeWorld()
        let first = try await world.device("first", scopes: ["w:a"])
        let second = try await world.device("second", scopes: ["w:a"])
        try await second.sql("INSERT INTO item (id, w, slug) VALUES ('1', 'a', 's')")
        try await second.sync()
        try await first.sql("INSERT INTO item (id, w, title, slug) VALUES ('2', 'a', CAST(X'ff' AS TEXT), 's')")
        try await first.sync()
        #expect(try await counts(first) == [1, 0, 1])
        try await second.sql("UPDATE item SET slug = 't'")
        try await second.sync()
        try await first.sync()
        #expect(try await types(first).last == "2 text FF")
        #expect(try await counts(first) == [1, 1, 0])
        // Evicted once more, edited meanwhile, and back again.
        try await second.sql("UPDATE item SET slug = 's', title = 'b'")
        try await second.sync()
        try await first.sync()
        #expect(try await counts(first) == [1, 0, 1])
        #expect(try await first.engine().verify().isClean)
        try await second.sql("UPDATE item SET slug = NULL")
        try await second.sync()
        try await first.sync()
        #expect(try await counts(first) == [1, 1, 0])
        #expect(try await first.engine().verify().isClean)
    }

    /// Rows that are confirmed, that cannot travel, and that are kept outside the table.
    private func counts(_ device: Device) async throws -> [Int] {
        let rows = try await device.engine().status().rows
        #expect(try await rows.total == device.items().count)
        return [rows.confirmed, rows.unable, rows.quarantined]
    }
}
