import GRDB
import TidemarkCore
import TidemarkWire

/// The device's reports of itself in one scope: which one was told, and whether the next says something new (W100).
struct Telling: Hashable, Sendable {
    /// The app's version.
    var app: String?
    /// The failure that stands in the way at present.
    var error: SyncError.Code?
    /// Whether the app tells nothing of itself: what came of a remedy is told alone.
    var isSilent = false
    /// The outcome of the operator's remedy, as the caller has just read it from the file.
    var outcome: RemedyOutcome?
    /// The last report that was answered, and when that was.
    private var told: DeviceReport?
    private var moment: Instant?
    /// The outcome of a remedy when the file was opened: an earlier opening has told it, or tried to.
    private var found: RemedyOutcome?

    /// After so many milliseconds a report is told again: the server may have had no place for the last one.
    private static let interval: Int64 = 60 * 60 * 1000

    /// Whether the report goes along, whatever it says.
    func isDue(now: Instant) -> Bool { moment.map { now - $0 >= Self.interval } ?? true }

    /// Failures that the server has seen itself, or that are over as soon as it hears of them.
    private static let untold: Set<SyncError.Code> = [.networkUnavailable, .serverUnavailable, .databaseInterrupted]

    /// The report for a request with these operations; `nil` where it says nothing new.
    ///
    /// - Parameters:
    ///   - now: the time that only grows.
    ///   - time: the wall clock, in milliseconds since 1970.
    func report(
        _ db: Database, _ schema: SyncSchema, _ scope: Scope, beside entries: [OutboxEntry], now: Instant, time: Int64
    ) throws -> DeviceReport? {
        guard let report = try wholeReport(db, schema, scope, beside: entries, time: time) else { return nil }
        return isDue(now: now) || report.isNews(after: told) ? report : nil
    }

    /// The report, whether it says something new or not; `nil` where there is nothing to tell.
    func wholeReport(
        _ db: Database, _ schema: SyncSchema, _ scope: Scope, beside entries: [OutboxEntry], time: Int64
    ) throws -> DeviceReport? {
        guard !isSilent else {
            guard let outcome else { return nil }
            var report = DeviceReport()
            report.remedy = outcome
            return report
        }
        var report = try DeviceReport(db, schema, scope, beside: entries, now: time)
        report.app = DeviceReport.text(app)
        report.library = LibraryVersion.text
        report.error = DeviceReport.text(error.flatMap { Self.untold.contains($0) ? nil : $0.rawValue })
        report.remedy = outcome
        return report
    }

    /// Whether the server has heard what came of the remedy, as far as is known. It asks for what it has not heard.
    func hasTold(_ report: DeviceReport?) -> Bool {
        report.map { $0.remedy == told?.remedy || $0.remedy == found } ?? true
    }

    /// The file is opened, with what came of a remedy before.
    mutating func opened(_ outcome: RemedyOutcome?) { found = outcome }

    /// Makes the next report tell the remedy's outcome again, since the server does not know it.
    mutating func repeatRemedy() { told?.remedy = nil }

    /// The request with this report was answered.
    mutating func answered(_ report: DeviceReport?, now: Instant) {
        guard let report else { return }
        (told, moment) = (report, now)
    }
}
