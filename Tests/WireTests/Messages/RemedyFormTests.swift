import Foundation
import Testing

@testable import TidemarkWire

@Suite("A remedy and what came of it, written and read (W108)")
struct RemedyFormTests {
    private func read(_ text: String) throws -> NumberedRemedy? {
        try Array(text.utf8).withUnsafeBytes { bytes in
            var reader = JSONReader(bytes)
            let remedy = try NumberedRemedy.read(from: &reader)
            try reader.finish()
            return remedy
        }
    }

    private func report(_ remedy: String) throws -> DeviceReport? {
        let body = Array(#"{"scope":"s","clientId":"device-aaaa","device":{"remedy":\#(remedy)},"operations":[]}"#.utf8)
        return try body.withUnsafeBytes { try ExchangeRequest(from: $0, operationLimit: 9) }.report
    }

    @Test(
        "It comes back as it was written, on the wire and in a store",
        arguments: [
            Remedy.slowDown(interval: .seconds(600)), .refill, .verify, .stop(message: "Update \"the\" app – é."),
            .clear,
        ])
    func round(remedy: Remedy) throws {
        let numbered = NumberedRemedy(number: 7, remedy: remedy)
        var writer = JSONWriter()
        numbered.append(to: &writer)
        #expect(try read(String(decoding: writer.bytes, as: UTF8.self)) == numbered)
        var kept = KeptRemedy(number: 1 << 50, remedy: remedy, asked: Date(milliseconds: 1_800_000_000_000))
        #expect(KeptRemedy(bytes: kept.bytes) == kept)
        kept.told = Date(milliseconds: 1_800_000_000_001)
        kept.outcome = RemedyOutcome(1 << 50, .failed, code: "interrupted")
        #expect(KeptRemedy(bytes: kept.bytes) == kept)
        #expect(KeptRemedy(bytes: Array("{}".utf8)) == nil && KeptRemedy(bytes: []) == nil)
    }

    @Test("A store keeps moments in milliseconds since 1970, and an interval in whole seconds")
    func moments() {
        func text(_ kept: KeptRemedy) -> String { String(decoding: kept.bytes, as: UTF8.self) }
        var kept = KeptRemedy(
            number: 7, remedy: .slowDown(interval: .milliseconds(1_500)), asked: Date(milliseconds: 1_800_000_000_001))
        let start = #"{"number":7,"kind":"slowDown","interval":1,"asked":1800000000001"#
        #expect(text(kept) == start + "}")
        kept.told = Date(timeIntervalSince1970: 1_800_000_000.0026)
        #expect(text(kept) == start + #","told":1800000000003}"#)
        let read = KeptRemedy(bytes: kept.bytes)
        #expect(read?.remedy == .slowDown(interval: .seconds(1)))
        #expect(read?.asked == kept.asked && read?.told == Date(milliseconds: 1_800_000_000_003))
        // What no number holds is kept as the outermost one.
        (kept.asked, kept.told) = (.distantPast, Date(timeIntervalSince1970: 1e300))
        kept.remedy = .slowDown(interval: .seconds(1e19))
        #expect(text(kept).contains(#""interval":\#(Int64.max),"#) && text(kept).hasSuffix(#""told":\#(Int64.max)}"#))
        #expect(KeptRemedy(bytes: kept.bytes)?.remedy == .slowDown(interval: .seconds(86_400)))
    }

    @Test("The outcome of a remedy is read back, alone too")
    func outcome() throws {
        var outcome = RemedyOutcome(7, .done)
        (outcome.differing, outcome.repaired) = (3, 2)
        for pending in [Int64(0), 5] {
            var told = DeviceReport()
            (told.remedy, told.pending) = (outcome, pending)
            var writer = JSONWriter()
            told.append(to: &writer)
            let text = String(decoding: writer.bytes, as: UTF8.self)
            #expect(text.contains("pending") == (pending > 0), "\(text)")
            let body = Array(#"{"scope":"s","clientId":"device-aaaa","device":\#(text),"operations":[]}"#.utf8)
            let read = try body.withUnsafeBytes { try ExchangeRequest(from: $0, operationLimit: 9) }.report
            #expect(read == told)
        }
    }

    @Test(
        "A kind that is not known has its number, so that it is refused",
        arguments: [
            #"{"number":7,"kind":"sing","song":[1]}"#, #"{"number":7}"#, #"{"number":7,"kind":"slowDown"}"#,
            #"{"number":7,"kind":"slowDown","interval":"long"}"#, #"{"number":7,"kind":7}"#,
        ])
    func unknown(text: String) throws { #expect(try read(text) == NumberedRemedy(number: 7, remedy: nil)) }

    @Test(
        "A malformed remedy is none, and an answer with it is read", arguments: ["7", "null", "[]", "{}", #""x""#])
    func malformed(text: String) throws { #expect(try read(text) == nil) }

    @Test("Intervals and messages are brought into their bounds")
    func bounds() throws {
        for (text, seconds) in [("1e9", 86_400), ("-5", 1), ("1.9", 1)] as [(String, Int64)] {
            let remedy = try read(#"{"number":1,"kind":"slowDown","interval":\#(text)}"#)?.remedy
            #expect(remedy == .slowDown(interval: .seconds(seconds)))
        }
        let long = String(repeating: "x", count: 501)
        for message in [long, #"a\u001b[2J"#, #"a\nb"#, ""] {
            #expect(try read(#"{"number":1,"kind":"stop","message":"\#(message)"}"#)?.remedy == .stop(message: ""))
        }
        let whole = String(long.dropFirst())
        #expect(try read(#"{"number":1,"kind":"stop","message":"\#(whole)"}"#)?.remedy == .stop(message: whole))
    }

    @Test("A device's lie about a remedy is bounded, and refuses no request")
    func lies() throws {
        for text in ["7", "null", #"{"number":7}"#, #"{"outcome":"done"}"#, #"{"number":7,"outcome":"won"}"#] {
            #expect(try report(text) == DeviceReport(), "\(text)")
        }
        let code = String(repeating: "c", count: 65)
        let lie = try report(
            #"{"number":1e300,"outcome":"done","code":"\#(code)","differing":-3,"repaired":1e300}"#)
        #expect(lie?.remedy?.number == 1 << 53 && lie?.remedy?.code == nil)
        #expect(lie?.remedy?.differing == 0 && lie?.remedy?.repaired == 1_000_000_000)
    }

    @Test("A member that is given twice is refused here as everywhere")
    func twice() {
        let error = #expect(throws: JSONError.self) {
            try report(#"{"number":7,"outcome":"done","number":8}"#)
        }
        #expect(error?.reason == .duplicateMember)
    }
}
