import Foundation
import Testing
import TidemarkTesting
import TidemarkWire

@testable import TidemarkPostgres
@testable import TidemarkServer

@Suite("Values are bounded before they reach the operator's table", .serialized)
struct TableValueBoundTests {
    private static let table = """
        CREATE TYPE ~.mood AS ENUM ('good', 'bad');
        CREATE TABLE ~.odd (id varchar(8) PRIMARY KEY, amount numeric, price numeric(6,2), label varchar(5),
            code char(3), document json, compact jsonb, small smallint, count integer, big bigint, ratio real,
            done boolean, ref uuid, at timestamptz, local timestamp, on_day date, clock time, mood ~.mood,
            body text, data bytea)
        """

    /// A field and what is wrong with it.
    private static let refused: [(field: String, value: String, words: String)] = [
        ("amount", #""1e130000""#, "1000 digits"), ("amount", #""1e-16383""#, "1000 digits"),
        ("amount", #""\#(String(repeating: "9", count: 1001))""#, "1000 digits"),
        ("amount", #""0.\#(String(repeating: "0", count: 1001))""#, "1000 digits"),
        ("amount", #""0x1F""#, "decimal numbers"), ("amount", #""twelve""#, "decimal numbers"),
        ("price", #""12345.6""#, "4 digits before the point"), ("price", "1e300", "4 digits before the point"),
        ("label", #""much too long""#, "5 characters, and the value has 13"),
        ("label", #""\#(String(repeating: "é", count: 6))""#, "5 characters, and the value has 6"),
        ("label", #""a\u0000b""#, "NUL"), ("code", #""abcd""#, "3 characters"),
        ("document", #""\#(String(repeating: "[", count: 101))""#, "100 levels"),
        ("compact", #""\#(String(repeating: "[", count: 100_000))""#, "100 levels"),
        ("compact", #""\#(String(repeating: "{\\\"a\\\":", count: 101))1""#, "100 levels"),
        ("compact", #""[1e130000]""#, "1000 digits"), ("compact", #""{\"a\":[-1.5E-130000]}""#, "1000 digits"),
        ("compact", #""[0\#(String(repeating: ",1e999", count: 100))]""#, "65536 bytes"),
        ("small", "32768", "-32768 to 32767"), ("count", "2147483648", "-2147483648 to 2147483647"),
        ("big", #""9223372036854775808""#, "64 bits"), ("big", "1.5", "big"),
        ("ratio", #""\#(String(repeating: "1", count: 200))""#, "128 bytes"), ("ratio", #""1e400""#, "ratio"),
        ("done", "7", "done"), ("ref", #""not-a-uuid""#, "32 hexadecimal digits"),
        ("at", #""294277-01-01T00:00:00Z""#, "years from 1 to 294276"), ("at", #""soon""#, "at"),
        ("local", #""0000-01-01T00:00:00""#, "years from 1"), ("local", #""2026-13-01T00:00:00""#, "months"),
        ("on_day", #""5874898-01-01""#, "years from 1 to 5874897"), ("on_day", #""2026-02-30""#, "on_day"),
        ("clock", #""\#(String(repeating: "1", count: 129))""#, "128 bytes"),
        ("mood", #""\#(String(repeating: "x", count: 129))""#, "128 bytes"), ("mood", #""so-so""#, "mood"),
        ("body", #"{"$blob":"AA=="}"#, "body"), ("data", #""text""#, "data"),
    ]

    @Test("One that is too large is refused by its column's name, with the limit", .timeLimit(.minutes(5)))
    func refused() async throws {
        let bench = try await TableBench()
        try await bench.sql(Self.table)
        try await bench.attach("odd")
        let edits = Self.refused.enumerated().map { index, entry in
            upsert(index + 1, "r\(index)", #"{"\#(entry.field)":\#(entry.value)}"#)
        }
        let answer = try await bench.exchange(edits)
        for (index, entry) in Self.refused.enumerated() {
            let error = answer.results[index]["error"] as? [String: Any]
            #expect(error?["code"] as? String == "value_refused", "\(entry.field): \(answer.results[index])")
            let detail = error?["detail"] as? String ?? ""
            #expect(detail.lowercased().contains(entry.field.lowercased()), "\(entry.field): \(detail)")
            #expect(detail.contains(entry.words), "\(entry.field): \(detail)")
        }
        #expect(try await bench.sql("SELECT count(*) FROM ~.odd") == "0")
        let key = try await bench.exchange([upsert(edits.count + 1, "longer-than-8", #"{"body":"x"}"#)])
        #expect(key.errorCode(0) == "value_refused", "\(key.results)")
    }

    @Test("One that fits is taken, up to the limits", .timeLimit(.minutes(5)))
    func taken() async throws {
        let bench = try await TableBench()
        try await bench.sql(Self.table)
        try await bench.attach("odd")
        let nested = String(repeating: "[", count: 100) + String(repeating: "]", count: 100)
        let values: [(field: String, value: String)] = [
            ("amount", #""1e999""#), ("amount", #""-0.\#(String(repeating: "0", count: 999))1""#),
            ("amount", #""NaN""#), ("amount", "1.5"), ("amount", #""0e5000""#), ("price", #""0012.345e2""#),
            ("price", #""-1234.56""#), ("label", #""abcde   ""#), ("label", #""ééééé""#), ("code", #""ab""#),
            ("document", #""\#(nested)""#), ("compact", #""\#(nested)""#),
            ("compact", #""{\"a\":\"[[[ 1e130000 \\\" \",\"b\":-1.25e3}""#), ("small", "-32768"),
            ("count", "2147483647"), ("big", "9223372036854775807"), ("ratio", "1.5"), ("done", "1"),
            ("ref", #""{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}""#), ("at", #""2026-11-21T18:00:00.250Z""#),
            ("at", #""infinity""#), ("at", #""2026-11-21 18:00:00""#), ("local", #""0044-03-15 BC""#),
            ("on_day", #""2026-11-21""#), ("clock", #""18:00""#), ("mood", #""good""#),
            ("body", #""\#(String(repeating: "x", count: 100_000))""#), ("data", #"{"$blob":"AA=="}"#),
            ("amount", "null"),
        ]
        let edits = values.enumerated().map { index, entry in
            upsert(index + 1, "t\(index)", #"{"\#(entry.field)":\#(entry.value)}"#)
        }
        let answer = try await bench.exchange(edits)
        for (index, entry) in values.enumerated() {
            #expect(answer.statuses[index] == "applied", "\(entry): \(answer.results[index])")
        }
    }

    @Test("A column that has become wider takes more at once", .timeLimit(.minutes(5)))
    func wider() async throws {
        let bench = try await TableBench()
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY, title varchar(3), n int)")
        try await bench.attach("todo")
        let fields = #"{"title":"abcd","n":3000000000}"#
        #expect(try await bench.exchange([upsert(1, "1", fields)]).errorCode(0) == "value_refused")
        try await bench.sql("ALTER TABLE ~.todo ALTER title TYPE varchar(4), ALTER n TYPE bigint")
        let answer = try await bench.exchange([upsert(2, "1", fields)])
        #expect(answer.statuses == ["applied"], "\(answer.results)")
    }

    @Test("A value that an index cannot take is the value's fault, not the server's", .timeLimit(.minutes(5)))
    func indexed() async throws {
        let bench = try await TableBench()
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY, title text); CREATE INDEX ON ~.todo (title)")
        try await bench.attach("todo")
        // Nothing that an index could compress.
        var generator = SplitMix64(seed: 1)
        let long = (0..<20_000).map { _ in String(generator.below(1296), radix: 36) }.joined()
        let answer = try await bench.exchange([
            upsert(1, "1", #"{"title":"\#(long)"}"#), upsert(2, "2", #"{"title":"short"}"#),
        ])
        #expect(answer.statuses == ["rejected", "applied"] && answer.errorCode(0) == "value_refused")
    }

    @Test("Digits are counted as they are written out")
    func digits() {
        let counts: [String: [Int]] = [
            "0": [0, 0], "12.50": [2, 2], "-1e3": [4, 0], "0.001e5": [3, 0], "1.5e-3": [0, 4], "007": [1, 0],
            "1e99999999999999999999": [1_000_001, 0], ".5": [0, 1], "5.": [1, 0], "0e9": [0, 0], "00.0100": [0, 4],
        ]
        for (text, count) in counts {
            let digits = Digits(text.utf8)
            #expect([digits?.before, digits?.after] == count, "\(text)")
        }
        for text in ["", "-", ".", "1e", "1e+", "1.2.3", "0x1", "1_0", " 1", "e5"] {
            #expect(Digits(text.utf8) == nil, "\(text)")
        }
    }
}
