import Testing

@testable import TidemarkWire

@Suite("A device's word on itself, read")
struct DeviceReportTests {
    private func request(_ device: String) throws -> ExchangeRequest {
        let body = Array(#"{"scope":"s","clientId":"device-aaaa","device":\#(device),"operations":[]}"#.utf8)
        return try body.withUnsafeBytes { try ExchangeRequest(from: $0, operationLimit: 9) }
    }

    @Test("It comes back as it was written")
    func round() throws {
        var report = DeviceReport()
        (report.pending, report.oldest, report.refused, report.quarantined) = (20, Duration.seconds(3600), 1, 2)
        (report.app, report.library, report.error) = ("2.1 \"é\"", "0.1.0", "database_failed")
        var writer = JSONWriter()
        report.append(to: &writer)
        #expect(try request(String(decoding: writer.bytes, as: UTF8.self)).report == report)
        #expect(try request("{}").report == DeviceReport())
    }

    @Test(
        "Numbers are brought into their range",
        arguments: [
            ("9223372036854775807", 1_000_000_000), ("-9223372036854775808", 0), ("1e300", 1_000_000_000),
            ("-1e300", 0), ("12.9", 12), ("-0.0", 0),
        ] as [(String, Int64)])
    func numbers(text: String, expected: Int64) throws {
        #expect(try request(#"{"pending":\#(text)}"#).report?.pending == expected)
        let oldest = try request(#"{"oldest":\#(text)}"#).report?.oldest
        #expect(oldest == .seconds(expected == 1_000_000_000 ? 3_155_760_000 : expected))
    }

    @Test("A text that is too long, empty or has control characters counts as absent, and so does any other value")
    func texts() throws {
        let long = String(repeating: "é", count: 33)
        for text in [#""\#(long)""#, #""""#, #""a\u001b[2J""#, #""a\nb""#, #""a\u007f""#, "7", "null", "[1]", "{}"] {
            let report = try #require(try request(#"{"app":\#(text),"library":\#(text),"error":\#(text)}"#).report)
            #expect([report.app, report.library, report.error] == [nil, nil, nil], "\(text)")
        }
        #expect(try request(#"{"app":"\#(long.dropFirst())"}"#).report?.app == String(long.dropFirst()))
    }

    @Test(
        "A malformed report, and members that nobody knows, have no request refused",
        arguments: ["null", "7", #""x""#, "[{}]", "true", #"{"pending":"7","next":{"a":[1]},"oldest":null}"#])
    func malformed(text: String) throws {
        let read = try request(text)
        #expect(read.clientID == "device-aaaa")
        #expect(read.report == (text.hasPrefix("{") ? DeviceReport() : nil))
    }
}
