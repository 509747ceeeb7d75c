import Testing
import TidemarkTesting

@testable import TidemarkCore

@Suite("A server that comes back is not run over (B10)")
struct FleetTests {
    private struct Device {
        var machine: SyncMachine
        var due: Instant
    }

    private static let devices = 10_000
    private static let outage: Int64 = 3_600_000

    /// When each device comes back after an outage of an hour that all of them noticed at one moment.
    private func comebacks(_ settings: SyncMachine.Settings) -> [Int64] {
        var generator = SplitMix64(seed: 20_261_125)
        return (0..<Self.devices).map { _ in
            var device = Device(machine: SyncMachine(settings), due: Instant(milliseconds: 0))
            while device.due.milliseconds < Self.outage {
                _ = device.machine.handle(.timer, now: device.due, jitter: 0)
                let failed = device.machine.handle(
                    .failed(.transient, wait: nil), now: device.due, jitter: generator.next())
                guard case .sleep(let until) = failed.last else { return .max }
                device.due = until
            }
            return device.due.milliseconds - Self.outage
        }
    }

    @Test("10,000 devices come back with a peak of at most twice the mean", arguments: [30_000, 900_000] as [Int64])
    func comeBack(longest: Int64) throws {
        var settings = SyncMachine.Settings()
        settings.longestWaitMilliseconds = longest
        let comebacks = comebacks(settings)
        #expect(try #require(comebacks.max()) <= longest)
        let parts: Int64 = 50
        var counts = [Int](repeating: 0, count: Int(parts))
        for moment in comebacks { counts[Int(min(moment * parts / longest, parts - 1))] += 1 }
        #expect(try #require(counts.max()) <= 2 * Self.devices / Int(parts), "\(counts)")
    }
}
