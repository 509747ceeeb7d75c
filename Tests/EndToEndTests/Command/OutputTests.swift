#if Server
    import Foundation
    import GRDB
    import Testing
    import Tidemark

    @testable import TidemarkCommand

    /// The command's output meets pipes that nobody reads and full disks; its hints and usage errors are whole.
    @Suite(.serialized) struct OutputTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        /// Runs a line of bash in which `$0` is the command.
        private func bash(_ line: String) async throws -> (status: Int32, output: String, errors: String) {
            let words = ["-c", line, ServeTests.command.path(percentEncoded: false)]
            return try await ChildProcess(URL(filePath: "/bin/bash"), words).result()
        }

        @Test("a reader that has gone ends the command quietly")
        func closedPipe() async throws {
            // The left side writes once the right one is gone for certain; who ignores SIGPIPE gets an error instead.
            let gone = "trap '' PIPE; while echo x 2>/dev/null; do :; done;"
            let told = try await bash("{ \(gone) \"$0\" manual; echo \"ended $?\" >&2; } | true")
            #expect(told.errors == "ended 141\n", "\(told)")
        }

        @Test("a full disk under the output is an error, and one under the errors is none more")
        func fullOutput() async throws {
            let full = try await bash("\"$0\" manual > /dev/full")
            #expect(full.status == 1 && full.errors.hasPrefix("error: the output cannot be written: "), "\(full)")
            #expect(try await bash("\"$0\" status /nowhere 2> /dev/full").status == 1)
        }

        @Test("a number that no clock and no table can have is told all the same")
        func numbers() {
            let start = SyncProgress(isBusy: true)
            let huge = SyncProgress(
                sent: .init(done: .max, total: .max), received: .init(done: 1, total: .max), isBusy: true)
            let line = ProgressLine(huge, since: start, after: 1e-9)
            #expect(line.text?.contains("sent \(Int.max), \(Int.max) a second") == true, "\(line)")
            #expect(ProgressLine(huge, since: start, after: 1e9).received.secondsLeft == nil)
            #expect(Double.greatestFiniteMagnitude.asTimeLeft == "\(Int.max) h")
            let day = SyncProgress(received: .init(done: 1, total: 2), isBusy: true)
            #expect(ProgressLine(day, since: start, after: 86_400).received.secondsLeft == 86_400)
        }

        @Test("a rate is that of the present stretch of work, not of the rest before it")
        func pace() {
            var pace = ProgressLine.Pace()
            func told(_ done: Int, _ isBusy: Bool, at seconds: Double) -> Double? {
                pace.line(SyncProgress(sent: .init(done: done, total: 1000), isBusy: isBusy), at: seconds).sent.rate
            }
            // The rate of a run does not count the rows of an earlier one.
            #expect(told(500, false, at: 0) == nil && told(500, true, at: 10) == nil)
            #expect(told(600, true, at: 20) == 10 && told(600, false, at: 20) == 10)
            // After a rest the counts begin anew.
            #expect(told(0, true, at: 1000) == nil && told(100, true, at: 1001) == 100)
            // The beginning of a stretch may be missed.
            #expect(told(10, true, at: 2000) == nil && told(30, true, at: 2001) == 20)
        }

        @Test("a watch tells a change of the numbers and each new rest, and no work that changes nothing")
        func watchLines() throws {
            func summary(_ activity: String, _ pending: Int = 0, error: String? = nil) -> StatusSummary {
                var summary = StatusSummary(SyncStatus())
                (summary.activity, summary.pending, summary.error) = (activity, pending, error)
                return summary
            }
            let told = [
                summary("syncing"), summary("idle"), summary("syncing"), summary("idle"), summary("idle", 1),
                summary("syncing", 1), summary("syncing"), summary("idle"), summary("waiting", error: "x"),
                summary("syncing", error: "x"), summary("waiting", error: "x"),
            ]
            var (last, lines): (StatusSummary?, [String]) = (nil, [])
            for summary in told where summary.isNews(after: last) {
                lines.append(summary.line)
                last = summary
            }
            #expect(
                lines == [
                    "syncing: 0 pending, 0 sent without a verdict", "idle: 0 pending, 0 sent without a verdict",
                    "idle: 1 pending, 0 sent without a verdict", "syncing: 0 pending, 0 sent without a verdict",
                    "idle: 0 pending, 0 sent without a verdict", "waiting: 0 pending, 0 sent without a verdict · x",
                ])
        }

        @Test("a hint stays whole where it promises nothing")
        func hints() async throws {
            try bench.sql("a", "CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT)")
            let server = try await bench.server()
            try await bench.sync("a", server, bench.token())
            #expect(await server.stop() == 0)
            try bench.sql("a", "UPDATE tidemark_meta SET value = '6' WHERE key = 'schema'")
            let told = try await bench.run(["status", bench.path("a")])
            #expect(told.errors.contains("hint: Sync it once; that brings it up to date.\n"), "\(told.errors)")
            // A list of refused edits says of such a file what its status says.
            let rejected = try await bench.run(["rejected", bench.path("a")])
            #expect(rejected.status == 1 && rejected.errors == told.errors, "\(rejected)")
        }

        @Test("a locked file, a wrong token and a server that has none to spare are told with what helps")
        func remedies() throws {
            let locked = Failure(
                "a.db cannot be opened", because: DatabaseError(resultCode: .SQLITE_BUSY), hint: nil)
            #expect(locked.hint?.hasPrefix("Another program holds the file: let it finish, or end it.") == true)
            #expect(locked.hint?.hasSuffix("Then run the command again.") == true, "\(locked)")
            let token = Failure(SyncError(.unauthenticated, "The token is not valid.", hint: "Fetch a fresh token."))
            #expect(token.hint?.contains("TIDEMARK_TOKEN") == true, "\(token)")
            let scope = Failure(SyncError(.scopeForbidden, "The token does not grant scope w:2.", hint: ""))
            #expect(scope.hint?.contains("tidemark token --scope") == true, "\(scope)")
            let busy = Failure(SyncError(.serverUnavailable, "The answer's status is 503.", hint: ""))
            #expect(busy.hint?.contains("busy or restarts") == true, "\(busy)")
        }

        @Test("options that would do nothing are refused before anything is opened")
        func usage() async throws {
            let nowhere = ["--store", "postgres://127.0.0.1:9/none"]
            let wrong: [([String], String)] = [
                (["attach", "--entity", "x"], "Name the table with --table, or take --all."),
                (["attach", "--read", "a"], "Name the table with --table, or take --all."),
                (["attach", "--table", "t", "--all", "--scope", "s"], "leave --table out"),
                (["attach", "--all", "--entity", "t", "--scope", "s"], "leave --entity out"),
                (["attach", "--table", "t", "--schema", "s", "--scope", "s"], "--schema goes with --all"),
                (["attach", "--table", "t", "--read", "a"], "Say where rows belong"),
                (["attach", "--table", "t", "--scope", "s", "--scope-prefix", "p"], "go with --scope-column"),
                (["attach", "--table", "t", "--scope", "s", "--all-columns", "--read", "a"], "leave --read and"),
                (["attach", "--print-sqlite", "--json"], "--print-sqlite prints SQL"),
                (["attach", "--table", "t", "--scope-column", "a", "--scope-column=b"], "--scope-column was given"),
                (["attach", "--table", "t", "--scope", "s", "--read", "a", "--read", "b"], "--read was given twice"),
            ]
            for (words, message) in wrong {
                let told = try await bench.run(words + nowhere)
                #expect(told.status == 64 && told.errors.contains(message), "\(words): \(told.errors)")
            }
            let column = try await bench.run(
                ["sync", bench.path("a"), "--all", "--scope-column", "a", "--scope-column", "b"])
            #expect(column.status == 64 && column.errors.contains("it takes one value"), "\(column.errors)")
            let devices = try await bench.run(["devices", "--store", "sqlite:a", "--store", "sqlite:b"])
            #expect(devices.status == 64 && devices.errors.contains("--store was given twice"), "\(devices.errors)")
            let limit = try await bench.run(["rejected", bench.path("a"), "--limit", "5"])
            #expect(limit.status == 64 && limit.errors.contains("--limit goes with --store"), "\(limit.errors)")
            let scope = try await bench.run(["attach", "--table", "t", "--scope", "no scope"] + nowhere)
            #expect(scope.status == 1 && scope.errors.contains("is not a scope\nhint: use letters"), "\(scope.errors)")
        }

        @Test("the environment names the store of a server's list, and a given secret is not made anew")
        func environment() async throws {
            let store = ["TIDEMARK_STORE": "sqlite:" + bench.path("s")]
            _ = try await bench.token()
            let server = try await bench.server()
            #expect(await server.stop() == 0)
            let listed = try await ChildProcess(ServeTests.command, ["rejected"], environment: store).result()
            #expect(listed.status == 0, "\(listed)")
            #expect(try await bench.run(["rejected"]).status == 64)
            let secret = ["TIDEMARK_SECRET": String(repeating: "0123456789abcdef", count: 3)]
            let words = ["token", "--sub", "ada", "--scope", "w=r", "--make-secret", "--store", "sqlite:s"]
            let made = try await ChildProcess(ServeTests.command, words, environment: secret).result()
            #expect(made.status == 1 && made.errors.contains("leave --make-secret out"), "\(made)")
        }
    }
#endif
