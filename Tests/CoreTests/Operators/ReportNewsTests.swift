import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("When a device tells of itself")
struct ReportNewsTests {
    @Test("Counts are rounded down to 1, 2 or 5 times a power of ten")
    func rounded() {
        let counts: [Int64] = [-3, 0, 1, 2, 4, 5, 9, 10, 19, 20, 49, 50, 99, 100, 7_654, .max]
        #expect(
            counts.map { DeviceReport.rounded($0) } == [
                0, 0, 1, 2, 2, 5, 5, 10, 10, 20, 20, 50, 50, 100, 5_000, 5_000_000_000_000_000_000,
            ])
    }

    @Test("The first report is news, and one that says the same is not")
    func same() {
        var report = DeviceReport()
        report.app = "1"
        #expect(report.isNews(after: nil))
        #expect(!report.isNews(after: report))
        var other = report
        other.pending = 1
        #expect(other.isNews(after: report) && report.isNews(after: other))
    }

    @Test("An age is news once it has become minutes, hours, days or weeks")
    func ages() {
        func news(_ age: Int64?, _ known: Int64?) -> Bool {
            var (report, before) = (DeviceReport(), DeviceReport())
            (report.oldest, before.oldest) = (age.map { Duration.seconds($0) }, known.map { Duration.seconds($0) })
            return report.isNews(after: before)
        }
        #expect(!news(59, 0) && news(60, 59) && !news(3599, 60) && news(3600, 60) && news(86_400, 3600))
        #expect(news(604_800, 86_400) && !news(3_000_000_000, 604_800) && news(nil, 5) && news(5, nil))
    }
}
