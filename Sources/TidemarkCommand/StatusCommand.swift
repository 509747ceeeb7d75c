#if Server
    import ArgumentParser
    import Foundation
    import GRDB
    import Tidemark
    import TidemarkServer

    struct StatusCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "status",
            abstract: "Say how a synced SQLite file stands, without asking the network.",
            discussion: """
                Where the rows of each table stand (confirmed, outgoing, stalled, unable to travel: together all there
                are), how many edits are pending, sent without a verdict or blocked, and since when, what the server
                refused and why, which rows this file's schema does not take, which edits met somebody else's, which
                inferred edits wait for a confirmation, how far each scope has come, and what syncing has cost over the
                file's life. Nothing is written, and the file may be one that only others may write to.
                Exit code 3: some row or edit is not confirmed.

                EXAMPLES
                  tidemark status app.sqlite
                  tidemark status app.sqlite --json
                """)

        @Argument(help: ArgumentHelp("The SQLite file.", valueName: "file"), completion: .file())
        var file: String

        @OptionGroup var output: ReportOptions

        func run() async throws {
            let report = try await FileReport(DeviceFile(file, isReadOnly: true))
            try output.tell(report)
            if !report.isConfirmed { throw ExitCode(TidemarkTool.undecided) }
        }
    }

    /// All that a file says about its own syncing.
    struct FileReport: Codable, Hashable, Report {
        struct Refusal: Codable, Hashable {
            var table, record, code, detail, hint: String
            var isDelete: Bool
            /// Edits that this one blocks.
            var blocked: Int
        }

        struct QuarantinedEntry: Codable, Hashable { var table, record, reason: String }

        struct ScopeReport: Codable, Hashable {
            var scope: String
            var complete, head: Int64?
            var lastSync: Date?
            /// When the server took the access away; `nil` while it is granted.
            var accessLost: Date?
            /// Versions that the server was last heard to be ahead, and seconds since the scope was last in sync.
            var lag: Int64?
            var ageSeconds: Double?
        }

        /// Whether nothing waits, for the server or for anybody's word.
        var isConfirmed = true
        var tables: [TableRows] = []
        /// Tables that were synced and are in the file no more.
        var missingTables: [String] = []
        /// Tables without their triggers: what was written to them since is not in these numbers.
        var uncaptured: [String] = []
        /// The inferred edits, made while nothing was captured: they wait for a confirmation.
        var inferred: [InferredReport] = []
        /// Edits kept for a scope that is lost, or of records that were deleted elsewhere.
        var orphaned = 0
        /// Edits that are not sent yet, with nothing in their way; sent without a verdict; and behind another record.
        var pending = 0
        var sent = 0
        var blocked = 0
        /// When the oldest edit that is pending or sent was made.
        var oldestEdit: Date?
        var rejected: [Refusal] = []
        var quarantined: [QuarantinedEntry] = []
        var conflicts: [MetEdit] = []
        var scopes: [ScopeReport] = []
        var warnings: [String] = []
        /// Rows that no other device could name, and why.
        var unable: [UnableRows] = []
        /// Tables that could be synced and are not.
        var unsynced: [String] = []
        /// Scopes that rows wait for, and that were never synced.
        var unsyncedScopes: [String] = []
        /// What the file's syncing has cost, and where it has failed, over the file's life.
        var measures = SyncMeasures()

        init(_ device: DeviceFile) async throws {
            let inspection = try device.inspect()
            warnings = inspection.warnings
            guard let declared = try device.declared() else {
                missingTables = try device.missingTables()
                return
            }
            let engine = try declared.engine(device, NoTransport())
            let status = try await engine.status()
            isConfirmed = status.isConfirmed && inspection.uncaptured.isEmpty
            tables = TableRows.all(status)
            missingTables = status.missingTables
            orphaned = status.orphaned
            inferred = try await engine.inferredEdits().map(InferredReport.init)
            (pending, sent, blocked) = (status.pending, status.sent, status.blocked)
            oldestEdit = status.oldestEdit
            uncaptured = inspection.uncaptured
            unable = inspection.nameless.map(UnableRows.init)
            unsynced = try UnsyncedTables.names(device)
            unsyncedScopes = try UnsyncedScopes.names(device)
            self.scopes = status.scopes.sorted { $0.key < $1.key }.map { scope, status in
                ScopeReport(
                    scope: scope.name, complete: status.complete, head: status.head, lastSync: status.lastSync,
                    accessLost: status.accessLost, lag: status.lag,
                    ageSeconds: status.age().map { ($0 / .seconds(1)).rounded() })
            }
            measures = try await engine.measures()
            rejected = try await engine.rejectedOperations().map { operation in
                Refusal(
                    table: operation.entity, record: operation.record, code: operation.code,
                    detail: operation.detail, hint: operation.hint, isDelete: operation.isDelete,
                    blocked: operation.dependants.count)
            }
            conflicts = try await engine.conflicts().map(MetEdit.init)
            quarantined = try await device.database.read { db in
                try QuarantinedRecord.fetchAll(db)
                    .map { QuarantinedEntry(table: $0.entity, record: $0.record, reason: $0.reason) }
            }
        }

        var lines: [String] {
            guard !tables.isEmpty || !missingTables.isEmpty else {
                return ["not synced yet: `tidemark sync` begins it"] + warnings.map { "warning: \($0)" }
            }
            var lines = tables.map(\.line)
            lines += missingTables.map { "table \($0): not in the file any more; its rows on the server stay" }
            lines += uncaptured.map {
                "table \($0): it was rebuilt or lost its triggers; the next sync finds what was written since"
            }
            for scope in scopes {
                let position = scope.complete.map { "whole as of version \($0)" } ?? "nothing has come yet"
                let last = scope.lastSync.map { ", last in sync \($0.formatted(.iso8601))" } ?? ""
                let lost = scope.accessLost.map { "; access was taken away \($0.formatted(.iso8601))" } ?? ""
                lines.append("scope \(scope.scope): \(position)\(last)\(lost)")
            }
            lines += inferred.map(\.line)
            if orphaned > 0 {
                lines.append(
                    "orphaned: \(orphaned.counted("edit")) for a scope that is gone, or to decide; `tidemark orphaned` "
                        + "lists them")
            }
            let since = oldestEdit.map { ", the oldest of \($0.formatted(.iso8601))" } ?? ""
            let behind = blocked > 0 ? ", \(blocked) blocked" : ""
            lines.append("edits: \(pending) pending, \(sent) sent without a verdict\(behind)\(since)")
            lines += unable.flatMap(\.lines)
            lines += Excerpt.lines(rejected, "refused edits", by: \.lines)
            lines += Excerpt.lines(groups, "reasons", by: \.lines)
            lines += Excerpt.lines(conflicts, "conflicts") { conflict in
                conflict.fields.map { field in
                    "conflict: \(conflict.table) \(conflict.record).\(field.name): \(field.mine) here,"
                        + " \(field.theirs) elsewhere, \(field.result) stands (\(conflict.rule))"
                }
            }
            return lines + UnsyncedScopes.lines(unsyncedScopes) + measures.lines + UnsyncedTables.lines(unsynced)
                + warnings.map { "warning: \($0)" }
        }

        /// Quarantined rows of one table that are kept outside it for one reason.
        private struct Group {
            /// Records that are named for each.
            static let shown = 3
            var first: QuarantinedEntry
            var records: [String]

            var lines: [String] {
                let named = records.prefix(Self.shown).joined(separator: ", ")
                let more = records.count > Self.shown ? " and \(records.count - Self.shown) more" : ""
                return ["quarantined: \(first.table) \(named)\(more): \(first.reason)"]
            }
        }

        private var groups: [Group] {
            var groups: [Group] = []
            var places: [String: Int] = [:]
            for row in quarantined {
                let key = "\(row.table)\u{0}\(row.reason)"
                if let place = places[key] {
                    groups[place].records.append(row.record)
                } else {
                    places[key] = groups.count
                    groups.append(Group(first: row, records: [row.record]))
                }
            }
            return groups
        }
    }

    extension SyncMeasures {
        /// Short: what a person asks for first. All of it is in the JSON.
        fileprivate var lines: [String] {
            guard let since else { return [] }
            let came = density.map { ", \(($0 * 10).rounded() / 10) changes came for each that counted" } ?? ""
            let failed = Stage.all.compactMap { stage in failures[stage].map { "\(stage) \($0)" } }
            return [
                "measured since \(since.formatted(.iso8601)): \(requests.counted("request")), \(bytesSent.asBytes) up, "
                    + "\(bytesReceived.asBytes) down" + came
                    + (failed.isEmpty ? "" : "; failed: " + failed.joined(separator: ", "))
            ]
        }
    }

    extension FileReport.Refusal {
        fileprivate var lines: [String] {
            var lines = ["rejected: \(table) \(record): \(detail) (\(code))"]
            if !hint.isEmpty { lines.append("  hint: \(hint)") }
            if blocked > 0 { lines.append("  it blocks \(blocked.counted("edit"))") }
            return lines
        }
    }

    /// Nothing leaves the machine while a status is read.
    struct NoTransport: Transport {
        func send(_ request: TransportRequest) async throws -> TransportResponse {
            throw URLError(.notConnectedToInternet)
        }
    }
#endif
