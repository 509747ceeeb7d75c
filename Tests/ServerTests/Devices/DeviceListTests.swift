import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

/// The operator's view of all devices (F3, W100).
@Suite("Which device is behind, with what, and why")
struct DeviceListTests {
    private func told(
        _ report: String, _ operations: [String] = [], client: String = "device-aaaa", sub: String = "ada",
        since: String? = nil, by bench: EngineBench, mode: ExchangeMode = .pushAndPull
    ) async throws -> Answer {
        let since = since.map { #""since":"\#($0)","# } ?? ""
        let body =
            #"{"scope":"s","clientId":"\#(client)",\#(since)"device":\#(report),"#
            + #""operations":[\#(operations.joined(separator: ","))]}"#
        return try Answer(
            try await bench.server.exchange(Array(body.utf8), mode: mode) { _ in .readWrite(as: sub) })
    }

    private func filled(_ kind: StoreKind) async throws -> EngineBench {
        let bench = try EngineBench(kind)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "a", ["n": 1]) }
        return bench
    }

    @Test("A device's word is kept with a pull and with a push, as of when it came", arguments: StoreKind.allCases)
    func kept(kind: StoreKind) async throws {
        let bench = try await filled(kind)
        let first = try await told(
            #"{"pending":20,"oldest":60,"refused":2,"app":"2.1","library":"0.1.0"}"#, by: bench)
        bench.clock += 5000
        var device = try #require(try await bench.server.devices().devices.first)
        #expect(device.scope == "s" && device.name == DeviceName(principal: "ada", client: "device-aaaa"))
        #expect(device.seen == Date(milliseconds: 1_000_000) && device.reportedAt == Date(milliseconds: 1_000_000))
        #expect(device.oldestEdit == Date(milliseconds: 940_000))
        #expect(device.report?.pending == 20 && device.report?.refused == 2)
        #expect(device.report?.app == "2.1" && device.report?.library == "0.1.0" && device.report?.error == nil)
        let push = try await told(
            #"{"pending":0,"error":"database_failed"}"#, [upsert(1, "b", "{}")], since: first.nextSince, by: bench,
            mode: .pushOnly)
        #expect(push.statuses == ["applied"])
        device = try #require(try await bench.server.devices().devices.first)
        #expect(device.report?.pending == 0 && device.report?.error == "database_failed" && device.report?.app == nil)
        #expect(device.reportedAt == Date(milliseconds: 1_005_000) && device.oldestEdit == nil)
        // A device of an earlier version says nothing, and nothing of what is known goes.
        _ = try await bench.exchange([upsert(2, "c", "{}")], since: first.nextSince)
        #expect(try await bench.server.devices().devices.first?.report?.error == "database_failed")
    }

    @Test("The same word again is no write, and an age that grew by itself neither", arguments: StoreKind.allCases)
    func unchanged(kind: StoreKind) async throws {
        let bench = try await filled(kind)
        let since = try await told(#"{"pending":5,"oldest":3600}"#, by: bench).nextSince
        _ = try await told(#"{"pending":5,"oldest":3600}"#, since: since, by: bench)
        bench.clock += 1000
        _ = try await told(#"{"pending":5,"oldest":7200}"#, since: since, by: bench)
        let device = try #require(try await bench.server.devices().devices.first)
        #expect(device.reportedAt == Date(milliseconds: 1_000_000) && device.report?.oldest == .seconds(3600))
        _ = try await told(#"{"pending":5,"oldest":90000}"#, since: since, by: bench)
        #expect(try await bench.server.devices().devices.first?.reportedAt == Date(milliseconds: 1_001_000))
    }

    @Test("A device that lies harms nobody: its edits are taken, and its numbers and texts are bounded")
    func lies() async throws {
        for kind in StoreKind.allCases {
            let bench = try await filled(kind)
            let long = String(repeating: "x", count: 5000)
            let reports = [
                #"{"pending":9223372036854775807,"oldest":1e300,"refused":-5,"quarantined":1e9}"#,
                #"{"pending":"many","oldest":{},"app":"\#(long)","library":"\u001b[2J","error":7,"more":[[]]}"#, "[]",
                "null", "0",
            ]
            for (index, report) in reports.enumerated() {
                let answer = try await told(report, [upsert(index + 1, "b\(index)", "{}")], by: bench)
                #expect(answer.statuses == ["applied"], "\(report)")
                let device = try #require(try await bench.server.devices().devices.first)
                #expect((0...1_000_000_000).contains(device.report?.pending ?? -1))
                #expect((device.report?.oldest ?? .zero) <= .seconds(3_155_760_000))
                #expect(device.report?.app == nil && device.report?.library == nil)
            }
        }
    }

    @Test("Behind is what came since the checkpoint that it showed, and when", arguments: StoreKind.allCases)
    func behind(kind: StoreKind) async throws {
        let bench = try await filled(kind)
        let here = try await bench.exchange([], client: "device-aaaa").nextSince
        _ = try await bench.exchange([], client: "device-aaaa", since: here)
        bench.clock += 3_600_000
        _ = try await bench.exchange([upsert(1, "b", "{}")], client: "device-bbbb", since: here)
        bench.clock += 3_600_000
        let answer = try await bench.exchange([upsert(2, "c", "{}")], client: "device-bbbb", since: here)
        _ = try await bench.exchange([], client: "device-bbbb", since: answer.nextSince)
        bench.clock += 3_600_000
        _ = try await bench.exchange([], client: "device-bbbb", since: answer.nextSince)
        let devices = try await bench.server.devices().devices
        #expect(devices.map(\.name.client) == ["device-aaaa", "device-bbbb"])
        #expect(devices.map(\.behind) == [2, 0])
        #expect(devices.map(\.behindSince?.milliseconds) == [4_600_000, nil])
        #expect(devices.map(\.seen.milliseconds) == [1_000_000, 11_800_000])
    }

    /// Five devices of two users, each with its trouble.
    private func fleet(_ kind: StoreKind) async throws -> EngineBench {
        let bench = try await filled(kind)
        let reports = [
            #"{"pending":5,"oldest":10}"#, #"{"pending":50,"oldest":7200,"refused":1}"#, #"{"quarantined":1}"#,
            #"{"error":"request_refused"}"#, #"{"pending":1,"oldest":90000}"#,
        ]
        for (index, report) in reports.enumerated() {
            bench.clock += 1000
            _ = try await told(report, client: "device-\(index)", sub: index < 3 ? "ada" : "bob", by: bench)
        }
        return bench
    }

    private func names(_ bench: EngineBench, _ change: (inout FleetQuery) -> Void) async throws -> [String] {
        var query = FleetQuery()
        change(&query)
        return try await bench.server.devices(query).devices.map { String($0.name.client.dropFirst(7)) }
    }

    @Test("They are listed by what is asked for, in its order, and all are counted", arguments: StoreKind.allCases)
    func questions(kind: StoreKind) async throws {
        let bench = try await fleet(kind)
        #expect(try await names(bench) { $0.order = .pending } == ["1", "0", "4", "2", "3"])
        #expect(try await names(bench) { $0.order = .oldest } == ["4", "1", "0", "2", "3"])
        #expect(try await names(bench) { $0.order = .seen } == ["0", "1", "2", "3", "4"])
        #expect(try await names(bench) { $0.principal = "bob" } == ["3", "4"])
        #expect(try await names(bench) { $0.client = "device-2" } == ["2"])
        #expect(try await names(bench) { $0.hasTrouble = true } == ["1", "2", "3"])
        #expect(try await names(bench) { $0.seenBefore = Date(milliseconds: 1_003_000) } == ["0", "1"])
        #expect(try await names(bench) { $0.leastBehind = 1 }.count == 5)
        #expect(try await names(bench) { $0.leastBehind = 2 } == [])
        #expect(try await names(bench) { $0.scope = "t" } == [])
        var query = FleetQuery()
        query.limit = 2
        let page = try await bench.server.devices(query)
        #expect(page.devices.count == 2 && page.total == 5)
    }

    @Test("A device that may only read is not listed, whatever it tells", arguments: StoreKind.allCases)
    func reader(kind: StoreKind) async throws {
        let bench = try await filled(kind)
        let body = #"{"scope":"s","clientId":"device-aaaa","device":{"pending":7},"operations":[]}"#
        _ = try await bench.server.exchange(Array(body.utf8), mode: .pushAndPull) { _ in .read(as: "eve") }
        #expect(try await bench.server.devices().total == 0)
    }

    @Test("A device that is forgotten takes its word with it, and so does an erasure", arguments: StoreKind.allCases)
    func forgotten(kind: StoreKind) async throws {
        let bench = try await fleet(kind)
        try await bench.bench.write { writer in
            _ = try writer.forget(devicesBefore: 1_003_000, lanesBefore: 0, limit: 9)
        }
        #expect(try await names(bench) { $0.order = .seen } == ["2", "3", "4"])
        // It comes back with nothing known of it.
        _ = try await bench.exchange([], client: "device-0")
        #expect(try await bench.server.devices().devices.count { $0.report == nil } == 1)
        _ = try await bench.server.erase(.principal("ada"))
        #expect(try await names(bench) { $0.order = .seen } == ["3", "4"])
    }
}
