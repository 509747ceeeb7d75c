import GRDB
import Testing

@testable import Tidemark

@Suite("A trigger that ends the transaction quarantines its row, and a page stays one transaction (I2, I13)")
struct TriggerRollbackTests {
    private let tables = """
        CREATE TABLE parent (id TEXT PRIMARY KEY, name); CREATE TABLE child (id TEXT PRIMARY KEY, parent TEXT, v);
        """

    /// As genfkey and other writers of foreign keys had it before SQLite enforced them.
    private let guards = """
        CREATE TRIGGER fki BEFORE INSERT ON child WHEN (SELECT id FROM parent WHERE id = NEW.parent) IS NULL
        BEGIN SELECT RAISE(ROLLBACK, 'violates foreign key'); END;
        """

    private func pair(_ more: String) async throws -> (Device, Device) {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let names = ["child", "parent"]
        return (
            try await Device(tables, tables: names, server: server, in: directory, name: "first"),
            try await Device(tables + more, tables: names, server: server, in: directory, name: "second")
        )
    }

    private func expectSums(_ device: Device) async throws {
        let status = try await device.engine().status()
        for table in ["parent", "child"] {
            #expect(try await status.tables[table]?.total == device.count(table), "\(table): \(status.tables)")
        }
    }

    @Test("children that come before their parents find their places, and nothing is sent back")
    func parents() async throws {
        let (first, second) = try await pair(guards)
        try await first.sql("INSERT INTO parent VALUES ('p', 'P'), ('q', 'Q'); INSERT INTO child VALUES ('c', 'p', 1)")
        try await first.sql("INSERT INTO child VALUES ('z', 'q', 0)")
        try await first.sync()
        try await second.sync()
        try await expectSums(second)
        try await first.sql("DELETE FROM child WHERE id = 'c'; DELETE FROM parent WHERE id = 'p'")
        try await first.sql("UPDATE child SET v = 'edited' WHERE id = 'z'")
        try await first.sync()
        let report = try await second.engine().syncNow()
        #expect(report.pushed == 0)
        for table in ["parent", "child"] {
            #expect(try await second.rows("SELECT * FROM \(table)") == first.rows("SELECT * FROM \(table)"))
        }
        try await expectSums(second)
        #expect(try await second.engine().verify().isClean)
    }

    @Test("a row that is refused for good is quarantined, and the others of the page are there")
    func refused() async throws {
        let (first, second) = try await pair(
            """
            CREATE TRIGGER no BEFORE INSERT ON child WHEN NEW.v = 'bad' BEGIN SELECT RAISE(ROLLBACK, 'no'); END;
            """)
        try await first.sql("INSERT INTO child VALUES ('1', 'p', 'ok'), ('2', 'p', 'bad'), ('3', 'p', 'bad')")
        try await first.sql("INSERT INTO parent VALUES ('p', 'P')")
        try await first.sync()
        try await second.sync()
        #expect(try await second.rows("SELECT id FROM child") == [#""1""#])
        #expect(try await second.count("parent") == 1)
        #expect(try await second.engine().status().tables["child"]?.quarantined == 2)
        try await expectSums(second)
        try await first.sql("UPDATE child SET v = 'good' WHERE id = '3'")
        try await first.sync()
        try await second.sync()
        #expect(try await second.rows("SELECT id FROM child ORDER BY id") == [#""1""#, #""3""#])
        try await expectSums(second)
    }

    @Test("a first fill goes through it, too")
    func filling() async throws {
        let (first, second) = try await pair(guards)
        try await first.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30)
            INSERT INTO child SELECT 'c' || i, 'p' || (i % 5), i FROM n;
            INSERT INTO parent VALUES ('p0', 0), ('p1', 1), ('p2', 2), ('p3', 3)
            """)
        try await first.sync()
        for _ in 1...3 { try await second.sync() }
        try await expectSums(second)
        #expect(try await second.count("child") == 24)
        #expect(try await second.engine().status().tables["child"]?.quarantined == 6)
    }
}
