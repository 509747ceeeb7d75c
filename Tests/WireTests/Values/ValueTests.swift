import Testing
import TidemarkFuzzing

@testable import TidemarkWire

@Suite("Values come back type and all")
struct ValueTests {
    private func encode(_ value: Value) -> String {
        var writer = JSONWriter()
        writer.value(value)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private func decode(_ text: String) throws -> Value {
        try Array(text.utf8).withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            let value = try reader.readValue()
            try reader.finish()
            return value
        }
    }

    static let spellings: [(Value, String)] = [
        (.null, "null"), (0, "0"), (-1, "-1"), (.integer(1 << 53 - 1), "9007199254740991"),
        (.integer(1 << 53), #"{"$int":"9007199254740992"}"#), (.integer(.max), #"{"$int":"9223372036854775807"}"#),
        (.integer(.min), #"{"$int":"-9223372036854775808"}"#), (1.0, "1.0"), (.real(-0.0), "-0.0"),
        (.real(1e300), "1e300"), (.real(.leastNonzeroMagnitude), "5e-324"), (.real(1e-5), "1e-5"), (.real(0.1), "0.1"),
        (.real(123_456_789.125), "123456789.125"), (.real(1e16), "1e16"), (.real(-1.5e-10), "-1.5e-10"),
        (.real(.infinity), #"{"$real":"inf"}"#), (.real(-.infinity), #"{"$real":"-inf"}"#),
        (.real(.greatestFiniteMagnitude), "1.7976931348623157e308"), ("", #""""#), ("é", #""é""#),
        ("a\"\\\n\u{00}\u{1f}\u{7f}", "\"a\\\"\\\\\\n\\u0000\\u001f\u{7f}\""), (.blob([]), #"{"$blob":""}"#),
        (.blob([0, 1, 255]), #"{"$blob":"AAH/"}"#),
    ]

    @Test("Each value has one spelling", arguments: spellings)
    func spelling(value: Value, text: String) throws {
        #expect(encode(value) == text)
        #expect(try decode(text) == value)
    }

    @Test("Random reals and integers keep their bits")
    func random() throws {
        var mutator = Mutator(seed: 0x9e37_79b9_7f4a_7c15, pool: [[0]])
        for _ in 0..<20_000 {
            let state = mutator.next()
            let real = Double(bitPattern: state)
            if !real.isNaN { #expect(try decode(encode(.real(real))) == .real(real)) }
            let integer = Int64(bitPattern: state) >> Int64(state >> 58)
            #expect(try decode(encode(.integer(integer))) == .integer(integer))
        }
    }

    @Test(
        "JSON that is no column value is refused",
        arguments: [
            "true", "[]", "[1]", "{}", #"{"a":1}"#, #"{"$int":"01"}"#, #"{"$int":1}"#,
            #"{"$int":"9223372036854775808"}"#,
            #"{"$real":"nan"}"#, #"{"$blob":"!"}"#, #"{"$what":1}"#, #"{"$int":"1","$int":"1"}"#,
        ])
    func refuses(text: String) { #expect(throws: JSONError.self) { try decode(text) } }

    @Test("Two spellings of one letter are two texts and two record ids")
    func bytesDecide() {
        #expect(Value.text("\u{e9}") != Value.text("e\u{301}"))
        #expect(RecordID("\u{e9}") != RecordID("e\u{301}"))
        #expect(Set([RecordID("\u{e9}"), RecordID("e\u{301}")]).count == 2)
    }
}
