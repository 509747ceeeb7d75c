import GRDB
import Testing

@testable import Tidemark

@Suite("A trigger on a view counts where changes that are applied come to it (I4)")
struct ViewTriggerTests {
    private static let view = """
        CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT);
        CREATE TABLE part (id TEXT PRIMARY KEY, item TEXT);
        CREATE VIEW shown AS SELECT id, title FROM item;
        CREATE TRIGGER show INSTEAD OF INSERT ON shown
        BEGIN INSERT OR REPLACE INTO item VALUES (NEW.id, NEW.title); END;
        """
    /// Makes another title on each device.
    private static let writer = """
        CREATE TRIGGER touch AFTER INSERT ON part
        BEGIN INSERT INTO Shown VALUES (NEW.item, hex(randomblob(8))); END;
        """

    private func guarded(_ device: Device) async throws -> Set<String> {
        Set(try await device.installed().shapes.filter(\.isGuarded).map(\.name))
    }

    @Test("a view that only the app writes to")
    func apart() async throws {
        #expect(try await guarded(Device(Self.view, tables: ["item", "part"])).isEmpty)
    }

    @Test("a view that another trigger writes to")
    func reached() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = Self.view + Self.writer
        let first = try await Device(schema, tables: ["item", "part"], server: server, in: directory, name: "first")
        let second = try await Device(schema, tables: ["item", "part"], server: server, in: directory, name: "second")
        #expect(try await guarded(second) == ["item"])
        try await first.sql("INSERT INTO part VALUES ('p1', 'i1')")
        for device in [first, second, first] { try await device.sync() }
        let rows = "SELECT id, title FROM item"
        #expect(try await second.rows(rows) == first.rows(rows))
        #expect(try await second.engine().verify().isClean)
    }
}
