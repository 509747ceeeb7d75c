#if Server
    import Foundation
    import Tidemark
    import TidemarkWire

    /// The result of one sync, for people and for programs.
    struct SyncSummary: Codable, Hashable, Report {
        var pushed, received, applied, quarantined, rejected, roundTrips, bytesSent, bytesReceived: Int
        var seconds: Double
        /// Whether nothing waits, for the server or for anybody's word.
        var isConfirmed: Bool
        /// The edits left in the file after it, as `status` counts them: not sent yet, sent without a verdict, and
        /// behind another record.
        var pending, sent, blocked: Int
        /// All operations of the file that the server refused, and all of its quarantined rows.
        var rejectedInAll, quarantinedInAll: Int
        /// Edits and rows of this device that gave way in it, or wait for a decision, since somebody else's met them.
        var conflicts: Int
        /// Open conflicts of the file.
        var undecided: Int
        /// Where the rows of each table stand, and what waits for a word.
        var tables: [TableRows]
        var missingTables: [String]
        var inferred: [InferredReport]
        var orphaned: Int
        /// Deletes that the server's brake refused.
        var brakedDeletes: Int
        /// Tables that `--all` did not take.
        var leftOut: [LeftOut]
        var warnings: [String]
        /// Tables that could be synced and are not.
        var unsynced: [String] = []
        /// Scopes that rows wait for, and that were never synced.
        var unsyncedScopes: [String] = []

        init(
            _ report: SyncReport, _ status: SyncStatus, _ inferred: [InferredEdits], brakedDeletes: Int,
            leftOut: [LeftOut]
        ) {
            self.brakedDeletes = brakedDeletes
            self.leftOut = leftOut
            pushed = report.pushed
            received = report.received
            applied = report.applied
            quarantined = report.quarantined
            rejected = report.rejected
            roundTrips = report.roundTrips
            bytesSent = report.bytesSent
            bytesReceived = report.bytesReceived
            seconds = (report.duration / .milliseconds(1)).rounded() / 1000
            isConfirmed = status.isConfirmed
            (pending, sent, blocked) = (status.pending, status.sent, status.blocked)
            rejectedInAll = status.rejected
            quarantinedInAll = status.quarantined
            conflicts = report.conflicts
            undecided = status.undecided
            tables = TableRows.all(status)
            missingTables = status.missingTables
            self.inferred = inferred.map(InferredReport.init)
            orphaned = status.orphaned
            warnings = status.warnings
        }

        var lines: [String] {
            var lines = [
                "pushed \(pushed), received \(received), applied \(applied)"
                    + " · \(bytesSent.asBytes) up, \(bytesReceived.asBytes) down"
                    + " · \(roundTrips.counted("round trip")) · \(seconds.asSeconds)"
            ]
            if pending > 0 { lines.append("pending: \(pending.counted("edit")) not sent yet") }
            if sent > 0 { lines.append("sent: \(sent.counted("edit")) without a verdict") }
            if blocked > 0 { lines.append("blocked: \(blocked.counted("edit")) behind another record") }
            if rejectedInAll > 0 { lines.append("rejected: \(rejectedInAll); `tidemark status` says why") }
            if quarantinedInAll > 0 {
                lines.append("quarantined: \(quarantinedInAll.counted("row")); `tidemark status` says why")
            }
            if conflicts > 0 {
                lines.append(
                    "conflicts: \(conflicts.counted("edit or row", "edits or rows")) of this file met somebody else's; "
                        + "`tidemark conflicts` says what stands, and restores what gave way")
            }
            if undecided > 0 {
                lines.append("undecided: \(undecided.counted("conflict")); `tidemark conflicts` takes the decisions")
            }
            lines += tables.compactMap(\.troubles)
            lines += missingTables.map { "table \($0) is not in the file any more; its rows on the server stay" }
            lines += inferred.map(\.line)
            if brakedDeletes > 0 {
                lines.append(
                    "to confirm: the server refused \(brakedDeletes.counted("delete")), more than it takes without a "
                        + "word; `tidemark sync FILE --confirm` sends them, `tidemark rejected FILE` lists them")
            }
            if orphaned > 0 { lines.append("orphaned: \(orphaned.counted("edit")); `tidemark orphaned` lists them") }
            return lines + UnsyncedScopes.lines(unsyncedScopes) + UnsyncedTables.lines(unsynced)
        }
    }

    /// How a file stands, in one line.
    struct StatusSummary: Codable, Hashable {
        var activity: String
        var pending, sent, blocked, rejected, quarantined: Int
        var error: String?
        /// What the schema's author should know.
        var warnings: [String]

        init(_ status: SyncStatus) {
            switch status.activity {
            case .idle: activity = "idle"
            case .syncing: activity = "syncing"
            case .waiting: activity = "waiting"
            case .waitingForOtherProcess: activity = "synced by another process"
            case .stopped: activity = "stopped"
            }
            (pending, sent, blocked) = (status.pending, status.sent, status.blocked)
            rejected = status.rejected
            quarantined = status.quarantined
            error = status.lastError?.description
            warnings = status.warnings
        }

        /// Whether it is worth a line after the last one: work that changes no number is none, since a watch that asks
        /// for news would begin and end it for ever.
        func isNews(after last: StatusSummary?) -> Bool {
            guard var last else { return true }
            let isWork = activity == "syncing"
            if isWork { last.activity = activity }
            return self != last
        }

        var line: String {
            var line = "\(activity): \(pending) pending, \(sent) sent without a verdict"
            if blocked > 0 { line += ", \(blocked) blocked" }
            if rejected > 0 { line += ", \(rejected) rejected" }
            if quarantined > 0 { line += ", \(quarantined) quarantined" }
            return line + (error.map { " · \($0)" } ?? "")
        }
    }

    enum JSON {
        static func text(_ value: some Encodable) throws -> String {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            encoder.dateEncodingStrategy = .iso8601
            // Anybody may have written the texts, and the output may be a terminal.
            return String(decoding: try encoder.encode(value), as: UTF8.self).printable
        }
    }

    extension Int {
        /// `1 row`, `2 rows`.
        func counted(_ one: String, _ many: String? = nil) -> String {
            "\(self) \(self == 1 ? one : many ?? one + "s")"
        }

        /// `512 B`, `13.4 kB`, `2.1 MB`.
        var asBytes: String {
            let value = Double(self)
            if value < 1000 { return "\(self) B" }
            return value < 1_000_000 ? "\((value / 100).rounded() / 10) kB" : "\((value / 100_000).rounded() / 10) MB"
        }
    }

    extension Double {
        /// `0.35 s`, `12.1 s`.
        var asSeconds: String { self < 10 ? "\((self * 100).rounded() / 100) s" : "\((self * 10).rounded() / 10) s" }
    }
#endif
