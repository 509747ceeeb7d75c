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
                are there already are sent too. Later runs remember the tables, and the scope where the file has one.

                Where an app has synced the file before, its tables and the scopes of their rows stay as it declared
                them; a run works on the scopes named and leaves rows of others alone. With --scope-column the rows of
                one table are in several scopes: each in the one that its column names, behind --scope-prefix.

                Exit code 3: some row or edit is not confirmed, or a table was left out. --watch ends with 0 on
                SIGINT and SIGTERM.

                EXAMPLES
                  export TIDEMARK_TOKEN=$(tidemark token --store sqlite:sync.sqlite --sub ada --scope 'workspace:*=rw')
                  tidemark sync app.sqlite --server http://127.0.0.1:8080 --scope workspace:1 \\
                    --table task --table project
                  tidemark sync app.sqlite --server http://127.0.0.1:8080 --scope workspace:1 --all
                  tidemark sync app.sqlite --server http://127.0.0.1:8080 --scope list:1 --scope list:2 --table item \\
                    --scope-column list_id --scope-prefix list:
                  tidemark sync app.sqlite --server http://127.0.0.1:8080 --watch --interval 5s
                """)

        @Argument(help: ArgumentHelp("The SQLite file.", valueName: "file"), completion: .file())
        var file: String

        @OptionGroup var connection: ServerConnection

        @Option(
            name: .customLong("scope"),
            help: ArgumentHelp("The scope that the rows belong to; may be repeated.", valueName: "name"))
        var scopes: [String] = []

        @Option(name: .customLong("table"), help: ArgumentHelp("A table to sync; may be repeated.", valueName: "name"))
        var tables: [String] = []

        @Flag(help: "Sync every table that can be synced, but no views and virtual tables; say of the others why not.")
        var all = false

        @Option(help: ArgumentHelp("The column of the new tables that names each row's scope.", valueName: "column"))
        var scopeColumn: String?

        @Option(help: ArgumentHelp("What stands before the column's value in a scope's name.", valueName: "text"))
        var scopePrefix: String?

        @Option(help: ArgumentHelp("Rows on the first page; it adapts from there.", valueName: "rows"))
        var page: Int?

        @Flag(help: "Keep syncing until interrupted.")
        var watch = false

        @Option(
            help: ArgumentHelp(
                "With --watch: how often to ask for news, from 1s; 30s where nothing is said.", valueName: "time"))
        var interval: String?

        @Flag(help: "Send inferred edits that wait for a confirmation, and deletes that the server's brake refused.")
        var confirm = false

        @Flag(help: "Discard the inferred edits that wait, and take the server's rows.")
        var takeServers = false

        @Flag(help: "Tell the progress on standard error, also where that is no terminal.")
        var progress = false

        @OptionGroup var output: ReportOptions

        func validate() throws {
            guard !confirm || !takeServers else {
                throw ValidationError("--confirm and --take-servers exclude each other.")
            }
            if let page, !(1...5000).contains(page) { throw ValidationError("--page is from 1 to 5000.") }
            guard !all || tables.isEmpty else { throw ValidationError("--all names every table: leave --table out.") }
            guard scopePrefix == nil || scopeColumn != nil else {
                throw ValidationError("--scope-prefix goes with --scope-column.")
            }
            guard scopeColumn == nil || all || !tables.isEmpty else {
                throw ValidationError("--scope-column is of the tables that --table or --all names.")
            }
            guard interval == nil || watch else { throw ValidationError("--interval goes with --watch.") }
            if let interval, Duration(text: interval) == nil {
                throw ValidationError("--interval takes a second or more, as 5s, 15m or 1h.")
            }
        }

        func run() async throws {
            let device = try DeviceFile(file)
            let scopes = try device.scopes(named: scopes)
            let rule = scopeColumn.map { SyncedTable.ScopeRule.column($0, prefix: scopePrefix ?? "") }
            let (named, leftOut) = all ? try everyTable(of: device, rule) : (tables, [])
            // An app's declarations stay as they are, even if its tables never synced.
            let isOurs = try device.isOurs()
            var declared = try device.declared(with: named, in: scopes, by: rule, mayRelease: isOurs)
            let transport = try connection.transport()
            if isOurs { await declared.place(as: transport) }
            let writes = watch ? FileWatch(device.path) : nil
            let engine = try declared.engine(device, transport, configuration: syncConfiguration(hearingOf: writes))
            await engine.restrict(to: scopes)
            let meter = ProgressLine.Teller(of: engine, isWanted: progress, isJSON: output.json)
            defer { meter?.end() }
            try await engine.install()
            if isOurs { try device.noteCommand() }
            if confirm {
                try await engine.confirmInferredEdits()
                try await engine.confirmBrakedDeletes()
            }
            if takeServers { try await engine.discardInferredEdits() }
            guard !watch else { return try await follow(engine, device, writes) }
            let report = try await engine.syncNow()
            meter?.end()
            try await tell(report, engine, device, leftOut)
        }

        private func everyTable(
            of device: DeviceFile, _ rule: SyncedTable.ScopeRule?
        ) throws -> (tables: [String], leftOut: [LeftOut]) {
            let (tables, leftOut) = try device.allTables(by: rule)
            if !output.json { leftOut.map(\.line).forEach(Console.note) }
            guard try !tables.isEmpty || device.declared() != nil else {
                throw Failure("\(device.path) has no table that can be synced", hint: leftOut.first?.hint)
            }
            return (tables, leftOut)
        }

        func syncConfiguration(hearingOf writes: FileWatch?) -> SyncConfiguration {
            var configuration = SyncConfiguration()
            if let page {
                configuration.firstPage = page
                configuration.pageRange =
                    min(page, configuration.pageRange.lowerBound)...max(page, configuration.pageRange.upperBound)
                configuration.firstSnapshotPage = page
                configuration.snapshotRange =
                    min(page, configuration.snapshotRange.lowerBound)...configuration.snapshotRange.upperBound
            }
            if let interval = interval.flatMap({ Duration(text: $0) }) { configuration.tick = interval }
            // The writes of other programs are what a watcher is there for; a look reads one number. File systems that
            // are not this machine's tell of no writes.
            if watch { configuration.pollInterval = .milliseconds(writes == nil ? 50 : 250) }
            return configuration
        }

        private func tell(
            _ report: SyncReport, _ engine: SyncEngine, _ device: DeviceFile, _ leftOut: [LeftOut]
        ) async throws {
            let status = try await engine.status()
            var summary = SyncSummary(
                report, status, try await engine.inferredEdits(), brakedDeletes: try await engine.brakedDeletes().count,
                leftOut: leftOut)
            summary.unsynced = try UnsyncedTables.names(device)
            summary.unsyncedScopes = try UnsyncedScopes.names(device)
            try output.tell(summary)
            try warn(status, device)
            if !summary.isConfirmed || !leftOut.isEmpty { throw ExitCode(TidemarkTool.undecided) }
        }

        /// Says what the schema's author should know, once and again when it is something else.
        private func warn(_ status: SyncStatus, _ device: DeviceFile) throws {
            guard !output.json, try device.noteWarnings(status.warnings) else { return }
            for warning in status.warnings { Console.line("warning: \(warning)") }
        }

        /// Lets the engine look for edits where others may have written, until the task is cancelled.
        private func pass(_ writes: FileWatch, to engine: SyncEngine) async throws {
            for await _ in writes.looks {
                engine.lookForEdits()
                try await Task.sleep(for: FileWatch.pause)
            }
        }

        /// Goes on until a signal comes; each change of the numbers, and each new rest, is a line.
        private func follow(_ engine: SyncEngine, _ device: DeviceFile, _ writes: FileWatch?) async throws {
            try warn(try await engine.status(), device)
            let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await engine.run() }
                if let writes { tasks.addTask { try await pass(writes, to: engine) } }
                tasks.addTask {
                    var last: StatusSummary?
                    for await status in engine.statusUpdates {
                        let summary = StatusSummary(status)
                        guard summary.isNews(after: last) else { continue }
                        Console.line(try output.json ? JSON.text(summary) : summary.line)
                        last = summary
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
