import Foundation
import Testing
import TidemarkServer

/// What a host does for a test of its own: everything here is made with the public interface alone.
@Suite("Moments and times of the server, made outside of it")
struct FleetValueTests {
    private static let moment = Date(timeIntervalSince1970: 1_800_000_000)

    @Test("A device of the list has dates and durations, and so has what was asked of it")
    func device() {
        var device = FleetDevice(
            scope: "s", name: DeviceName(principal: "ada", client: "device-aaaa"), seen: Self.moment, behind: 0)
        #expect(device.oldestEdit == nil)
        var report = DeviceReport()
        report.oldest = .milliseconds(90_500)
        (device.report, device.reportedAt) = (report, Self.moment)
        #expect(device.oldestEdit == Self.moment - 90)
        var remedy = KeptRemedy(number: 1, remedy: .slowDown(interval: .seconds(600)), asked: Self.moment)
        remedy.told = Self.moment + 5
        device.remedy = remedy
        #expect(device.remedy?.asked == Self.moment && device.remedy?.told == Self.moment + 5)
        let intervals: [Duration] = [.milliseconds(999), .seconds(1), .seconds(86_400), .seconds(86_401)]
        #expect(intervals.map { Remedy.intervals.contains($0) } == [false, true, true, false])
    }

    @Test("A blob and a compaction have dates")
    func storage() {
        #expect(StoredBlob(hash: "00", size: 1, seen: Self.moment).seen == Self.moment)
        var compaction = Compaction()
        #expect(compaction.wall == compaction.present)
        compaction.wall = Self.moment
        #expect(compaction.wall > compaction.present)
    }
}
