#if Server
    import ArgumentParser
    import Foundation
    import Tidemark
    import TidemarkServer
    import UnixSignals

    struct SyncCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "sync",
            abstract: "Sync any SQLite file with a server.",
            discussion: """
                The file keeps its own schema. The first run puts capture triggers and a few tidemark_* tables into it;
                from then on every edit, by whatever program, is sent, and what changed elsewhere comes back. Rows that
                are there already are sent too. Later runs remember tables and scope.

                Where an app has synced the file before, its tables and the scopes of their rows stay as it declared
                them; a run works on one scope and leaves rows of others alone.

                EXAMPLES
                  export TIDEMARK_TOKEN=$(tidemark token --store sqlite:sync.sqlite --sub ada --scope 'workspace:*=rw')
                  tidemark sync app.sqlite --server http://127.0.0.1:8080 --scope workspace:1 \\
                    --table task --table project
                  tidemark sync app.sqlite --server http://127.0.0.1:8080 --watch
                """)

        @Argument(help: ArgumentHelp("The SQLite file.", valueName: "file"))
        var file: String

        @OptionGroup var connection: ServerConnection

        @Option(help: ArgumentHelp("The scope that the rows belong to.", valueName: "name"))
        var scope: String?

        @Option(name: .customLong("table"), help: ArgumentHelp("A table to sync; may be repeated.", valueName: "name"))
        var tables: [String] = []

        @Option(help: ArgumentHelp("Rows on the first page; it adapts from there.", valueName: "rows"))
        var page: Int?

        @Flag(help: "Keep syncing until interrupted.")
        var watch = false

        @Flag(help: "Send what was written while nothing was captured and is too much to be sent without a word.")
        var confirm = false

        @Flag(help: "Take the server's rows instead of that.")
        var takeServers = false

        @Flag(help: "Report as JSON.")
        var json = false

        func validate() throws {
            guard !confirm || !takeServers else {
                throw ValidationError("--confirm and --take-servers exclude each other.")
            }
            if let page, !(1...5000).contains(page) { throw ValidationError("--page is from 1 to 5000.") }
        }

        func run() async throws {
            let device = try DeviceFile(file)
            let scope = try device.scope(named: scope)
            // An app's declarations stay as they are, even if its tables never synced.
            let isOurs = try device.isOurs()
            var declared = try device.declared(with: tables, in: scope, mayRelease: isOurs)
            let transport = try connection.transport()
            if isOurs { await declared.place(as: transport) }
            var configuration = SyncConfiguration()
            if let page {
                configuration.firstPage = page
                configuration.pageRange =
                    min(page, configuration.pageRange.lowerBound)...max(page, configuration.pageRange.upperBound)
                configuration.firstSnapshotPage = page
                configuration.snapshotRange =
                    min(page, configuration.snapshotRange.lowerBound)...configuration.snapshotRange.upperBound
            }
            do {
                let engine = try declared.engine(device, transport, configuration: configuration)
                await engine.restrict(to: scope)
                try await engine.install()
                if isOurs { try device.noteCommand() }
                if confirm {
                    try await engine.confirmInferredEdits()
                    try await engine.confirmBrakedDeletes()
                }
                if takeServers { try await engine.discardInferredEdits() }
                try await watch ? follow(engine, device) : once(engine, device)
            } catch let error as SyncError { throw Failure(error) }
        }

        private func once(_ engine: SyncEngine, _ device: DeviceFile) async throws {
            let report = try await engine.syncNow()
            let status = try await engine.status()
            let summary = SyncSummary(
                report, status, try await engine.inferredEdits(), brakedDeletes: try await engine.brakedDeletes().count)
            if json { Console.line(try summary.json()) } else { summary.lines.forEach(Console.line) }
            try warn(status, device)
            if !summary.isSettled { throw ExitCode(TidemarkTool.undecided) }
        }

        /// Says what the schema's author should know, once and again when it is something else.
        private func warn(_ status: SyncStatus, _ device: DeviceFile) throws {
            guard !json, try device.noteWarnings(status.warnings) else { return }
            for warning in status.warnings { Console.line("warning: \(warning)") }
        }

        /// Goes on until a signal comes; each change of the status is a line.
        private func follow(_ engine: SyncEngine, _ device: DeviceFile) async throws {
            try warn(try await engine.status(), device)
            let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await engine.run() }
                tasks.addTask {
                    var last = ""
                    for await status in engine.statusUpdates {
                        let line = try json ? StatusSummary(status).json() : StatusSummary(status).line
                        if line != last { Console.line(line) }
                        last = line
                    }
                }
                tasks.addTask { for await _ in signals { return } }
                try await tasks.next()
                tasks.cancelAll()
                while let result = await tasks.nextResult() {
                    if case .failure(let error) = result, !(error is CancellationError) { throw error }
                }
            }
        }
    }
#endif
