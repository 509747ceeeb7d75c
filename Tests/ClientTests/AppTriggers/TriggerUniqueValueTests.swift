import GRDB
import Testing

@testable import Tidemark

@Suite("A trigger that makes room for a unique value decides between no candidates (I2, T12)")
struct TriggerUniqueValueTests {
    /// One address of a person is the default: the app's trigger takes that from the others.
    private let schema = """
        CREATE TABLE addr (id TEXT PRIMARY KEY, usr TEXT, def INTEGER DEFAULT 0);
        CREATE UNIQUE INDEX one_default ON addr(usr) WHERE def = 1;
        CREATE TRIGGER only_one BEFORE UPDATE OF def ON addr WHEN NEW.def = 1
        BEGIN UPDATE addr SET def = 0 WHERE usr = NEW.usr AND id <> NEW.id AND def = 1; END;
        CREATE TRIGGER only_one_new BEFORE INSERT ON addr WHEN NEW.def = 1
        BEGIN UPDATE addr SET def = 0 WHERE usr = NEW.usr AND id <> NEW.id AND def = 1; END;
        """
    private let all = "SELECT id, def FROM addr ORDER BY id"

    @Test("two defaults: the smaller id stays on every device, and the other is quarantined for all to see")
    func defaults() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(schema, tables: ["addr"], server: server, in: directory, name: "first")
        let second = try await Device(schema, tables: ["addr"], server: server, in: directory, name: "second")
        try await first.sql("INSERT INTO addr (id, usr) VALUES ('1', 'u'), ('2', 'u'), ('3', 'u')")
        for device in [first, second] { try await device.sync() }
        try await first.sql("UPDATE addr SET def = 1 WHERE id = '2'")
        try await second.sql("UPDATE addr SET def = 1 WHERE id = '3'")
        for device in [first, second, first, second] { try await device.sync() }
        for device in [first, second] {
            #expect(try await device.rows(all) == [#""1"|0"#, #""2"|1"#])
            let rows = try #require(try await device.engine().status().tables["addr"])
            #expect((rows.total, rows.quarantined) == (2, 1))
        }
        // The app decides: once one of them is no default any more, both are there again.
        try await first.sql("UPDATE addr SET def = 0 WHERE id = '2'")
        for device in [first, second, first] { try await device.sync() }
        for device in [first, second] {
            #expect(try await device.rows(all) == [#""1"|0"#, #""2"|0"#, #""3"|1"#])
            #expect(try await device.engine().verify().isClean)
        }
    }

    @Test(
        "a row whose key is no record id keeps its value, and the server's row is quarantined (I13)",
        arguments: ["", "BEGIN DELETE FROM addr WHERE usr = NEW.usr AND id <> NEW.id AND def = 1; END"])
    func namelessRow(other: String) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(schema, tables: ["addr"], server: server, in: directory, name: "first")
        let second = try await Device(schema, tables: ["addr"], server: server, in: directory, name: "second")
        try await first.sql("INSERT INTO addr (id, usr, def) VALUES ('2', 'u', 1)")
        try await second.sql("INSERT INTO addr (id, usr, def) VALUES (printf('%0200d', 1), 'u', 1)")
        if !other.isEmpty {
            try await second.sql(
                "DROP TRIGGER only_one_new; CREATE TRIGGER only_one_new BEFORE INSERT ON addr WHEN NEW.def = 1 \(other)"
            )
        }
        for device in [first, second] { try await device.sync() }
        #expect(try await second.rows("SELECT length(id), def FROM addr") == ["200|1"])
        #expect(try await second.engine().status().quarantined == 1)
        try await second.sql("UPDATE addr SET def = 0")
        try await second.sync()
        #expect(try await second.rows("SELECT length(id), def FROM addr ORDER BY 1") == ["1|1", "200|0"])
    }
}
