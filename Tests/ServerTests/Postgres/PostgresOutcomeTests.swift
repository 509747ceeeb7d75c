import PostgresCluster
import Synchronization
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("The outcome of a commit that was not answered", .serialized)
struct PostgresOutcomeTests {
    @Test(
        "A crash that lost a transaction and gave its number to another does not make it a commit",
        .timeLimit(.minutes(5)))
    func numberGivenAgain() async throws {
        let cluster = try await offPool { try PostgresCluster(isDurable: true) }
        let bench = try PostgresBench(cluster)
        let node = try bench.node()
        _ = try await node.write("s") { try $0.append(.event("first"), at: 1) }
        let runs = Once()
        let version = try await node.write("s") { writer in
            let version = try writer.append(.event("second"), at: 1)
            try runs.first {
                // Nothing of this transaction has been written down, its number least of all.
                try cluster.restart(mode: "immediate")
                try cluster.useNumbers(200)
            }
            return version
        }
        #expect(version == 2)
        #expect(runs.count == 2)
        #expect(try await bench.gapless("s", in: node).map(\.record) == ["first", "second"])
    }

    @Test("A commit whose trace is gone is called unknown, and neither made nor undone", .timeLimit(.minutes(5)))
    func traceGone() async throws {
        let bench = try PostgresBench()
        let node = try bench.node { $0.writers = 1 }
        _ = try await node.write("s") { try $0.append(.event("first"), at: 1) }
        let (cluster, schema, runs) = (bench.cluster, bench.schema, Once())
        let error = try await #require(throws: StoreUnavailable.self) {
            try await node.write("s") { writer in
                let version = try writer.append(.event("second"), at: 1)
                try runs.first {
                    // Whoever works on a transaction of this schema holds locks on its tables.
                    try cluster.psql(
                        """
                        SELECT pg_terminate_backend(pid, 5000) FROM (
                            SELECT DISTINCT pid FROM pg_locks WHERE relation = '\(schema).writer'::regclass) AS busy
                        """)
                    try cluster.psql("DELETE FROM \(schema).writer")
                }
                return version
            }
        }
        #expect(error.mayBeDone)
        #expect(runs.count == 1)
    }

    @Test("A statement that takes too long is ended, and holds up nothing behind it", .timeLimit(.minutes(5)))
    func tooLong() async throws {
        let bench = try PostgresBench()
        let node = try bench.node { ($0.writers, $0.statementTimeout) = (1, .milliseconds(300)) }
        try await bench.trigger("IF NEW.record = 'slow' THEN PERFORM nextval('~.runs'), pg_sleep(5); END IF;")
        let error = try await #require(throws: StoreUnavailable.self) {
            try await node.write("s") { try $0.append(.event("slow"), at: 1) }
        }
        #expect(error.description.contains("57014") && !error.mayBeDone)
        #expect(try await node.write("s") { try $0.append(.event("quick"), at: 1) } == 1)
        #expect(try await bench.gapless("s", in: node).map(\.record) == ["quick"])
        #expect(try await bench.runs() == 1)
    }

    @Test(
        "A transaction that others stood in the way of is made again, once", .timeLimit(.minutes(5)),
        arguments: ["40001", "40P01"])
    func conflict(state: String) async throws {
        let bench = try PostgresBench()
        let node = try bench.node { $0.writers = 1 }
        try await bench.trigger("IF nextval('~.runs') <= 3 THEN RAISE SQLSTATE '\(state)'; END IF;")
        #expect(try await node.write("s") { try $0.append(.event("alone"), at: 1) } == 1)
        #expect(try await bench.runs() == 4)
        // Several that share one.
        _ = try await offPool { try bench.cluster.psql("ALTER SEQUENCE \(bench.schema).runs RESTART") }
        let records = (0..<9).map { RecordID(stringLiteral: "e\($0)") }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for record in records {
                group.addTask { _ = try await node.write("s") { try $0.append(.event(record), at: 1) } }
            }
            try await group.waitForAll()
        }
        #expect(Set(try await bench.gapless("s", in: node).map(\.record)) == Set(records + ["alone"]))
        #expect(try await node.read("s") { $0.state.head } == 10)
    }
}

/// What a body does the first time only: it runs again where its transaction was undone.
final class Once: Sendable {
    private let runs = Mutex(0)

    var count: Int { runs.withLock { $0 } }

    func first(_ work: () throws -> Void) rethrows {
        let run = runs.withLock { runs in
            runs += 1
            return runs
        }
        if run == 1 { try work() }
    }
}

extension PostgresBench {
    /// Runs before each row of the log that is inserted. `~` stands for the schema; its `runs` is a sequence, which
    /// also counts what is undone.
    fileprivate func trigger(_ body: String) async throws {
        let sql = """
            CREATE SEQUENCE ~.runs;
            CREATE FUNCTION ~.tried() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \(body) RETURN NEW; END $$;
            CREATE TRIGGER tried BEFORE INSERT ON ~.change FOR EACH ROW EXECUTE FUNCTION ~.tried()
            """
        _ = try await offPool { try cluster.psql(sql.replacing("~", with: schema)) }
    }

    fileprivate func runs() async throws -> Int? {
        Int(try await offPool { try cluster.psql("SELECT last_value FROM \(schema).runs") })
    }
}

extension PostgresCluster {
    /// Takes numbers for transactions that are committed.
    fileprivate func useNumbers(_ count: Int) throws {
        try psql(
            "DO $$ BEGIN FOR i IN 1..\(count) LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$")
    }
}
