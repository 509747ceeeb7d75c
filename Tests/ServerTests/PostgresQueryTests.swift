import Foundation
import PostgresCluster
import Testing

@testable import TidemarkServer

@Suite("What the server of PostgreSQL is asked names the scope")
struct PostgresQueryTests {
    /// Statements that look at all scopes at once, and why.
    private static let others: Set<String> = [
        // The operator's list of refusals is bounded over all scopes, and an entry is let go of by its number.
        "trim rejections", "discard rejection",
        // What the sweep removes, the oldest first; each scope's rows are then removed by scope.
        "superseded",
        // A device's temporary ids are kept for as long as it is known in any scope.
        "forget aliases",
    ]

    @Test("No statement of a scope's table goes without the scope, but for a closed list", arguments: 1...2)
    func queries(seed: UInt64) async throws {
        let cluster = try await offPool {
            let cluster = try PostgresCluster()
            for setting in ["log_statement = 'all'", "log_line_prefix = '@@'"] {
                try cluster.psql("ALTER SYSTEM SET \(setting)")
            }
            try cluster.psql("SELECT pg_reload_conf()")
            return cluster
        }
        let bench = try StoreBench(.postgres, on: cluster)
        var script = StoreScript(seed: seed)
        for _ in 1...300 { _ = try await script.call([bench]) }
        let heavy = #"{"n":""# + String(repeating: "x", count: 20_000) + #""}"#
        _ = try await bench.write(StoreNames.scopes[0]) { try $0.append(.upsert("heavy", heavy), at: 1) }
        _ = try await bench.store.portrait()
        let log = try await offPool {
            try cluster.psql("SELECT pg_read_file(current_setting('data_directory') || '/../log')")
        }
        let asked = Self.asked(log)
        let never = try Self.declared().subtracting(asked.keys)
        #expect(never == [], "never asked, so never looked at: \(never.sorted())")
        let unscoped = asked.filter { Self.isOfScopes($0.value) && !Self.namesScope($0.value) }
        #expect(Set(unscoped.keys).subtracting(Self.others) == [], "\(unscoped)")
    }

    /// The names of all statements that the store has for a scope.
    private static func declared() throws -> Set<String> {
        let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let folder = tests.deletingLastPathComponent().appending(path: "Sources/TidemarkPostgres/Scope")
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
        let names = try files.flatMap { file in
            try String(contentsOf: file, encoding: .utf8).matches(of: /Statement\(\s*"([^"]+)"/).map { String($0.1) }
        }
        return Set(names)
    }

    /// The log's statements by the names that they were prepared under.
    private static func asked(_ log: String) -> [String: String] {
        var asked: [String: String] = [:]
        for entry in log.components(separatedBy: "@@") {
            guard let found = try? /LOG: +execute ([^:]+): (.*)/.dotMatchesNewlines().wholeMatch(in: entry) else {
                continue
            }
            asked[String(found.1)] = String(found.2)
        }
        return asked
    }

    private static func isOfScopes(_ sql: String) -> Bool {
        sql.contains(
            /\b(FROM|INTO|UPDATE|JOIN|USING)\s+(incarnation|change|digest|lane|verdict|device|rejection|capture)\b/)
    }

    private static func namesScope(_ sql: String) -> Bool {
        sql.contains(#/[ .]scope = /#) || sql.contains(#/INSERT INTO \w+\s*\([^)]*\bscope\b/#)
    }
}
