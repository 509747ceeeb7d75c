#if Server
    import ArgumentParser
    import Foundation
    import TidemarkServer

    struct EraseCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "erase",
            abstract: "Erase a scope, or what a server keeps under a user's name.",
            discussion: """
                --scope: all that the store keeps of a scope, for everybody and for good. Its devices are told
                `scope_erased`: the rows leave them, and edits that had not arrived are orphaned there. The name is
                never used again. Rows of attached tables are yours, and stay.
                --sub: the user's devices and what is known of their edits, in all scopes. The log does not say who
                wrote a record: erase the scopes that are the user's own. Take the user's token away before, or the
                devices are written down again.

                Without --confirm it says what would go, and ends with 3. A server may run meanwhile. What stops in the
                middle leaves a scope refused: give the same command again. At the end an SQLite file is written anew,
                which takes as much room again, and writers wait for it; --keep-file leaves that out. Backups, other
                copies and devices that have not asked since hold what they hold: see Documentation/Erasure.md.

                EXAMPLES
                  tidemark erase --store sqlite:sync.sqlite --scope user:17
                  tidemark erase --store sqlite:sync.sqlite --scope user:17 --confirm --json
                  tidemark erase --store postgres://tidemark@db.internal/tidemark --sub user-17 --confirm
                """)

        @Option(help: ArgumentHelp(StoreAddress.help, valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Declarations and settings, as YAML.", valueName: "file"), completion: .file())
        var config: String?

        @Option(help: ArgumentHelp("The scope to erase.", valueName: "name"))
        var scope: String?

        @Option(help: ArgumentHelp("The user to erase, as tokens name him in `sub`.", valueName: "name"))
        var sub: String?

        @Flag(help: "Do it: nothing restores it.")
        var confirm = false

        @Flag(help: "Do not write an SQLite file anew: bytes of what was removed may be left in it.")
        var keepFile = false

        @OptionGroup var output: ReportOptions

        func validate() throws {
            guard (scope == nil) != (sub == nil) else { throw ValidationError("Either --scope or --sub.") }
        }

        func run() async throws {
            let target = try target()
            let settings = try Settings(flags: [.store: store, .config: config])
            let address = try StoreAddress(settings[.store])
            try address.checkFile()
            let opened = try address.open(partitions: settings[.partitions])
            defer { opened.close() }
            let server = SyncServer(store: opened.log, configuration: settings.file.configuration)
            let erasure = try await server.erase(target, isRehearsal: !confirm)
            if let scope, erasure.scopes == 0 {
                throw Failure("the store keeps nothing of the scope '\(scope)'", hint: "check the name")
            }
            let rewrites = confirm && !keepFile && address.path != nil
            if rewrites { try await purge(server) }
            let report = EraseReport(erasure, scope: scope, sub: sub, isDone: confirm, isRewritten: rewrites)
            try output.tell(report)
            if !confirm { throw ExitCode(TidemarkTool.undecided) }
        }

        private func target() throws -> ErasureTarget {
            guard let name = scope else { return .principal(sub ?? "") }
            return .scope(try Scope(argument: name))
        }

        private func purge(_ server: SyncServer) async throws {
            do { try await server.purge() } catch let error as StoreUnavailable {
                throw Failure(
                    "all is erased, but the file cannot be written anew now, and bytes may be left in it: \(error)",
                    hint: "make room, or wait until other programs are done with it, and give the same command again")
            }
        }
    }

    /// The result of an erasure, for people and for programs.
    struct EraseReport: Codable, Hashable, Report {
        /// Whether it was done, and not only counted.
        var erased: Bool
        var scope, sub: String?
        /// When the scope was erased for the first time.
        var erasedAt: Date?
        /// Scopes in which there was something.
        var scopes: Int
        /// Changes in the log: records, what has replaced them, deletions and events.
        var changes: Int
        var devices, lanes, verdicts, assignedIds, tallies, rejections: Int
        /// Blobs, and uploads that are not finished.
        var blobs, parts: Int
        /// Whether the store's file was written anew.
        var rewritten: Bool

        init(_ erasure: Erasure, scope: String?, sub: String?, isDone: Bool, isRewritten: Bool) {
            (erased, rewritten, self.scope, self.sub) = (isDone, isRewritten, scope, sub)
            erasedAt = erasure.erasedAt
            (scopes, changes, devices) = (erasure.scopes, erasure.changes, erasure.devices)
            (lanes, verdicts, assignedIds) = (erasure.lanes, erasure.verdicts, erasure.assignedIDs)
            (tallies, rejections) = (erasure.tallies, erasure.rejections)
            (blobs, parts) = (erasure.blobs, erasure.parts)
        }

        var lines: [String] {
            let place = scope.map { "of scope \($0)" } ?? "under the name \(sub ?? ""), in \(scopes.counted("scope"))"
            let parts = [
                changes.counted("change"), devices.counted("device"), lanes.counted("lane"),
                verdicts.counted("verdict"),
                assignedIds.counted("assigned id"), tallies.counted("tally", "tallies"),
                rejections.counted("refused edit"), blobs.counted("blob"), self.parts.counted("unfinished upload"),
            ]
            var lines = ["\(erased ? "erased" : "would erase") \(place): " + parts.joined(separator: ", ")]
            if let scope, let erasedAt {
                lines.append("scope \(scope) is refused since \(erasedAt.formatted(.iso8601))")
            }
            if sub != nil { lines.append("records that the user wrote stay: erase the scopes that are his own") }
            if !erased { lines.append("nothing was erased: --confirm does it, and nothing restores it") }
            if erased, !rewritten { lines.append("bytes of it may be left in the database's files: vacuum them") }
            if erased { lines.append("backups, other copies, and devices that have not asked since still hold it") }
            return lines
        }
    }
#endif
