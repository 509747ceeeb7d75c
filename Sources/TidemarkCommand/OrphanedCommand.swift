#if Server
    import ArgumentParser
    import Foundation
    import Tidemark

    struct OrphanedCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "orphaned",
            abstract: "List edits of a device's file that no scope has any more, and decide them.",
            discussion: """
                An edit is orphaned where access to its scope was lost, or the scope was left, before it was sent. It
                comes back by itself when the scope is synced again. A row that a restored table resurrected after its
                record was deleted elsewhere comes back only with --replay. What is replayed goes with the next
                sync. Exit code 3: some are left.

                EXAMPLES
                  tidemark orphaned app.sqlite
                  tidemark orphaned app.sqlite --json
                  tidemark orphaned app.sqlite --replay 4
                  tidemark orphaned app.sqlite --discard 4
                """)

        @Argument(help: ArgumentHelp("The device's SQLite file.", valueName: "file"), completion: .file())
        var file: String

        @Option(help: ArgumentHelp("Make the edit of this number anew.", valueName: "number"))
        var replay: Int64?

        @Option(help: ArgumentHelp("Let go of the edit of this number.", valueName: "number"))
        var discard: Int64?

        @OptionGroup var output: ReportOptions

        func validate() throws {
            guard replay == nil || discard == nil else {
                throw ValidationError("One of --replay and --discard.")
            }
        }

        func run() async throws {
            let device = try DeviceFile(file, isReadOnly: replay ?? discard == nil)
            let engine = try device.lists()
            if let number = replay ?? discard {
                let line = try await decide(number, engine)
                if !output.json { Console.line(line) }
            }
            let left = try await engine?.orphanedEdits().map(OrphanReport.init) ?? []
            if output.json {
                Console.line(try JSON.text(left))
            } else {
                Excerpt.lines(left, "orphaned edits", by: \.lines).forEach(Console.line)
            }
            if !left.isEmpty { throw ExitCode(TidemarkTool.undecided) }
        }

        /// Returns what was decided, in a sentence.
        private func decide(_ number: Int64, _ engine: SyncEngine?) async throws -> String {
            guard let engine, let edit = try await engine.orphanedEdits().first(where: { $0.id == number }) else {
                throw Failure("there is no orphaned edit \(number)", hint: "`tidemark orphaned \(file)` lists them")
            }
            let what = "\(number): \(edit.entity) \(edit.record)"
            if discard != nil {
                try await engine.discard(edit)
                return "\(what) is discarded"
            }
            do { try await engine.replay(edit) } catch let error as SyncError where error.code == .recordGone {
                var failure = Failure(error)
                failure.hint = "an edit of a lost scope comes back by itself when \(edit.scope.name) is synced again"
                throw failure
            }
            return "\(what) is made anew, and goes with the next sync"
        }
    }

    /// An edit that no scope has any more, as the command tells it.
    struct OrphanReport: Codable, Hashable {
        /// The number in the file.
        var number: Int64
        var scope, table, record, kind: String
        /// Why it does not come back, where it could not be made anew.
        var reason: String?
        /// The columns' values as a person reads them.
        var fields: [String: String]
        var at: Date

        init(_ edit: OrphanedEdit) {
            number = edit.id
            (scope, table, record) = (edit.scope.name, edit.entity, edit.record)
            (kind, reason, at) = (edit.kind.rawValue, edit.reason, edit.orphanedAt)
            fields = edit.fields.mapValues(\.description)
        }

        var lines: [String] {
            ["\(number): \(table) \(record): \(kind), of scope \(scope) · \(at.formatted(.iso8601))"]
                + fields.sorted { $0.key < $1.key }.map { "  \($0.key): \($0.value)" }
                + (reason.map { ["  reason: \($0)"] } ?? [])
        }
    }
#endif
