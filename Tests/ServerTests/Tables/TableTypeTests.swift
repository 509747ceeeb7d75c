import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkTesting
import TidemarkWire

@testable import TidemarkServer

@Suite("Values of every type travel, as one text each", .serialized)
struct TableTypeTests {
    /// A type, a value as a program writes it, and as devices have it.
    private static let texts: [(type: String, sql: String, text: String)] = [
        ("text[]", #"ARRAY['a', 'b,"c', NULL]"#, #"{a,"b,\"c",NULL}"#), ("int[][]", "'{{1,2},{3,4}}'", "{{1,2},{3,4}}"),
        ("bytea[]", #"ARRAY['\x00ff'::bytea]"#, #"{"\\x00ff"}"#),
        ("timestamptz[]", "ARRAY['2026-11-21 18:00Z'::timestamptz]", #"{"2026-11-21 18:00:00+00"}"#),
        ("public.citext", "'Ada'", "Ada"), ("public.hstore", "'a=>1'", #""a"=>"1""#),
        ("public.ltree", "'Top.a'", "Top.a"),
        ("interval", "'1 year 2 days 03:04:05.5'", "P1Y2DT3H4M5.5S"), ("inet", "'10.0.0.1'", "10.0.0.1"),
        ("cidr", "'10.0.0.0/8'", "10.0.0.0/8"), ("macaddr", "'08-00-2b-01-02-03'", "08:00:2b:01:02:03"),
        ("money", "1234.5::numeric::money", "$1,234.50"), ("int4range", "'[1,5]'", "[1,6)"),
        ("tstzrange", "'[2026-11-21 18:00Z,)'", #"["2026-11-21 18:00:00+00",)"#),
        ("xml", "'<a>x</a><b/>'", "<a>x</a><b/>"), ("bit(3)", "B'101'", "101"), ("bit varying", "B'10'", "10"),
        ("tsvector", "'a:1 b:2'", "'a':1 'b':2"), ("name", "'pg'", "pg"), ("point", "'(1,0.1)'", "(1,0.1)"),
        ("box", "'(1,1),(0,0)'", "(1,1),(0,0)"), ("~.label", "'x'", "x"), ("~.share", "1.50", "1.50"),
        ("~.mood[]", "ARRAY['good'::~.mood]", "{good}"), ("~.pair", "ROW(1, 'a b')", #"(1,"a b")"#),
        ("numeric", "'NaN'", "NaN"), ("numeric", "'-Infinity'", "-Infinity"), ("pg_lsn", "'0/10'", "0/10"),
        ("jsonb[]", #"ARRAY['{"a": 1}'::jsonb]"#, #"{"{\"a\": 1}"}"#), ("\"char\"", "'x'", "x"),
    ]

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    }

    @Test("A value that has a text form travels as that, whatever the role's settings are", .timeLimit(.minutes(5)))
    func texts() async throws {
        let cluster = try await offPool { try PostgresCluster() }
        _ = try await offPool {
            try cluster.psql(
                """
                ALTER ROLE tidemark SET DateStyle = 'German'; ALTER ROLE tidemark SET IntervalStyle = 'sql_standard';
                ALTER ROLE tidemark SET TimeZone = 'Asia/Tokyo'; ALTER ROLE tidemark SET bytea_output = 'escape';
                ALTER ROLE tidemark SET extra_float_digits = -10; ALTER ROLE tidemark SET xmloption = 'document'
                """)
        }
        let bench = try await TableBench(cluster: cluster)
        let columns = Self.texts.enumerated().map { "c\($0) \($1.type)" }.joined(separator: ", ")
        try await bench.sql(
            """
            CREATE EXTENSION citext SCHEMA public; CREATE EXTENSION hstore SCHEMA public;
            CREATE EXTENSION ltree SCHEMA public; CREATE TYPE ~.mood AS ENUM ('good', 'bad');
            CREATE DOMAIN ~.label AS varchar(9) CHECK (value <> 'no'); CREATE DOMAIN ~.share AS numeric(4, 2);
            CREATE TYPE ~.pair AS (a int, b text); CREATE TABLE ~.odd (id int PRIMARY KEY, \(columns));
            SET IntervalStyle = postgres; SET DateStyle = ISO; SET xmloption = content;
            INSERT INTO ~.odd VALUES (1, \(Self.texts.map(\.sql).joined(separator: ", ")))
            """)
        try await bench.attach("odd")
        let found = try #require(try await bench.fields("1"))
        for (index, entry) in Self.texts.enumerated() {
            #expect(found["c\(index)"] as? String == entry.text, "\(entry.type)")
        }
        // The same texts from a device make the same values.
        let fields = Self.texts.enumerated().map { #""c\#($0)":"\#(Self.escaped($1.text))""# }.joined(separator: ",")
        let answer = try await bench.exchange([upsert(1, "2", "{\(fields)}")])
        #expect(answer.statuses == ["applied"], "\(answer.results)")
        try await bench.drain()
        #expect(try await bench.fields("2") == found)
        let differing = Self.texts.indices.map { "CASE WHEN a.c\($0)::text = b.c\($0)::text THEN '' ELSE 'c\($0)' END" }
        #expect(
            try await bench.sql(
                "SELECT \(differing.joined(separator: " || ")) FROM ~.odd a, ~.odd b WHERE a.id = 1 AND b.id = 2") == ""
        )
    }

    @Test("A value that such a type does not take is refused by its column", .timeLimit(.minutes(5)))
    func refused() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE DOMAIN ~.label AS varchar(3) CHECK (value <> 'no'); CREATE DOMAIN ~.share AS numeric(4, 2);
            CREATE TABLE ~.odd (id int PRIMARY KEY, label ~.label, share ~.share, parts numeric[], span numrange,
                wait interval, docs jsonb[], tags text[])
            """)
        try await bench.attach("odd")
        let many = Array(repeating: "1e900", count: 100).joined(separator: ",")
        let refused: [(field: String, value: String, code: String)] = [
            ("label", "no", "check_failed"), ("label", "long", "value_refused"), ("share", "123.4", "value_refused"),
            ("share", "1e130000", "value_refused"), ("parts", "{1,1e130000}", "value_refused"),
            ("parts", "{\(many)}", "value_refused"), ("span", "[1e130000,)", "value_refused"),
            ("docs", #"{\"{\\\"a\\\":1e130000}\"}"#, "value_refused"), ("wait", "soon", "value_refused"),
            ("tags", "{a", "value_refused"),
        ]
        let answer = try await bench.exchange(
            refused.enumerated().map { upsert($0 + 1, "\($0)", #"{"\#($1.field)":"\#($1.value)"}"#) })
        for (index, entry) in refused.enumerated() {
            #expect(answer.errorCode(index) == entry.code, "\(entry.field) \(entry.value.prefix(40))")
        }
        let taken = try await bench.exchange(
            [upsert(1, "20", #"{"label":"yes","share":"1.5","tags":"{1e130000}"}"#)], client: "device-bbbb")
        #expect(taken.statuses == ["applied"], "\(taken.results)")
    }

    @Test("Among several values the one that its column cannot hold is told by its name", .timeLimit(.minutes(5)))
    func named() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.odd (id int PRIMARY KEY, title text, body text, wait interval, tags text[], docs jsonb);
            CREATE INDEX ON ~.odd (title)
            """)
        try await bench.attach("odd")
        // PostgreSQL's own words name none of them.
        let good = ["title": #""x""#, "wait": #""1 day""#, "tags": #""{a}""#, "docs": #""[]""#]
        let bad = ["wait": #""soon""#, "tags": #""{a""#, "docs": #""{""#]
        let names = bad.keys.sorted()
        let edits = names.enumerated().map { index, name in
            let fields = good.merging([name: bad[name] ?? ""]) { $1 }.sorted { $0.key < $1.key }
            return upsert(
                index + 1, "\(index)", "{" + fields.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}")
        }
        let answer = try await bench.exchange(edits)
        for (index, name) in names.enumerated() {
            let error = answer.results[index]["error"] as? [String: Any]
            #expect(error?["code"] as? String == "value_refused")
            let detail = error?["detail"] as? String ?? ""
            #expect(detail == "The column \(name) cannot hold such a value.", "\(detail)")
        }
        // Nothing that an index could compress.
        var generator = SplitMix64(seed: 1)
        let long = (0..<20_000).map { _ in String(generator.below(1296), radix: 36) }.joined()
        let indexed = try await bench.exchange([
            upsert(4, "9", #"{"title":"\#(long)","body":"\#(long + long)"}"#)
        ])
        let error = indexed.results[0]["error"] as? [String: Any]
        #expect(error?["code"] as? String == "value_refused", "\(indexed.results)")
        let detail = error?["detail"] as? String ?? ""
        #expect(detail.contains("column title") && detail.contains("\(long.utf8.count) bytes"), "\(detail)")
    }

    @Test("Infinities travel, and a row with NaN in a floating column is told to the operator", .timeLimit(.minutes(5)))
    func notNumbers() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.m (id int PRIMARY KEY, a double precision, b real);
            INSERT INTO ~.m VALUES (1, 'infinity', '-infinity'), (2, 'NaN', 1), (3, 1, 1)
            """)
        try await bench.attach("m")
        let infinite: NSDictionary = ["a": ["$real": "inf"], "b": ["$real": "-inf"]]
        #expect(try await bench.records() == ["task/1": infinite, "task/3": ["a": 1, "b": 1]])
        try await bench.sql("UPDATE ~.m SET b = 'NaN' WHERE id = 3")
        try await bench.drain()
        #expect(try await bench.fields("3") == ["a": 1, "b": 1])
        let told = try await bench.server.rejections(limit: 9)
        #expect(told.map(\.code) == ["unsendable_value", "unsendable_value"], "\(told)")
        #expect(Set(told.map(\.record)) == ["2", "3"] && told.allSatisfy { $0.detail.contains("NaN") })
        #expect(told.allSatisfy { !$0.isDelete }, "the rows stand in the table")
        try await bench.sql("UPDATE ~.m SET b = 2")
        try await bench.drain()
        #expect(try await bench.fields("3") == ["a": 1, "b": 2])
    }
}
