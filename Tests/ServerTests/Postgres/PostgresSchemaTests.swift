import PostgresCluster
import Testing
import TidemarkPostgres

@testable import TidemarkServer

@Suite("The tables can be spread by scope")
struct PostgresSchemaTests {
    /// Keys that cannot begin with the scope, and why.
    private static let otherKeys = [
        // A device's temporary id stands for one record in whatever scope it is named: a row may move between scopes.
        "alias(principal, client, entity, temporary)",
        // The operator's own tables, each with records of many scopes.
        "attached_table(entity)", "attached_table(id)", "attached_table(relation)",
        // Each scope's count of blobs.
        "blob_scope(scope)",
        // A hook, which hears of many scopes.
        "hook(name)",
        // Facts of the whole store.
        "meta(key)",
        // The scope's own row.
        "scope(name)",
        // A connection, which writes to any scope.
        "writer(id)",
    ]

    /// Indexes beside the keys that do not begin with the scope: for what looks at all scopes at once.
    private static let otherIndexes = [
        // Temporary ids that are old, and those of a record that another scope would take.
        "alias(entity, record)", "alias(made_at)",
        // What the sweep removes, the oldest first.
        "change(superseded_at, scope, version)",
        // Whether a device is known anywhere: its temporary ids are kept for as long.
        "device(principal, client)", "lane(principal, client)",
        // The operator's list of refusals over all scopes, the newest first.
        "rejection(id)",
    ]

    @Test("Every key begins with the scope, but for a closed list")
    func keys() async throws {
        let found = try await indexes("i.indisunique")
        #expect(found.filter { !$0.contains("(scope, ") } == Self.otherKeys)
        #expect(found.count == Self.otherKeys.count + 14)
    }

    @Test("Every other index begins with the scope, but for a closed list")
    func otherIndexes() async throws {
        let found = try await indexes("NOT i.indisunique")
        #expect(found.filter { !$0.contains("(scope, ") } == Self.otherIndexes)
    }

