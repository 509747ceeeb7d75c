import Testing

@testable import TidemarkWire

@Suite("JSON is read strictly")
struct JSONReaderTests {
    private func skipAll(_ text: String) throws { try skipAll(Array(text.utf8)) }

    private func skipAll(_ bytes: [UInt8]) throws {
        try bytes.withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            try reader.skip()
            try reader.finish()
        }
    }

    private func reason(_ bytes: [UInt8]) -> JSONError.Reason? {
        do {
            try skipAll(bytes)
            return nil
        } catch {
            return (error as? JSONError)?.reason
        }
    }

    @Test(
        "Whole documents pass",
        arguments: [
            "{}", "[]", "\"\"", "0", "-1", "1.5e-3", "true", "false", "null", " { \"a\" : [ 1 , { } ] } ",
            "\"\\u00e9\\ud83d\\ude00\\n\"", "\"é😀\"", "-0.0", "1E+2",
        ])
    func passes(text: String) throws { try skipAll(text) }

    @Test(
        "Broken documents do not",
        arguments: [
            "", "{", "[1", "[1,]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}", "01", "1.", ".5", "1e", "+1", "--1",
            "tru",
            "nul", "\"", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\udc00\"", "1 2", "{} {}", "[1 2]", "NaN",
            "Infinity",
            "\"\u{01}\"", "{a:1}", "9223372036854775808", "1e999",
        ])
    func refuses(text: String) { #expect(throws: JSONError.self) { try skipAll(text) } }

    @Test(
        "Bytes that are not UTF-8 are refused",
        arguments: [
            [0xff], [0xc0, 0x80], [0xe0, 0x80, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xc3],
            [0xf0, 0x9f, 0x98],
            [0x80],
        ] as [[UInt8]])
    func refusesBrokenUTF8(bytes: [UInt8]) { #expect(reason([0x22] + bytes + [0x22]) == .invalidUTF8) }

    @Test("Sixty-four levels pass, sixty-five do not")
    func depth() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        try skipAll(nested(64))
        #expect(reason(Array(nested(65).utf8)) == .tooDeep)
        #expect(reason(Array(String(repeating: "[", count: 1_000_000).utf8)) == .tooDeep)
    }

    @Test("No prefix of a document passes, and none traps")
    func everyPrefix() throws {
        let text = #"{"a":[1,2.5e3,{"$int":"9223372036854775807"}],"b":"x\u00e9\ud83d\ude00","c":null,"d":true}"#
        let bytes = Array(text.utf8)
        try skipAll(bytes)
        for count in 0..<bytes.count { #expect(reason(Array(bytes.prefix(count))) != nil) }
    }

    @Test("Any one byte changed is read or refused, never a trap")
    func everyByteChanged() {
        let bytes = Array(#"{"operations":[{"id":"a\u0041","n":-12.5e+3,"z":{"$blob":"AAEC"}}]}"#.utf8)
        for index in bytes.indices {
            for byte: UInt8 in [0x00, 0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d, 0x2c, 0x3a, 0x2d, 0x30, 0x75, 0x80, 0xff] {
                var changed = bytes
                changed[index] = byte
                changed.withUnsafeBytes { buffer in
                    var reader = JSONReader(buffer)
                    _ = try? reader.skip()
                    var scalar = JSONReader(buffer)
                    _ = try? scalar.readValue()
                }
            }
        }
    }
}
