import Testing

@testable import TidemarkWire

@Suite("Retry-After says seconds or a date (RFC 9110)")
struct RetryAfterTests {
    @Test("Seconds, however many", arguments: [("0", 0), ("5", 5_000), (" 120 ", 120_000)])
    func seconds(header: String, wait: Int64) {
        #expect(RetryAfter.milliseconds(header, now: 77) == wait)
    }

    @Test("A number without end is the longest wait there is")
    func endless() {
        #expect(RetryAfter.milliseconds("9223372036854775807", now: 0) == .max)
        #expect(RetryAfter.milliseconds(String(repeating: "9", count: 400), now: 0) == .max)
    }

    @Test(
        "A date in each of the three forms",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "sun, 06 nov 1994 08:49:37 gmt",
        ])
    func dates(header: String) {
        #expect(RetryAfter.date(header) == 784_111_777_000)
        #expect(RetryAfter.milliseconds(header, now: 784_111_770_000) == 7_000)
        #expect(RetryAfter.milliseconds(header, now: 784_111_778_000) == 0)
    }

    @Test(
        "Dates at the edges of years",
        arguments: [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Tue, 29 Feb 2028 23:59:59 GMT", 1_835_481_599_000),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799_000), ("Sat, 01 Jan 2000 00:00:00 GMT", 946_684_800_000),
        ])
    func edges(header: String, moment: Int64) {
        #expect(RetryAfter.date(header) == moment)
    }

    @Test(
        "A text that is neither asks for no wait",
        arguments: [
            "", " ", "-5", "1.5", "soon", "5 s", "Sun, 06 Nov 1994 25:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET", "1994-11-06T08:49:37Z", "a b c d e f g", ", , , , , , , ,",
            "Sun, 06 Nov 99999999999999999999 08:49:37 GMT",
        ])
    func neither(header: String) {
        #expect(RetryAfter.milliseconds(header, now: 0) == nil)
    }
}
