#if Server
    import ArgumentParser
    import TidemarkWire

    /// `tidemark`: the server, its tokens, and sync for any SQLite file.
    @main
    struct TidemarkTool: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "tidemark",
            abstract: "Offline-first delta sync for SQLite files, and the server that it meets at.",
            discussion: """
                Start with `tidemark demo`: a server, two devices, a kill -9, a lost disk and the proof, in a minute.

                Exit codes:
                  0   done
                  1   failed
                  3   done, but something waits: refused edits, quarantined rows, tables left out, not in sync
                  64  not understood

                With --json an error is one line on standard error: {"error":{"code":…,"message":…,"hint":…}}. Colors
                go to terminals only, and to none where NO_COLOR is set and not empty, or TERM is dumb.
                """,
            version: LibraryVersion.text,
            subcommands: commands)

        private static let commands: [any ParsableCommand.Type] = [
            ServeCommand.self, BackupCommand.self, CompactCommand.self, EraseCommand.self, AttachCommand.self,
            DetachCommand.self, DevicesCommand.self, BlobsCommand.self, TokenCommand.self, SyncCommand.self,
            StatusCommand.self, RejectedCommand.self, ConflictsCommand.self, OrphanedCommand.self, VerifyCommand.self,
            RemoveCommand.self, DemoCommand.self, ManualCommand.self,
        ]

        /// Done, but something waits for a decision.
        static let undecided: Int32 = 3

        static func main() async {
            let isJSON = CommandLine.arguments.dropFirst().prefix { $0 != "--" }.contains("--json")
            do {
                let words = Array(CommandLine.arguments.dropFirst())
                if let name = try CommandTree.overridden(in: words, dump: { _dumpHelp() }) {
                    throw ValidationError("\(name) was given twice: it takes one value.")
                }
                var command = try parseAsRoot()
                if var command = command as? any AsyncParsableCommand {
                    try await command.run()
                } else {
                    try command.run()
                }
            } catch let failure as Failure {
                failure.report(asJSON: isJSON)
                exit(withError: ExitCode.failure)
            } catch {
                // ArgumentParser knows how to show its own errors (usage, help, exit codes).
                if error is CleanExit || error is ExitCode || exitCode(for: error) != .failure {
                    let isUsage = exitCode(for: error) == .validationFailure
                    guard isJSON, isUsage else { exit(withError: error) }
                    Failure(message(for: error), hint: "--help tells what there is", code: "usage")
                        .report(asJSON: true)
                    exit(withError: ExitCode.validationFailure)
                }
                Failure(of: error).report(asJSON: isJSON)
                exit(withError: ExitCode.failure)
            }
        }
    }
#else
    import Foundation

    /// The package was built without its `Server` trait, and so without everything that a command line needs.
    @main
    struct TidemarkTool {
        static func main() {
            FileHandle.standardError.write(
                Data(
                    """
                    error: this `tidemark` was built without the Server trait
                    hint: build it with `swift build --traits Server --product tidemark`

                    """.utf8))
            exit(1)
        }
    }
#endif
