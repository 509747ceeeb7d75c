import GRDB
import Testing
import Tidemark
import TidemarkTesting

/// Accounts, their lines and notes, whose ids the server gives.
enum AccountApp: ConvergenceApp {
    static let schema = """
        CREATE TABLE account (id INTEGER PRIMARY KEY, name TEXT NOT NULL, balance INTEGER NOT NULL DEFAULT 0,
            parent INTEGER REFERENCES account(id) ON DELETE SET NULL);
        CREATE TABLE line (account INTEGER REFERENCES account(id) ON DELETE CASCADE, number INTEGER, text TEXT,
            extra TEXT, PRIMARY KEY (account, number));
        CREATE TABLE note (id TEXT PRIMARY KEY, text TEXT);
        """
}

extension ConvergenceDevice where App == AccountApp {
    func engine(_ generator: inout SplitMix64) throws -> SyncEngine {
        var configuration = SyncConfiguration()
        let page = [1, 3, 50][Int.random(in: 0..<3, using: &generator)]
        (configuration.pageRange, configuration.firstPage) = (page...page, page)
        configuration.operationLimit = Int.random(in: 1...9, using: &generator)
        return try SyncEngine(
            for: queue,
            tables: [
                .table("account", ids: .server),
                .table("line", references: [.json("extra", path: "$.of[*]", to: "account")]),
                .table("note", ids: .server),
            ], scopes: scopes, transport: transport, configuration: configuration)
    }

    /// Groups are whole wherever a scan has ended. A filling may bring a pair again under its ids while this device
    /// still waits to hear of them: then it is there twice, and whole both times.
    func checkPairs(_ place: String) throws {
        try queue.read { db in
            // In mid-scan a page may end inside a group.
            let isWhole = try Bool.fetchOne(
                db, sql: "SELECT NOT scanning FROM tidemark_scope WHERE complete IS NOT NULL")
            guard isWhole == true else { return }
            let halves = try String.fetchAll(
                db,
                sql: """
                    SELECT text FROM note WHERE text LIKE 'pair-%' GROUP BY rtrim(text, 'leftrigh')
                    HAVING sum(text LIKE '%left') <> sum(text LIKE '%right')
                    """)
            #expect(halves == [], "\(place) \(name)")
        }
    }

    func rows(_ table: String, except records: Set<String>) throws -> [String] {
        try queue.read { db in
            let columns = try db.columns(in: table).map { "quote(\($0.name))" }.joined(separator: " || ',' || ")
            let record = table == "line" ? "json_array(account, number)" : "CAST(id AS TEXT)"
            return try Row.fetchAll(db, sql: "SELECT \(record), \(columns) AS row FROM \(table) ORDER BY row")
                .filter { !records.contains($0[0]) }.map { $0[1] }
        }
    }

    /// Edits that wait for a record which was refused are this device's alone until its app decides.
    func blocked(_ table: String) throws -> [String] {
        try queue.read { db in
            try String.fetchAll(db, sql: "SELECT record FROM tidemark_blocked WHERE entity = ?", arguments: [table])
        }
    }
}
