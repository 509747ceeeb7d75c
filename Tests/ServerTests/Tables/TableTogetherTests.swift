import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("A push's rows go into their tables together, and are refused each for itself", .serialized)
struct TableTogetherTests {
    private static let table = """
        CREATE TABLE ~.todo (id int PRIMARY KEY, n int CHECK (n <> 13), note text, UNIQUE (note));
        CREATE TABLE ~.written (id int, how text);
        CREATE FUNCTION ~.log() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN INSERT INTO ~.written VALUES (NEW.id, TG_OP || ' ' || NEW.n); RETURN NEW; END $$;
        CREATE TRIGGER log AFTER INSERT OR UPDATE ON ~.todo FOR EACH ROW EXECUTE FUNCTION ~.log();
        INSERT INTO ~.todo VALUES (1, 0, 'first')
        """

    /// The contents of the table and of the log.
    private func held(_ bench: TableBench) async throws -> [String] {
        try await bench.drain()
        let records = try await bench.records().map { "\($0.key.dropFirst(5)) \($0.value["n"] ?? "-")" }.sorted()
        let rows = try await bench.sql("SELECT id || ' ' || coalesce(n::text, '-') FROM ~.todo")
            .split(separator: "\n").map(String.init).sorted()
        #expect(records == rows)
        return rows
    }

    @Test("Inserts, edits and deletes of one push end as if each had come alone", .timeLimit(.minutes(5)))
    func equal() async throws {
        let bench = try await TableBench()
        try await bench.sql(Self.table)
        try await bench.attach("todo")
        let base = try await bench.store.read("s") { $0.state.head }
        let answer = try await bench.exchange(
            [upsert(1, "1", #"{"n":1}"#, base: base)] + (2...40).map { upsert($0, "\($0)", #"{"n":\#($0 + 100)}"#) }
                + [upsert(41, "2", #"{"n":7}"#, extra: #","baseNumber":2"#), delete(42, "3", base: base + 3)])
        #expect(Set(answer.statuses) == ["applied"], "\(answer.results)")
        let rows = try await held(bench)
        #expect(rows.count == 39 && rows.contains("1 1") && rows.contains("2 7") && !rows.contains("3 103"))
        // Each was written once.
        #expect(try await bench.sql("SELECT count(*) FROM ~.written WHERE id = 2") == "2")
        #expect(try await bench.sql("SELECT count(*) FROM ~.written WHERE id > 3") == "37")
        #expect(try await bench.sql("SELECT count(*) FROM \(bench.postgres.schema).verdict") == "42")
    }

    @Test(
        "One that its table does not take is refused alone, and what it refused leaves nothing", .timeLimit(.minutes(5))
    )
    func refused() async throws {
        let bench = try await TableBench()
        try await bench.sql(Self.table)
        try await bench.attach("todo")
        let group = #","group":"g""#
        let answer = try await bench.exchange([
            upsert(1, "2", #"{"n":2}"#), upsert(2, "3", #"{"n":13}"#), upsert(3, "4", #"{"n":4,"note":"first"}"#),
            upsert(4, "5", #"{"n":5}"#), upsert(5, "6", #"{"n":6}"#, extra: group),
            upsert(6, "7", #"{"n":13}"#, extra: group), upsert(7, "8", #"{"n":8}"#),
        ])
        let codes = (0..<7).map { answer.errorCode($0) ?? answer.statuses[$0] }
        #expect(
            codes[0] == "applied" && codes[1] == "check_failed" && codes[2] == "not_unique" && codes[3] == "applied")
        #expect(codes[5] == "check_failed" && codes[6] == "applied", "\(answer.results)")
        #expect(answer.statuses[4] != "applied")
        #expect(try await held(bench) == ["1 0", "2 2", "5 5", "8 8"])
        #expect(
            try await bench.sql("SELECT string_agg(id::text, ' ' ORDER BY id) FROM ~.written WHERE id > 1") == "2 5 8")
        // A trigger passes over one insert among other writes.
        let head = try await bench.store.read("s") { $0.state.head }
        try await bench.sql("CREATE FUNCTION ~.gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$")
        try await bench.sql(
            "CREATE TRIGGER gone BEFORE INSERT ON ~.todo FOR EACH ROW WHEN (NEW.n = 99) EXECUTE FUNCTION ~.gone()")
        let passed = try await bench.exchange([
            upsert(8, "9", #"{"n":99}"#), upsert(9, "5", #"{"n":55}"#, base: head),
        ])
        #expect(passed.errorCode(0) == "table_refused" && passed.statuses[1] == "applied", "\(passed.results)")
        #expect(try await held(bench) == ["1 0", "2 2", "5 55", "8 8"])
    }

    @Test(
        "Functions in a path that others may write to are not called with the server's rights", .timeLimit(.minutes(5)))
    func strangersFunctions() async throws {
        let bench = try await TableBench()
        try await bench.sql(Self.table)
        try await bench.sql(
            """
            CREATE TABLE ~.list (id int PRIMARY KEY, owner text);
            CREATE TABLE ~.item (id int PRIMARY KEY, owner text, list int REFERENCES ~.list);
            CREATE TABLE ~.called (n int);
            CREATE FUNCTION public.trap(state bigint, value boolean) RETURNS bigint LANGUAGE plpgsql AS
                $$ BEGIN INSERT INTO ~.called VALUES (1); RETURN 1; END $$;
            CREATE AGGREGATE public.count(boolean) (SFUNC = public.trap, STYPE = bigint, INITCOND = '0')
            """)
        try await bench.attach("list", as: "list", .column("owner", prefix: ""))
        try await bench.attach("item", as: "item", .column("owner", prefix: ""))
        try await bench.sql("INSERT INTO ~.list VALUES (1, 's')")
        try await bench.drain()
        let answer = try await bench.exchange([
            upsert(1, "1", #"{"list":1}"#, entity: "item"), upsert(2, "2", #"{"list":1}"#, entity: "item"),
        ])
        try await bench.sql("DROP AGGREGATE public.count(boolean); DROP FUNCTION public.trap(bigint, boolean)")
        #expect(answer.statuses == ["applied", "applied"], "\(answer.results)")
        #expect(try await bench.sql("SELECT count(*) FROM ~.called") == "0")
    }

    @Test("Many edits of one row are one row in the log's newest and in the table", .timeLimit(.minutes(5)))
    func sameRow() async throws {
        let bench = try await TableBench()
        try await bench.sql(Self.table)
        try await bench.attach("todo")
        let edits = (1...600).map { number in
            upsert(
                number, "\(number % 3 + 2)", #"{"n":\#(number + 1000)}"#,
                extra: number > 3 ? #","baseNumber":\#(number - 3)"# : "")
        }
        let answer = try await bench.exchange(edits)
        #expect(Set(answer.statuses) == ["applied"], "\(answer.results.prefix(5))")
        #expect(try await held(bench) == ["1 0", "2 1600", "3 1598", "4 1599"])
        let live =
            "SELECT count(*), count(DISTINCT record) FROM \(bench.postgres.schema).change WHERE superseded_by IS NULL"
        #expect(try await bench.sql(live) == "4|4")
        #expect(try await bench.sql("SELECT count(*) FROM ~.written WHERE id > 1") == "600")
    }
}
