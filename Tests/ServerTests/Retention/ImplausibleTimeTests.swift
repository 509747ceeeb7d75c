import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

/// What a host's settings, a declaration or a token names may be any time.
@Suite("Times that no clock shows end no server")
struct ImplausibleTimeTests {
    private static let times: [Duration] = [
        .seconds(1e19), .seconds(-1e19), .seconds(Int64.max), .seconds(Int64.min), .milliseconds(Int64.max),
    ]

    @Test("A window, a retention and a brake may be of any length", arguments: times)
    func settings(time: Duration) async throws {
        let bench = try EngineBench(.sqlite)
        defer { withExtendedLifetime(bench) {} }
        var configuration = SyncServer.Configuration.still
        configuration.now = { Date(milliseconds: 1_000_000) }
        (configuration.window, configuration.retention) = (time, time)
        (configuration.deviceRetention, configuration.laneRetention) = (time, time)
        configuration.sharedPageDelay = time
        let task = EntityDeclaration("task", brake: DeleteBrake(rows: 9, window: time), attachments: ["file"])
        let server = SyncServer(store: bench.bench.store, entities: [task], configuration: configuration)
        try await server.commit(to: "s") { $0.upsert("task", id: "a", ["n": 1]) }
        let delete = #"{"lane":"lane-aaaa","number":1,"type":"delete","entity":"task","id":"a","baseVersion":1}"#
        #expect(try await bench.exchange([delete], on: server).statuses == ["applied"])
        try await server.sweep()
        let compaction = try await server.compact(elapsed: time)
        #expect(compaction.wall == Date(milliseconds: 1_000_000) && compaction.present == compaction.wall)
    }

    @Test("A token's end may be any moment")
    func expiry() throws {
        var configuration = SyncServer.Configuration.still
        configuration.now = { Date(milliseconds: 1_000_000) }
        let server = SyncServer(store: try StoreBench(.sqlite).store, configuration: configuration)
        #expect(server.millisecondsUntil(Date(timeIntervalSince1970: -1e300).milliseconds) < 0)
        #expect(server.millisecondsUntil(Date(timeIntervalSince1970: 1e300).milliseconds) == 86_400_000)
    }

    @Test("The oldest edit of a device that tells any age has a moment")
    func ages() {
        var device = FleetDevice(
            scope: "s", name: DeviceName(principal: "ada", client: "device-aaaa"), seen: .distantPast, behind: 0)
        var report = DeviceReport()
        device.reportedAt = .distantPast
        for age in Self.times {
            report.oldest = age
            device.report = report
            #expect(device.oldestEdit.map { ($0 < .distantPast) == (age > .zero) } == true)
        }
    }
}
