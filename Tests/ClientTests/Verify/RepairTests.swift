import GRDB
import Testing
import TidemarkServer

@testable import Tidemark

@Suite("Repair: one run puts right all that differs, or says why it does not")
struct RepairTests {
    private static let schema = """
        CREATE TABLE t (id TEXT PRIMARY KEY, v); CREATE TABLE u (id TEXT PRIMARY KEY, v);
        CREATE TABLE w (id TEXT PRIMARY KEY, v);
        """

    @Test("rows that the server does not know are sent, of every table in one run")
    func everyTable() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let device = try await Device(Self.schema, tables: ["t", "u", "w"], server: server, in: directory)
        let other = try await Device(
            Self.schema, tables: ["t", "u", "w"], server: server, in: directory, name: "other")
        try await device.sync()
        try await flip(
            device,
            "INSERT INTO t VALUES ('1', 1); INSERT INTO u VALUES ('2', 2), ('3', 3); INSERT INTO w VALUES (4, 4)")
        let report = try await device.engine().verify(repairing: true)
        #expect(report.isClean && (report.differing, report.repaired) == (4, 4), "\(report)")
        #expect(try compared(report, "u").unsentIDs.sorted() == ["2", "3"])
        #expect(try compared(report, "w").unsentIDs == ["4"])
        try await other.sync()
        #expect(try await other.rows("SELECT v FROM t UNION ALL SELECT v FROM u UNION ALL SELECT v FROM w").count == 4)
    }

    @Test("more of them than one request names are sent in one run too")
    func manyOfOneTable() async throws {
        let device = try await Device("CREATE TABLE t (id TEXT PRIMARY KEY, v);", tables: ["t"])
        try await device.sync()
        let rows = RecordFetch.requestLimit * 2 + 1
        try await flip(
            device,
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
            INSERT INTO t SELECT 'k' || i, i FROM n
            """)
        let report = try await device.engine().verify(repairing: true)
        #expect(report.isClean && report.repaired == rows, "\(report)")
    }

    @Test("a row that cannot be put right is named with the reason")
    func explained() async throws {
        let directory = try TestDirectory()
        let server = try await noteServer(directory, notes: 3)
        let device = try await Device(verifySchema, tables: ["note"], server: server, in: directory)
        try await device.sync()
        try await flip(device, "DELETE FROM note WHERE id = 'n1'")
        // Whenever the record is asked for, something was written unseen just then.
        for _ in 0..<100 {
            await device.wire.nextRecords { request, inner in
                try await device.sql(
                    """
                    INSERT OR IGNORE INTO tidemark_inferred(entity, record, scope, kind, held)
                    VALUES ('note', 'unseen', 'w:1', 1, 0)
                    """)
                return try await inner.send(request)
            }
        }
        let report = try await device.engine().verify(repairing: true)
        let table = try compared(report)
        #expect(!report.isClean && (table.differing, table.repaired) == (1, 0), "\(table)")
        #expect(table.unrepaired["n1"]?.contains("Verify again") == true, "\(table)")
    }
}