    @Test("tables that grow with records and devices can be partitioned by scope, and a later node takes them so")
    func partitioned() async throws {
        let bench = try PostgresBench()
        let node = try bench.node { $0.partitions = 3 }
        defer { node.close() }
        let (cluster, schema) = (bench.cluster, bench.schema)
        let parts = try await offPool {
            try cluster.psql(
                """
                SELECT parent.relname || ' ' || count(*) || ' ' || pg_get_partkeydef(parent.oid)
                FROM pg_inherits JOIN pg_class parent ON parent.oid = inhparent
                JOIN pg_class part ON part.oid = inhrelid
                WHERE parent.relnamespace = '\(schema)'::regnamespace AND part.relkind = 'r'
                GROUP BY parent.oid, parent.relname ORDER BY parent.relname
                """)
        }
        #expect(
            parts.split(separator: "\n")
                == ["blob", "blob_piece", "change", "deletes", "device", "digest", "lane", "verdict"].map {
                    "\($0) 3 HASH (scope)"
                })
        let later = try bench.node()
        defer { later.close() }
        for scope: Scope in ["a", "b", "c", "d"] {
            _ = try await later.write(scope) { try $0.append(.event("e"), at: 1) }
            #expect(try await bench.gapless(scope, in: node).count == 1)
        }
        #expect(throws: PostgresError.self) { try PostgresBench().node { $0.partitions = 33 } }
    }

    /// Writes a record and one that takes its place, and closes the node.
    private func writeTwice(to node: PostgresStore) async throws {
        for (moment, row) in [#"{"n":1}"#, #"{"n":22}"#].enumerated() {
            _ = try await node.write("s") { try $0.append(.upsert("a", row), at: Int64(moment + 1)) }
        }
        node.close()
    }

    @Test("a store of the version before counts what its scopes keep")
    func older() async throws {
        let bench = try PostgresBench()
        let node = try bench.node()
        try await writeTwice(to: node)
        let (cluster, schema) = (bench.cluster, bench.schema)
        _ = try await offPool {
            try cluster.psql(
                """
                ALTER TABLE \(schema).scope DROP COLUMN erased_at, DROP COLUMN superseded_rows,
                    DROP COLUMN superseded_bytes,
                    DROP COLUMN live_rows, DROP COLUMN live_bytes;
                DROP INDEX \(schema).change_window, \(schema).alias_scope;
                CREATE TABLE \(schema).assigned (number bigint NOT NULL, entity bytea PRIMARY KEY);
                UPDATE \(schema).meta SET number = 1 WHERE key = 'schema'
                """)
        }
        let later = try bench.node()
        defer { later.close() }
        #expect(try await later.read("s") { $0.state.size } == ScopeSize(rows: 1, bytes: 8))
        #expect(try await later.read("s") { $0.state.superseded } == ScopeSize(rows: 1, bytes: 7))
    }

    @Test("the version before runs beside this one until the first erasure, and starts no more then")
    func erasable() async throws {
        let bench = try PostgresBench()
        let (cluster, schema) = (bench.cluster, bench.schema)
        func form() async throws -> String {
            try await offPool { try cluster.psql("SELECT number FROM \(schema).meta WHERE key = 'schema'") }
                .filter(\.isNumber)
        }
        try bench.node().close()
        // As the version before has made it.
        _ = try await offPool {
            try cluster.psql(
                "ALTER TABLE \(schema).scope DROP COLUMN erased_at; DROP INDEX \(schema).alias_scope")
        }
        #expect(try await form() == "4")
        let node = try bench.node()
        defer { node.close() }
        _ = try await node.write("s") { try $0.append(.upsert("a", #"{"n":1}"#), at: 1) }
        #expect(try await form() == "4")
        try await node.write("s") { try $0.markErased(at: 2) }
        #expect(try await form() == "5")
        let again = try bench.node()
        defer { again.close() }
        #expect(try await again.read("s") { $0.state.erasedAt } == 2)
    }

    @Test("a store of the version before counts what its scopes have superseded", arguments: [0, 3])
    func olderWindow(partitions: Int) async throws {
        let bench = try PostgresBench()
        let node = try bench.node { $0.partitions = partitions }
        try await writeTwice(to: node)
        let (cluster, schema) = (bench.cluster, bench.schema)
        _ = try await offPool {
            try cluster.psql(
                """
                ALTER TABLE \(schema).scope DROP COLUMN erased_at, DROP COLUMN superseded_rows,
                    DROP COLUMN superseded_bytes;
                DROP INDEX \(schema).change_window, \(schema).alias_scope;
                UPDATE \(schema).meta SET number = 3 WHERE key = 'schema'
                """)
        }
        let later = try bench.node()
        defer { later.close() }
        #expect(try await later.read("s") { $0.state.superseded } == ScopeSize(rows: 1, bytes: 7))
        #expect(try await later.write("s") { try $0.sweep(supersededBeyond: 0, limit: 9) } == 1)
        #expect(try await later.read("s") { $0.state.superseded } == ScopeSize())
    }

    @Test("of tables with partitions, who works in one scope reads and writes that one's")
    func pruned() async throws {
        let bench = try PostgresBench()
        let node = try bench.node { ($0.partitions, $0.writers, $0.readers) = (8, 1, 1) }
        let server = SyncServer(
            store: node, entities: [.state("order", ids: .server), .events("audit")], configuration: .still)
        let access = Access.readWrite(as: "ada")
        for round in 0..<3 {
            let operations = [
                upsert(2 * round + 1, "t", #"{"n":\#(round)}"#),
                #"{"lane":"lane-aaaa","number":\#(2 * round + 2),"type":"event","entity":"audit","id":"e\#(round)"}"#,
            ].joined(separator: ",")
            let body =
                #"{"scope":"s","clientId":"device-aaaa","acked":{"lane-aaaa":\#(round)},"operations":[\#(operations)]}"#
            let answer = try await server.exchange(Array(body.utf8), mode: .pushAndPull) { _ in access }
            #expect(String(decoding: answer, as: UTF8.self).contains(#""status":"applied""#))
        }
        _ = try await server.snapshot(SnapshotQuery(of: "s"), access: access)
        let (cluster, schema) = (bench.cluster, bench.schema)
        node.close()
        let touched = try await offPool {
            try cluster.psql(
                """
                SELECT relname FROM pg_stat_user_tables WHERE schemaname = '\(schema)' AND relname ~ '_[0-9]+$'
                AND idx_scan + n_tup_ins > 0
                """)
        }
        let tables = touched.split(separator: "\n").map { $0.prefix { $0 != "_" } }
        #expect(Set(tables).count == tables.count && tables.contains("change"), "\(touched)")
    }

    @Test("where the database distributes tables, those of scopes are, each beside the others")
    func distributed() async throws {
        let bench = try PostgresBench()
        let (cluster, schema) = (bench.cluster, bench.schema)
        // Notes what it is asked for, as Citus' function of that name would do it.
        _ = try await offPool {
            try cluster.psql(
                """
                CREATE SCHEMA \(schema);
                CREATE TABLE \(schema).asked (place serial, text text);
                CREATE FUNCTION \(schema).create_distributed_table(
                    name regclass, by text, colocate_with text DEFAULT 'default') RETURNS void LANGUAGE sql AS
                    $$ INSERT INTO \(schema).asked (text) VALUES (name::text || ' ' || by || ' ' || colocate_with) $$
                """)
        }
        let node = try bench.node()
        defer { node.close() }
        let asked = try await offPool {
            try cluster.psql("SELECT text FROM \(schema).asked ORDER BY place").split(separator: "\n").map {
                $0.replacing("\(schema).", with: "")
            }
        }
        #expect(asked.first == "scope name default")
        #expect(
            asked.dropFirst().sorted()
                == [
                    "blob", "blob_part", "blob_piece", "blob_scope", "capture", "change", "deletes", "device", "digest",
                    "hook_told", "incarnation", "lane",
                    "rejection", "verdict",
                ].map { "\($0) scope scope" })
    }

    /// Indexes as `table(column, …)`, in their order.
    private func indexes(_ condition: String) async throws -> [String] {
        let bench = try PostgresBench()
        let node = try bench.node()
        defer { node.close() }
        let (cluster, schema) = (bench.cluster, bench.schema)
        let text = try await offPool {
            try cluster.psql(
                """
                SELECT t.relname || '(' || (
                    SELECT string_agg(a.attname, ', ' ORDER BY k.place)
                    FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (column_number, place)
                    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.column_number) || ')'
                FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
                WHERE n.nspname = '\(schema)' AND t.relkind = 'r' AND \(condition)
                """)
        }
        return text.split(separator: "\n").map(String.init).sorted()
    }
}
