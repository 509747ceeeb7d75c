#if Server
    import ArgumentParser
    import Foundation
    import GRDB
    import UnixSignals

    struct DemoCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "demo",
            abstract: "Show it all at once: a server, two devices, a kill -9, a lost disk, and the proof.",
            discussion: """
                Starts a server on a free loopback port, fills an SQLite file with real records of this machine, syncs
                it to a second file, edits both apart from each other, kills one of them in mid-sync, puts an old copy
                in the place of the server's store, damages a row, and shows that server and files hold the same rows
                in the end. Needs no configuration and no network. The files stay; where they are is printed at the
                end. Exit code 1: something differs.

                EXAMPLES
                  tidemark demo
                  tidemark demo --rows 20000 --keep /tmp/demo
                """)

        @Option(help: ArgumentHelp("Rows to begin with, at most.", valueName: "rows"))
        var rows = 5000

        @Option(help: ArgumentHelp("A new folder for the files.", valueName: "folder"), completion: .directory)
        var keep: String?

        /// The records that the devices are filled with.
        enum Records: String, ExpressibleByArgument, CaseIterable { case packages, countries }

        @Option(help: "packages or countries; without it packages, where this machine has some.")
        var records: Records?

        @Flag(help: "Report as JSON; the progress goes to standard error.")
        var json = false

        func validate() throws {
            guard rows >= 100 else { throw ValidationError("--rows is at least 100.") }
        }

        func run() async throws {
            let folder = try makeFolder()
            let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await show(in: folder) }
                tasks.addTask {
                    for await _ in signals { throw Failure("interrupted") }
                    try await Task.sleep(for: .seconds(86_400))
                }
                defer { tasks.cancelAll() }
                try await tasks.next()
            }
        }

        private func makeFolder() throws -> URL {
            let files = FileManager.default
            let folder =
                keep.map { URL(filePath: $0) }
                ?? files.temporaryDirectory.appending(
                    path: "tidemark-demo-\(ProcessInfo.processInfo.processIdentifier)")
            let path = folder.path(percentEncoded: false)
            guard !files.fileExists(atPath: path) else {
                throw Failure("\(path) exists already", hint: "name a new folder with --keep, or remove it")
            }
            try files.createDirectory(at: folder, withIntermediateDirectories: true)
            return folder
        }

        private func show(in folder: URL) async throws {
            let data = records == .countries ? DemoData.countries(limit: rows) : DemoData.ofThisMachine(rows: rows)
            let world = try await DemoWorld.start(in: folder, data: data)
            let story = DemoStory(world: world) { json ? Console.note($0) : Console.line($0) }
            do {
                let report = try await story.tell()
                guard await world.server.stop() == 0 else { throw Failure("the server did not end cleanly") }
                if json { Console.line(try JSON.text(report)) } else { story.farewell() }
                guard report.isSame else { throw Failure("files and server do not hold the same rows") }
            } catch {
                await world.server.end()
                throw error
            }
        }
    }
#endif
