import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("Keys of attached tables have one spelling, which is the device's", .serialized)
struct TableKeyTests {
    /// Extensions belong to a whole database.
    private func benchWithExtensions() async throws -> TableBench {
        let cluster = try await offPool { try PostgresCluster() }
        return try await TableBench(cluster: cluster)
    }

    @Test("A key of several columns is the JSON array that SQLite's rows have", .timeLimit(.minutes(5)))
    func composite() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            #"""
            CREATE TABLE ~.tag (list_id int, name text, far bigint, is_mine boolean, note text,
                PRIMARY KEY (list_id, name, far, is_mine));
            INSERT INTO ~.tag VALUES (1, 'a "b" \ ' || chr(9), 9007199254740993, true, 'x'), (1, 'é', 5, false, 'y'),
                (2, '', -9007199254740991, true, 'z'), (2, 'c,]', 0, true, NULL)
            """#)
        try await bench.attach("tag", as: "tag", .column("list_id", prefix: "list:"))
        let ids = [#"tag/[1,"a \"b\" \\ \t",{"$int":"9007199254740993"},1]"#, #"tag/[1,"é",5,0]"#]
        #expect(try await bench.records("list:1").keys.sorted() == ids)
        #expect(
            try await bench.records("list:2")
                == [#"tag/[2,"",-9007199254740991,1]"#: ["note": "z"], #"tag/[2,"c,]",0,1]"#: ["note": NSNull()]])
        // A device's rows, by the same ids.
        let base = try await bench.store.read("list:1") { $0.state.head }
        let answer = try await bench.exchange(
            [
                upsert(1, #"[1,\"é\",5,0]"#, #"{"note":"mine"}"#, base: base, entity: "tag"),
                upsert(2, #"[1,\"new\",{\"$int\":\"9007199254740993\"},0]"#, #"{"note":"n"}"#, entity: "tag"),
                upsert(3, #"[1,\"new\",9007199254740993,0]"#, #"{"note":"n"}"#, entity: "tag"),
                upsert(4, #"[2,\"new\",1,0]"#, #"{"note":"n"}"#, entity: "tag"),
                upsert(5, #"[1, \"new\",1,0]"#, #"{"note":"n"}"#, entity: "tag"),
                upsert(6, #"[1,\"new\",1]"#, #"{"note":"n"}"#, entity: "tag"),
                upsert(7, #"[1,\"new\",1,2]"#, #"{"note":"n"}"#, entity: "tag"),
                upsert(8, #"[\"1\",\"new\",1,0]"#, #"{"note":"n"}"#, entity: "tag"),
            ], scope: "list:1")
        let codes = (0..<8).map { answer.errorCode($0) ?? answer.statuses[$0] }
        #expect(
            codes == [
                "applied", "applied", "value_refused", "scope_mismatch", "value_refused", "value_refused",
                "value_refused", "value_refused",
            ], "\(answer.results)")
        #expect(
            try await bench.sql("SELECT name, far, is_mine, note FROM ~.tag WHERE list_id = 1 AND name <> 'é'")
                .contains("new|9007199254740993|f|n"))
        #expect(try await bench.sql("SELECT note FROM ~.tag WHERE name = 'é'") == "mine")
        let head = try await bench.store.read("list:1") { $0.state.head }
        _ = try await bench.exchange(
            [delete(9, #"[1,\"é\",5,0]"#, base: head, entity: "tag")], scope: "list:1")
        try await bench.sql("UPDATE ~.tag SET name = 'moved' WHERE name = 'new'")
        try await bench.drain()
        #expect(try await bench.sql("SELECT count(*) FROM ~.tag WHERE name = 'é'") == "0")
        #expect(
            try await bench.records("list:1").keys.sorted()
                == [ids[0], #"tag/[1,"moved",{"$int":"9007199254740993"},0]"#])
    }

    @Test("A table of nothing but its key takes a row that another program has just made, too", .timeLimit(.minutes(5)))
    func joinTable() async throws {
        let bench = try await TableBench()
        try await bench.sql("CREATE TABLE ~.link (a int, b int, PRIMARY KEY (a, b)); INSERT INTO ~.link VALUES (1, 1)")
        try await bench.attach("link", as: "link")
        // More than a push looks at before its own.
        try await bench.sql("INSERT INTO ~.link SELECT 2, g FROM generate_series(1, 400) g")
        let answer = try await bench.exchange([
            upsert(1, "[2,400]", "{}", entity: "link"), upsert(2, "[3,1]", "{}", entity: "link"),
            delete(3, "[1,1]", base: 1, entity: "link"),
        ])
        #expect(answer.statuses.allSatisfy { $0 != "rejected" }, "\(answer.results)")
        try await bench.drain()
        #expect(try await bench.records().count == 401)
        #expect(try await bench.sql("SELECT count(*) FROM ~.link") == "401")
    }

    /// A type, values as a program writes them, and the ids that they have.
    private static let plain: [(type: String, values: [(sql: String, id: String)])] = [
        ("numeric", [("1.00", "1"), ("-12.50", "-12.5"), ("1e3", "1000"), ("'NaN'", "NaN")]),
        ("numeric(8, 2)", [("1", "1"), ("2.5", "2.5")]),
        ("date", [("'2026-11-21'", "2026-11-21"), ("'infinity'", "infinity"), ("'0044-03-15 BC'", "0044-03-15 BC")]),
        ("timestamptz", [("'2026-11-21 20:00+02'", "2026-11-21T18:00:00.000000Z")]),
        ("timestamp", [("'2026-11-21 20:00:00.5'", "2026-11-21T20:00:00.500000")]),
        ("time", [("'20:00'", "20:00:00")]), ("char(5)", [("'ab'", "ab"), ("'ab  c'", "ab  c")]),
        ("~.mood", [("'Good'", "Good"), ("'bad'", "bad")]), ("~.label", [("'x'", "x")]),
        ("public.citext", [("'Straße'", "straße"), ("'ABC'", "abc")]), ("boolean", [("true", "1")]),
        ("inet", [("'10.0.0.1'", "10.0.0.1"), ("'10.0.0.0/8'", "10.0.0.0/8")]),
        ("bit varying", [("B'101'", "101")]),
        ("bytea", [(#"'\x00ff'"#, #"[{"$blob":"AP8="}]"#), ("repeat('x', 80)::bytea", longBlob)]),
    ]
    private static let longBlob =
        #"[{"$blob":""# + Data(repeating: UInt8(ascii: "x"), count: 80).base64EncodedString() + #""}]"#

    @Test("A key of any type has one id, whatever a program's session spells it by", .timeLimit(.minutes(5)))
    func types() async throws {
        let bench = try await benchWithExtensions()
        try await bench.sql(
            """
            CREATE TYPE ~.mood AS ENUM ('Good', 'bad'); CREATE DOMAIN ~.label AS varchar(9) CHECK (value <> '');
            CREATE EXTENSION citext SCHEMA public
            """)
        for (index, (type, values)) in Self.plain.enumerated() {
            let (table, scope) = ("t\(index)", Scope("s\(index)")!)
            let first = values[0]
            try await bench.sql(
                """
                CREATE TABLE ~.\(table) (id \(type) PRIMARY KEY, n int);
                INSERT INTO ~.\(table) VALUES (\(first.sql), 0)
                """
            )
            try await bench.attach(table, as: table, .scope(scope))
            for value in values.dropFirst() {
                try await bench.sql(
                    """
                    SET TimeZone = 'Asia/Tokyo'; SET DateStyle = 'German'; SET bytea_output = 'escape';
                    INSERT INTO ~.\(table) VALUES (\(value.sql), 0)
                    """)
            }
            try await bench.drain()
            let found = try await bench.records(scope).keys.map { String($0.dropFirst(table.count + 1)) }
            // A key that is longer than an id is in the list of refusals.
            let ids = values.map(\.id).filter { $0.utf8.count <= 128 }
            #expect(found.sorted() == ids.sorted(), "\(type)")
            // A device edits each by that id, and makes it anew.
            for (offset, id) in ids.enumerated() {
                let escaped = id.replacing("\"", with: "\\\"")
                let base = try await bench.store.read(scope) { $0.state.head }
                let edit = try await bench.exchange(
                    [upsert(1, escaped, #"{"n":7}"#, base: base, entity: table)], scope: scope.name,
                    client: "device-edit\(offset)")
                #expect(edit.statuses == ["applied"], "\(type) \(id): \(edit.results)")
                let removal = try await bench.exchange(
                    [
                        delete(1, escaped, base: base + 1, entity: table),
                        upsert(2, escaped, #"{"n":8}"#, entity: table),
                    ], scope: scope.name, client: "device-anew\(offset)")
                #expect(removal.statuses == ["applied", "applied"], "\(type) \(id): \(removal.results)")
            }
            #expect(try await bench.sql("SELECT count(*) FROM ~.\(table) WHERE n = 8") == "\(ids.count)", "\(type)")
            try await bench.drain()
            #expect(try await bench.records(scope).count == ids.count, "\(type)")
        }
    }

    @Test("An id in another spelling of a key is refused, and one of no row stops nothing", .timeLimit(.minutes(5)))
    func otherSpellings() async throws {
        let bench = try await benchWithExtensions()
        try await bench.sql(
            """
            CREATE TYPE ~.mood AS ENUM ('good'); CREATE EXTENSION citext SCHEMA public;
            CREATE TABLE ~.n (id numeric PRIMARY KEY, n int); CREATE TABLE ~.d (id date PRIMARY KEY, n int);
            CREATE TABLE ~.c (id public.citext PRIMARY KEY, n int); CREATE TABLE ~.m (id ~.mood PRIMARY KEY, n int);
            CREATE TABLE ~.w (id timestamptz PRIMARY KEY, n int); CREATE TABLE ~.u (id uuid PRIMARY KEY, n int)
            """)
        let uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
        let ids = [
            "n": ["1.0", "01", "1e0", "one"], "d": ["2026-02-30", "2026-2-3", "today"], "c": ["ABC", "Ab"],
            "u": [uuid.uppercased(), "{\(uuid)}", uuid.replacing("-", with: "")],
            "m": ["Good", "worse"], "w": ["2026-11-21T20:00:00.000000+02:00", "now", "2026-11-21 18:00"],
        ]
        for (table, ids) in ids.sorted(by: { $0.key < $1.key }) {
            let scope = Scope("s" + table)!
            // The log has records from before, under any ids.
            _ = try await bench.exchange(
                ids.enumerated().map { upsert($0 + 1, $1, #"{"n":1}"#, entity: table) }, scope: scope.name)
            var plan = bench.plan(table, table, .scope(scope))
            plan.tableWins = true
            _ = try await bench.store.attach(plan)
            while try await !bench.store.fill(table).isLast {}
            try await bench.drain()
            #expect(try await bench.records(scope).isEmpty)
            #expect(try await bench.store.attachedTables().last?.notes == 0)
            let answer = try await bench.exchange(
                ids.enumerated().map { upsert($0 + 1, $1, #"{"n":1}"#, entity: table) }, scope: scope.name,
                client: "device-bbbb")
            #expect(Set(ids.indices.map { answer.errorCode($0) }) == ["value_refused"], "\(answer.results)")
        }
        // As the README's first snippet makes them.
        let id = UUID().uuidString.lowercased()
        let taken = try await bench.exchange(
            [upsert(1, id, #"{"n":1}"#, entity: "u")], scope: "su", client: "device-cccc")
        #expect(taken.statuses == ["applied"], "\(taken.results)")
    }

    @Test("A reference is spelled like the key that it names", .timeLimit(.minutes(5)))
    func references() async throws {
        let bench = try await benchWithExtensions()
        try await bench.sql(
            """
            CREATE EXTENSION citext SCHEMA public;
            CREATE TABLE ~.place (code public.citext, size numeric, PRIMARY KEY (code, size));
            CREATE TABLE ~.visit (id int PRIMARY KEY, code public.citext, size numeric, price numeric,
                FOREIGN KEY (code, size) REFERENCES ~.place);
            INSERT INTO ~.place VALUES ('Ber', 1.50); INSERT INTO ~.visit VALUES (1, 'BER', 1.5000, 1.50)
            """)
        try await bench.attach("place", as: "place")
        try await bench.attach("visit", as: "visit")
        #expect(
            try await bench.records() == [
                #"place/["ber","1.5"]"#: [:], "visit/1": ["code": "ber", "size": "1.5", "price": "1.50"],
            ])
    }

    @Test("Rows that were there before are noted in the order of keys of several columns", .timeLimit(.minutes(5)))
    func filling() async throws {
        let bench = try await benchWithExtensions()
        try await bench.sql(
            """
            CREATE EXTENSION citext SCHEMA public;
            CREATE TABLE ~.a (x int, y text, PRIMARY KEY (y, x));
            CREATE TABLE ~.b (x public.citext, y int, PRIMARY KEY (x, y));
            INSERT INTO ~.a SELECT g % 5, 'k' || g % 7 FROM generate_series(1, 35) g;
            INSERT INTO ~.b SELECT chr(65 + g % 5 + CASE WHEN g % 2 = 0 THEN 32 ELSE 0 END), g
                FROM generate_series(1, 35) g
            """)
        try await bench.attach("a", as: "a")
        try await bench.attach("b", as: "b", .scope("t"))
        #expect(try await bench.records().count == 35)
        #expect(try await bench.records("t").count == 35)
    }
}
