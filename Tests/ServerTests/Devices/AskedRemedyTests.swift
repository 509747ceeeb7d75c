import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

/// What an operator asks of a device, as the server keeps and tells it (F3, W108).
@Suite("An operator asks a device for a remedy")
struct AskedRemedyTests {
    private func told(
        _ report: String?, client: String = "device-aaaa", access: Access = .readWrite(as: "ada"),
        scope: String = "s", by bench: EngineBench
    ) async throws -> NumberedRemedy? {
        let device = report.map { #""device":\#($0),"# } ?? ""
        let body = #"{"scope":"\#(scope)","clientId":"\#(client)",\#(device)"operations":[]}"#
        let bytes = try await bench.server.exchange(Array(body.utf8), mode: .pushAndPull) { _ in access }
        return try bytes.withUnsafeBytes { bytes in
            var reader = JSONReader(bytes)
            var remedy: NumberedRemedy?
            try reader.enterObject()
            while let name = try reader.nextMember() {
                if reader.string(name) == "remedy" {
                    remedy = try NumberedRemedy.read(from: &reader)
                } else {
                    _ = try reader.skip()
                }
            }
            return remedy
        }
    }

    private func known(_ kind: StoreKind) async throws -> EngineBench {
        let bench = try EngineBench(kind)
        for scope in ["s", "t"] as [Scope] {
            try await bench.server.commit(to: scope) { $0.upsert("task", id: "a", ["n": 1]) }
            _ = try await told(nil, scope: scope.name, by: bench)
        }
        return bench
    }

    private func kept(_ bench: EngineBench, in scope: Scope = "s") async throws -> KeptRemedy? {
        var query = FleetQuery()
        query.scope = scope
        return try await bench.server.devices(query).devices.first?.remedy
    }

    @Test("Each answer carries it until the device says what came of it", arguments: StoreKind.allCases)
    func carried(kind: StoreKind) async throws {
        let bench = try await known(kind)
        #expect(try await told("{}", by: bench) == nil)
        bench.clock = 2_000_000
        let asked = try await bench.server.remedy(.slowDown(interval: .seconds(600)), for: "device-aaaa", in: "s")
        #expect(asked.map(\.scope) == ["s"])
        #expect(asked.first?.remedy == (try await kept(bench)))
        let remedy = NumberedRemedy(number: 2_000_000, remedy: .slowDown(interval: .seconds(600)))
        for report in [nil, "{}", #"{"remedy":{"number":5,"outcome":"done"}}"#] {
            #expect(try await told(report, by: bench) == remedy)
        }
        #expect(try await told(nil, client: "device-bbbb", by: bench) == nil)
        #expect(try await told(nil, scope: "t", by: bench) == nil)
        #expect(try await kept(bench)?.outcome == nil)
        bench.clock = 3_000_000
        #expect(try await told(#"{"remedy":{"number":2000000,"outcome":"done"}}"#, by: bench) == nil)
        #expect(try await kept(bench)?.outcome == RemedyOutcome(2_000_000, .done))
        #expect(try await kept(bench)?.told == Date(milliseconds: 3_000_000))
        #expect(try await kept(bench)?.asked == Date(milliseconds: 2_000_000))
        #expect(try await told(nil, by: bench) == nil)
    }

    @Test("An interval is asked in whole seconds, whatever fraction was named", arguments: StoreKind.allCases)
    func fractions(kind: StoreKind) async throws {
        let bench = try await known(kind)
        let asked = [Duration.milliseconds(1_500), .seconds(1), .milliseconds(86_400_999)]
        let heard = [Duration.seconds(1), .seconds(1), .seconds(86_400)]
        for (interval, whole) in zip(asked, heard) {
            let answer = try await bench.server.remedy(.slowDown(interval: interval), for: "device-aaaa", in: "s")
            #expect(answer.first?.remedy?.remedy == .slowDown(interval: whole))
            #expect(try await kept(bench)?.remedy == .slowDown(interval: whole))
            #expect(try await told(nil, by: bench)?.remedy == .slowDown(interval: whole))
        }
    }

    @Test(
        "A device whose file was put back hears of a stop again, and of nothing that is over",
        arguments: StoreKind.allCases)
    func putBack(kind: StoreKind) async throws {
        let bench = try await known(kind)
        for (remedy, comes) in [(.stop(message: "m"), true), (.refill, false)] as [(Remedy, Bool)] {
            let asked = try await bench.server.remedy(remedy, for: "device-aaaa", in: "s")
            let number = try #require(asked.first?.remedy?.number)
            _ = try await told(#"{"remedy":{"number":\#(number),"outcome":"done"}}"#, by: bench)
            #expect(
                try await told(#"{"pending":0,"library":"0.1.0"}"#, by: bench).map(\.number) == (comes ? number : nil))
            #expect(try await told(nil, by: bench) == nil)
        }
    }

    @Test(
        "A newer one takes its place, with a higher number, and a word on the older one counts no more",
        arguments: StoreKind.allCases)
    func newer(kind: StoreKind) async throws {
        let bench = try await known(kind)
        var numbers: [Int64] = []
        for remedy in [.stop(message: "m"), .clear, .verify] as [Remedy] {
            numbers.append(
                try #require(try await bench.server.remedy(remedy, for: "device-aaaa", in: "s").first?.remedy?.number))
        }
        #expect(numbers == [1_000_000, 1_000_001, 1_000_002])
        _ = try await told(#"{"remedy":{"number":1000001,"outcome":"done"}}"#, by: bench)
        #expect(try await kept(bench)?.outcome == nil)
        _ = try await told(
            #"{"remedy":{"number":1000002,"outcome":"done","differing":3,"repaired":2}}"#, by: bench)
        let outcome = try #require(try await kept(bench)?.outcome)
        #expect(outcome.differing == 3 && outcome.repaired == 2)
    }

    @Test("It stays while the device goes on, and goes with it", arguments: StoreKind.allCases)
    func stays(kind: StoreKind) async throws {
        let bench = try await known(kind)
        try await bench.server.remedy(.verify, for: "device-aaaa")
        #expect(try await kept(bench, in: "t") != nil)
        bench.clock += 7_200_000
        _ = try await bench.exchange([upsert(1, "b", "{}")])
        #expect(try await kept(bench)?.remedy == .verify)
        try await bench.bench.write { writer in
            _ = try writer.forget(devicesBefore: .max, lanesBefore: 0, limit: 9)
        }
        _ = try await told(nil, by: bench)
        #expect(try await kept(bench) == nil)
    }

    @Test("A device that tells nothing of itself tells of the remedy alone", arguments: StoreKind.allCases)
    func silent(kind: StoreKind) async throws {
        let bench = try await known(kind)
        try await bench.server.remedy(.refill, for: "device-aaaa", in: "s")
        _ = try await told(#"{"remedy":{"number":1000000,"outcome":"failed","code":"c"}}"#, by: bench)
        let device = try #require(try await bench.server.devices().devices.first { $0.scope == "s" })
        #expect(device.report == nil && device.reportedAt == nil)
        #expect(device.remedy?.outcome == RemedyOutcome(1_000_000, .failed, code: "c"))
    }

    @Test(
        "A device that tells of a remedy which no store knows hears that nothing is asked",
        arguments: StoreKind.allCases)
    func unknown(kind: StoreKind) async throws {
        let bench = try await known(kind)
        for (report, said) in [(#"{"remedy":{"number":7,"outcome":"done"}}"#, true), (#"{"pending":1}"#, false)] {
            let body = #"{"scope":"s","clientId":"device-aaaa","device":\#(report),"operations":[]}"#
            let bytes = try await bench.server.exchange(Array(body.utf8), mode: .pushAndPull) { _ in
                .readWrite(as: "ada")
            }
            #expect(String(decoding: bytes, as: UTF8.self).contains(#""remedy":null"#) == said)
        }
    }

    @Test(
        "A store that was put back to an older remedy ends the device's newer one, and asks the older one again",
        arguments: StoreKind.allCases)
    func older(kind: StoreKind) async throws {
        for (remedy, isTold) in [(.clear, false), (.stop(message: "m"), true), (.refill, true)] as [(Remedy, Bool)] {
            let bench = try await known(kind)
            let number = try #require(
                try await bench.server.remedy(remedy, for: "device-aaaa", in: "s").first?.remedy?.number)
            if isTold { _ = try await told(#"{"remedy":{"number":\#(number),"outcome":"done"}}"#, by: bench) }
            let word = #"{"remedy":{"number":\#(number + 1),"outcome":"done"}}"#
            let newer = #"{"scope":"s","clientId":"device-aaaa","device":\#(word),"operations":[]}"#
            let bytes = try await bench.server.exchange(Array(newer.utf8), mode: .pushAndPull) { _ in
                .readWrite(as: "ada")
            }
            #expect(String(decoding: bytes, as: UTF8.self).contains(#""remedy":null"#))
            // It knows of none now. What is over is not asked again; a stop is, also where its clear was lost.
            let again = try await told(#"{"pending":1}"#, by: bench)
            #expect(again?.number == (remedy == .refill ? nil : number))
        }
    }

    @Test("A device that may only read by now hears and tells of a remedy; nobody becomes known by that")
    func reader() async throws {
        let bench = try await known(.sqlite)
        try await bench.server.remedy(.stop(message: "m"), for: "device-aaaa", in: "s")
        _ = try await told(#"{"remedy":{"number":1000000,"outcome":"done"}}"#, by: bench)
        try await bench.server.remedy(.clear, for: "device-aaaa", in: "s")
        let word = #"{"remedy":{"number":1000000,"outcome":"done"}}"#
        #expect(try await told(word, access: .read(as: "ada"), by: bench)?.remedy == .clear)
        _ = try await told(
            #"{"remedy":{"number":1000001,"outcome":"done"}}"#, access: .read(as: "ada"), by: bench)
        #expect(try await kept(bench)?.outcome?.result == .done)
        #expect(try await told(word, client: "device-cccc", access: .read(as: "ada"), by: bench) == nil)
        #expect(try await bench.server.devices().total == 2)
    }

    @Test("A remedy that cannot be asked for is refused, and the refusal says what to do")
    func refused() async throws {
        let bench = try await known(.sqlite)
        let server = bench.server
        let long = String(repeating: "é", count: 251)
        for message in ["", long, "a\nb", "a\u{1b}[2J", "a\u{202e}b"] {
            await #expect(throws: RemedyError.invalidMessage) {
                try await server.remedy(.stop(message: message), for: "device-aaaa")
            }
        }
        try await server.remedy(.stop(message: String(long.dropFirst())), for: "device-aaaa")
        for interval in [.zero, .seconds(-1), .milliseconds(999), .seconds(86_401), .seconds(1e19)] as [Duration] {
            await #expect(throws: RemedyError.invalidInterval) {
                try await server.remedy(.slowDown(interval: interval), for: "device-aaaa")
            }
        }
        await #expect(throws: RemedyError.unknownDevice("device-zzzz")) {
            try await server.remedy(.refill, for: "device-zzzz")
        }
        await #expect(throws: RemedyError.unknownDevice("device-aaaa")) {
            try await server.remedy(.refill, for: "device-aaaa", in: "elsewhere")
        }
        _ = try await told(nil, access: .readWrite(as: "bob"), by: bench)
        await #expect(throws: RemedyError.ambiguousDevice("device-aaaa", users: ["ada", "bob"])) {
            try await server.remedy(.refill, for: "device-aaaa")
        }
        #expect(try await server.remedy(.refill, for: "device-aaaa", of: "bob").count == 1)
        for error in [
            RemedyError.invalidMessage, .invalidInterval, .unknownDevice("d"), .ambiguousDevice("d", users: ["u"]),
        ] {
            #expect(!error.description.isEmpty && !error.hint.isEmpty)
        }
    }
}
