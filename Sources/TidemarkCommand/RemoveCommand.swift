#if Server
    import ArgumentParser
    import Foundation
    import GRDB
    import Tidemark
    import TidemarkServer

    struct RemoveCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Take everything of Tidemark's out of an SQLite file again.",
            discussion: """
                Drops the capture triggers, the tidemark_* tables with their shadows, and the indexes that were made on
                the app's tables, in one transaction. The app's own tables stay as they are, with all their rows, and
                so does what the server has. Where edits were not sent, or wait for a decision, nothing is removed
                unless --force says that they may be forgotten. A file that is synced again later begins anew. Stop the
                app first: what runs on the file stops syncing, and an app that is started again puts all of it back.

                --capture takes only the triggers off: for a migration that drops a column which they name, or
                rewrites rows that are not to be sent one by one. The next sync puts them back, and so does a
                `tidemark sync --watch` that runs.

                Exit code 1: something was not sent, and nothing was removed.

                EXAMPLES
                  tidemark remove app.sqlite
                  tidemark remove app.sqlite --force --json
                  tidemark remove app.sqlite --capture && sqlite3 app.sqlite 'ALTER TABLE task DROP COLUMN note'
                """)

        @Argument(help: ArgumentHelp("The SQLite file.", valueName: "file"), completion: .file())
        var file: String

        @Flag(help: "Forget edits that were not sent, were refused, or wait for a decision.")
        var force = false

        @Flag(help: "Take only the triggers off; the next sync puts them back.")
        var capture = false

        @OptionGroup var output: ReportOptions

        func validate() throws {
            guard !force || !capture else { throw ValidationError("--capture forgets nothing: leave --force out.") }
        }

        func run() async throws {
            let device = try DeviceFile(file)
            let removed: UninstallReport
            do {
                removed = try await device.database.write { [force, capture] db in
                    guard capture else { return try SyncEngine.uninstall(db, discardingUnsent: force) }
                    return try SyncEngine.countedRemovalOfCapture(db)
                }
            } catch let error as SyncError where error.code == .unsentEdits {
                var failure = Failure(error)
                failure.hint =
                    "`tidemark status \(file)` tells of them; `tidemark sync` sends what is pending, "
                    + "`tidemark rejected` and `tidemark orphaned` decide what was refused or has no scope; "
                    + "--force forgets all"
                throw failure
            }
            let report = RemoveReport(removed, onlyCapture: capture)
            try output.tell(report)
        }
    }

    /// A report of what `remove` took out of a file, for people and for programs.
    struct RemoveReport: Codable, Hashable, Report {
        /// The counts of `UnsentEdits`.
        struct Forgotten: Codable, Hashable {
            var pending, sent, blocked, rejected, undecided, orphaned, inferred, attachments: Int
        }

        var tables: [String]
        var triggers, libraryTables, indexes: Int
        /// Edits that no server will hear of.
        var forgotten: Forgotten
        private var onlyCapture: Bool
        private var forgottenText: String?

        private enum CodingKeys: CodingKey { case tables, triggers, libraryTables, indexes, forgotten, onlyCapture }

        init(_ removed: UninstallReport, onlyCapture: Bool) {
            (tables, triggers) = (removed.tables, removed.triggers)
            (libraryTables, indexes) = (removed.libraryTables, removed.indexes)
            let unsent = removed.unsent
            forgotten = Forgotten(
                pending: unsent.pending, sent: unsent.sent, blocked: unsent.blocked, rejected: unsent.rejected,
                undecided: unsent.undecided, orphaned: unsent.orphaned, inferred: unsent.inferred,
                attachments: unsent.attachments)
            self.onlyCapture = onlyCapture
            forgottenText = unsent.isEmpty ? nil : unsent.description
        }

        var lines: [String] {
            if onlyCapture {
                guard triggers > 0 else { return ["nothing removed: no table of the file is captured"] }
                return ["removed \(triggers.counted("trigger")); the next sync puts them back"]
            }
            guard libraryTables > 0 else { return ["nothing removed: the file was never synced"] }
            var lines = [
                "removed \(triggers.counted("trigger")), \(libraryTables.counted("table")) and "
                    + "\(indexes.counted("index", "indexes")) of Tidemark's",
                "kept with all rows: \(tables.isEmpty ? "no table was synced" : tables.joined(separator: ", "))",
            ]
            if let forgottenText { lines.append("forgotten: edits that no server has taken: \(forgottenText)") }
            return lines
        }
    }
#endif
