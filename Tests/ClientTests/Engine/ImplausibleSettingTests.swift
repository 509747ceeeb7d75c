import Testing
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// An app's settings may name any time.
@Suite("Settings that no clock shows end no app", .hangLimit)
struct ImplausibleSettingTests {
    @Test(
        "An engine syncs, and fails, with times of any length",
        arguments: [Duration.seconds(1e19), .seconds(-1e19), .milliseconds(Int64.max)])
    func times(time: Duration) async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        var configuration = SyncConfiguration()
        (configuration.finishedRetention, configuration.criticalFirstAfter) = (time, time)
        (configuration.tick, configuration.longestWait, configuration.breakerCoolDown) = (time, time, time)
        configuration.backoff = SyncConfiguration.Backoff(base: time, maximum: time, jitter: time)
        let engine = try device.engine(configuration)
        await device.wire.loseRequest()
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        _ = try await engine.status()
        try await engine.syncNow()
        #expect(try await engine.status().scopes[Device.scope]?.lastSync != nil)
    }
}
