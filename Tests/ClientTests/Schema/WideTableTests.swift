import GRDB
import Testing

@testable import Tidemark

@Suite("Tables of many columns sync like others, and one of too many is refused by name")
struct WideTableTests {
    private func schema(_ count: Int) -> String {
        "CREATE TABLE wide (id TEXT PRIMARY KEY, \((1..<count).map { "c\($0)" }.joined(separator: ", ")));"
    }

    @Test("inserted, edited on both sides, rebuilt, verified")
    func synced() async throws {
        let count = 600
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(schema(count), tables: ["wide"], server: server, in: directory, name: "first")
        let second = try await Device(schema(count), tables: ["wide"], server: server, in: directory, name: "second")
        let last = "c\(count - 1)"
        try await first.sql("INSERT INTO wide (id, c1, \(last)) VALUES ('a', 1, 'x'), ('b', 2, 'y')")
        try await first.sync()
        try await second.sync()
        try await first.sql("UPDATE wide SET c1 = 'mine' WHERE id = 'a'")
        try await second.sql("UPDATE wide SET \(last) = 'theirs' WHERE id = 'a'; DELETE FROM wide WHERE id = 'b'")
        for device in [second, first, second] { try await device.sync() }
        for device in [first, second] {
            #expect(try await device.rows("SELECT id, c1, \(last) FROM wide") == [#""a"|"mine"|"theirs""#])
            #expect(try await device.engine().verify().isClean)
        }
        try await first.sql(
            "CREATE TABLE fresh AS SELECT * FROM wide; DROP TABLE wide; \(schema(count)) INSERT INTO wide "
                + "SELECT * FROM fresh; DROP TABLE fresh; UPDATE wide SET c2 = 'unseen'")
        try await first.sync()
        try await second.sync()
        #expect(try await second.rows("SELECT c2 FROM wide") == [#""unseen""#])
    }

    @Test("with as many columns as may be, it goes from device to device")
    func widest() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let widest = schema(FileTable.columnLimit)
        let first = try await Device(widest, tables: ["wide"], server: server, in: directory, name: "first")
        let second = try await Device(widest, tables: ["wide"], server: server, in: directory, name: "second")
        try await first.sql("INSERT INTO wide (id, c1, c1979) VALUES ('a', 1, 'x')")
        for device in [first, second] { try await device.sync() }
        #expect(try await second.rows("SELECT id, c1, c1979 FROM wide") == [#""a"|1|"x""#])
    }

    @Test("beyond it the table is refused, with its name and the limit")
    func refused() async throws {
        let file = try DatabaseQueue()
        try await file.write { [sql = schema(FileTable.columnLimit + 1)] in try $0.execute(sql: sql) }
        let flaws = try await file.read { try TableFlaw.all($0, "wide", nil) }
        #expect(flaws.map(\.reason) == ["Table 'wide' has 1981 columns; up to 1980 can be synced."])
    }
}
