#if Server
    import ArgumentParser
    import Tidemark
    import TidemarkAsyncHTTPClient
    import TidemarkServer

    struct VerifyCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "verify",
            abstract: "Prove that a synced SQLite file holds what the server holds.",
            discussion: """
                Syncs, sums up the rows of every synced table and compares the sums with the server's. Where they
                differ, the records that differ are named; --repair fetches just those again. Edits that wait are left
                alone, and a row that the server does not know is sent, never deleted: --discard-local does that.
                Exit code 3: something differs, or some row or edit is not confirmed.

                EXAMPLES
                  tidemark verify app.sqlite --server http://127.0.0.1:8080
                  tidemark verify app.sqlite --server http://127.0.0.1:8080 --scope workspace:1 --repair
                """)

        @Argument(help: ArgumentHelp("The SQLite file.", valueName: "file"), completion: .file())
        var file: String

        @OptionGroup var connection: ServerConnection

        @Option(
            name: .customLong("scope"),
            help: ArgumentHelp(
                "A scope to compare; may be repeated. All of the file's, if not given.", valueName: "name"))
        var scopes: [String] = []

        @Flag(help: "Fetch what differs and put it right.")
        var repair = false

        @Flag(help: "With --repair: delete rows that the server does not know, and keep nothing of what differs.")
        var discardLocal = false

        @OptionGroup var output: ReportOptions

        func validate() throws {
            guard repair || !discardLocal else { throw ValidationError("--discard-local goes with --repair.") }
        }

        func run() async throws {
            let device = try DeviceFile(file)
            let known = scopes.isEmpty ? try device.scopes() : []
            let scopes = known.isEmpty ? try device.scopes(named: scopes) : known
            let engine = try device.declared(in: scopes).engine(device, connection.transport())
            await engine.restrict(to: scopes)
            let report = try await engine.verify(repairing: repair, discardingLocal: discardLocal)
            let summary = VerifySummary(report, scopes, try await engine.status())
            try output.tell(summary)
            if !output.json, !repair, !summary.isClean { Console.line(VerifySummary.remedy) }
            if !summary.isClean || !summary.isConfirmed { throw ExitCode(TidemarkTool.undecided) }
        }
    }

    /// The findings of a comparison, for people and for programs.
    struct VerifySummary: Codable, Hashable, Report {
        struct Part: Codable, Hashable {
            var scope: String
            var version: Int64
        }

        struct Table: Codable, Hashable {
            var scope, table: String
            var records, differing, repaired: Int
            var ids: [String]
            /// Rows that the server did not know, and that were sent.
            var unsent: [String]
            /// Why records differ still, by their ids.
            var unrepaired: [String: String]
            var isCutShort: Bool
            /// The parts that were not compared: a column, or the whole table, and why.
            var gaps: [String]
        }

        var scopes: [Part]
        /// Whether the rows that were compared are alike.
        var isClean: Bool
        /// Whether nothing waits, for the server or for anybody's word.
        var isConfirmed: Bool
        var records, differing, repaired, roundTrips, bytesSent, bytesReceived: Int
        var seconds: Double
        var tables: [Table]
        /// Where the rows of each table stand after it.
        var rows: [TableRows]

        init(_ report: VerifyReport, _ scopes: [Scope], _ status: SyncStatus) {
            self.scopes = scopes.map { Part(scope: $0.name, version: report.scopes[$0]?.version ?? 0) }
            (isClean, isConfirmed) = (report.isClean, status.isConfirmed)
            (records, differing, repaired) = (report.records, report.differing, report.repaired)
            (roundTrips, bytesSent, bytesReceived) = (report.roundTrips, report.bytesSent, report.bytesReceived)
            seconds = (report.duration / .milliseconds(1)).rounded() / 1000
            rows = TableRows.all(status)
            tables = report.scopes.sorted { $0.key < $1.key }.flatMap { scope, part in
                part.tables.sorted { $0.key < $1.key }.map { name, table in
                    Table(
                        scope: scope.parent.name, table: name, records: table.records, differing: table.differing,
                        repaired: table.repaired, ids: table.differingIDs, unsent: table.unsentIDs,
                        unrepaired: table.unrepaired, isCutShort: table.isCutShort,
                        gaps: table.gaps.map { gap in (gap.column.map { "\($0): " } ?? "") + gap.reason.rawValue })
                }
            }
        }

        static let remedy =
            "hint: nothing was changed; --repair fetches what differs and puts it right, and sends rows that the "
            + "server does not know"

        /// Ids that are shown for one table.
        private static let shownIDs = 20

        var lines: [String] {
            var lines = [
                scopes.map { "\($0.scope) at version \($0.version)" }.joined(separator: ", ")
                    + ": \(records.counted("record")) compared, \(differing.counted("differs", "differ"))"
                    + (repaired > 0 ? ", \(repaired) repaired" : "")
                    + " · \(bytesReceived.asBytes) down · \(roundTrips.counted("round trip")) · \(seconds.asSeconds)"
            ]
            for table in tables where table.differing > 0 || table.isCutShort || !table.gaps.isEmpty {
                if table.differing > 0 {
                    let more = table.differing > Self.shownIDs ? " …" : ""
                    lines.append(
                        "\(table.table): \(table.differing.counted("differs", "differ")), \(table.repaired) repaired: "
                            + table.ids.prefix(Self.shownIDs).joined(separator: " ") + more)
                }
                if !table.unsent.isEmpty {
                    lines.append(
                        "\(table.table): sent, since the server did not know them: "
                            + table.unsent.prefix(Self.shownIDs).joined(separator: " "))
                }
                for (id, reason) in table.unrepaired.sorted(by: { $0.key < $1.key }).prefix(Self.shownIDs) {
                    lines.append("\(table.table) \(id): \(reason)")
                }
                if table.isCutShort { lines.append("\(table.table): more differ; verify again") }
                lines += table.gaps.map { "\(table.table): not compared: \($0)" }
            }
            lines += rows.compactMap(\.troubles)
            if !isConfirmed { lines.append("some row or edit is not confirmed; `tidemark status` says which and why") }
            return lines
        }
    }
#endif
