#if Server
    import Foundation
    import GRDB
    import Tidemark
    import TidemarkServer

    /// The findings of the demo, for programs.
    struct DemoReport: Codable, Hashable {
        var folder: String
        var rows = 0
        var up, down: SyncSummary
        /// Times that device B was killed while it had something under way.
        var kills = 0
        var edits: [String: String] = [:]
        /// Rows that the server had lost, and got back from the devices.
        var replayed = 0
        /// Rows that a digest found damaged, and that are whole again.
        var repaired = 0
        /// Seconds until an edit of one watching device stood on the other.
        var nudged = 0.0
        /// Bytes that went up for a photo of 8 MiB over a wire that was cut.
        var photoBytes: Int64 = 0
        var differences: [String] = []
        var seconds = 0.0

        var isSame: Bool { differences.isEmpty }
    }

    /// The demo, chapter by chapter.
    struct DemoStory {
        let world: DemoWorld
        let say: @Sendable (String) -> Void

        private var parent: DemoData.Table { world.data.parent }
        /// The columns that are edited: one that is empty everywhere, and one that is not.
        private var note: String { parent.columns[parent.columns.count - 1] }
        private var other: String { parent.columns[2] }

        /// The records whose fates are followed.
        private struct Cast {
            var apart, together, deletedByA, deletedByB: String
        }

        func tell() async throws -> DemoReport {
            let clock = ContinuousClock()
            let start = clock.now
            let (up, down) = try await begin()
            // The copy is of the server before anything is edited; it comes back in chapter 7.
            try world.server.copyStore()
            let cast = try chooseCast()
            try await editApart(cast)
            let kills = try await meet(cast)
            var report = DemoReport(folder: world.folder.path(percentEncoded: false), up: up, down: down, kills: kills)
            report.rows = try world.rows(of: "a.sqlite").count
            try await explain(cast, &report)
            try await loseHistory(&report)
            try await prove(&report)
            try await nudge(&report)
            try await sendPhoto(&report)
            try await compare(&report)
            report.seconds = ((clock.now - start) / .milliseconds(1)).rounded() / 1000
            say("")
            say("  done in \(report.seconds.asSeconds)")
            return report
        }

        // MARK: 1 to 3

        private func begin() async throws -> (SyncSummary, SyncSummary) {
            say("1. a server of its own process listens on \(world.url)")
            say("")
            say("2. device A is an SQLite file; plain SQL fills it with \(world.data.origin)")
            let a = try world.makeDevice("a.sqlite")
            try await a.write { db in try world.data.fill(db) }
            try a.close()
            for table in world.data.tables { say("     \(table.name): \(table.rows.count) rows") }
            say("")
            say("3. A goes up, and a fresh device B comes down, over HTTP")
            let up = try await world.sync("a.sqlite")
            say("     A: " + (up.lines.first ?? ""))
            try world.makeDevice("b.sqlite").close()
            let down = try await world.sync("b.sqlite")
            say("     B: " + (down.lines.first ?? ""))
            return (up, down)
        }

        // MARK: 4

        private func chooseCast() throws -> Cast {
            let names = parent.rows.compactMap(\.first).compactMap { $0 }.sorted()
            guard names.count >= 8 else { throw Failure("there are too few records to tell a story with") }
            func pick(_ part: Int) -> String { names[names.count * part / 5] }
            return Cast(apart: pick(1), together: pick(2), deletedByA: pick(3), deletedByB: pick(4))
        }

        /// Both devices are offline: nothing but SQL on two files.
        private func editApart(_ cast: Cast) async throws {
            say("")
            say("4. both are offline now, and both are edited")
            try await edit(
                "a.sqlite",
                [
                    (set(note), ["seen by A", cast.apart]), (set(other), ["A says so", cast.together]),
                    (delete, [cast.deletedByA]), (set(note), ["A still needs this", cast.deletedByB]),
                ])
            try await edit(
                "b.sqlite",
                [
                    (set(other), ["moved by B", cast.apart]), (set(other), ["B says so", cast.together]),
                    (set(note), ["B still needs this", cast.deletedByA]), (delete, [cast.deletedByB]),
                ])
            say("     different fields of \(cast.apart): A sets \(note), B sets \(other)")
            say("     the same field of \(cast.together): both set \(other)")
            say("     delete against edit: A deletes \(cast.deletedByA), B \(cast.deletedByB); the other edits it")
            try await editMany("a.sqlite", "checked by A", third: 0, except: cast)
            try await editMany("b.sqlite", "checked by B", third: 1, except: cast)
        }

        private func set(_ column: String) -> String {
            "UPDATE \(parent.name) SET \(column) = ? WHERE \(parent.key) = ?"
        }

        private var delete: String { "DELETE FROM \(parent.name) WHERE \(parent.key) = ?" }

        private func edit(_ device: String, _ edits: [(sql: String, arguments: [String])]) async throws {
            let database = try world.open(device)
            try await database.write { db in
                for edit in edits { try db.execute(sql: edit.sql, arguments: StatementArguments(edit.arguments)) }
            }
            try database.close()
        }

        /// A third of all records each, so that a sync takes long enough to be met in the middle.
        private func editMany(_ device: String, _ text: String, third: Int, except cast: Cast) async throws {
            let names = [cast.apart, cast.together, cast.deletedByA, cast.deletedByB]
            let sql = """
                UPDATE \(parent.name) SET \(note) = ? WHERE rowid % 3 = ? AND \(parent.key) NOT IN (?, ?, ?, ?)
                """
            let database = try world.open(device)
            let count = try await database.write { db in
                try db.execute(sql: sql, arguments: [text, third] + StatementArguments(names))
                return db.changesCount
            }
            try database.close()
            say("     \(device.prefix(1).uppercased()): \(count) more records, by one UPDATE")
        }

        /// A syncs; B is killed in the middle of its sync, at three moments, and then gets through.
        private func meet(_ cast: Cast) async throws -> Int {
            say("")
            say("5. back online")
            say("     A: " + (try await world.sync("a.sqlite").lines.first ?? ""))
            var kills = 0
            for (attempt, delay) in [Duration.zero, .milliseconds(15), .milliseconds(60)].enumerated() {
                if let state = try await killInMidSync(after: delay) {
                    kills += 1
                    say("     B: kill -9 in mid-sync: \(state)")
                } else {
                    say("     B: was through before kill -9 came")
                }
                try await editMany("b.sqlite", "edit \(attempt + 2) by B", third: 1 + attempt % 2, except: cast)
            }
            guard kills > 0 else { throw Failure("B was never met in mid-sync", hint: "try with more --rows") }
            say("     B: " + (try await world.sync("b.sqlite").lines.first ?? ""))
            say("     A: " + (try await world.sync("a.sqlite").lines.first ?? ""))
            say("     B: " + (try await world.sync("b.sqlite").lines.first ?? ""))
            return kills
        }

        /// Starts B's sync, watches its file from outside, and kills it `delay` after edits were sealed for sending.
        /// Answers how the file was left, or `nil` where the sync was through before.
        private func killInMidSync(after delay: Duration) async throws -> String? {
            let watcher = try world.open("b.sqlite")
            defer { try? watcher.close() }
            let before = try await watcher.read(OutboxHistory.counts).answered
            let process = try world.startSync("b.sqlite", page: 50)
            let deadline = ContinuousClock.now + .seconds(30)
            while process.isRunning, ContinuousClock.now < deadline {
                if try await watcher.read(OutboxHistory.counts).open > 0 { break }
                try await Task.sleep(for: .milliseconds(1))
            }
            try await Task.sleep(for: delay)
            process.signal(SIGKILL)
            guard await process.wait() == -SIGKILL else { return nil }
            let after = try await watcher.read(OutboxHistory.counts)
            return "\(after.open) edits sealed without a verdict, \(after.answered - before) with one"
        }
    }

    // MARK: - What came of it

    extension DemoStory {
        private func explain(_ cast: Cast, _ report: inout DemoReport) async throws {
            say("")
            say("6. which edits won, and why")
            let rows = try world.rows(of: "a.sqlite")
            func value(_ name: String, _ column: String) -> String {
                rows["\(parent.name)/\(name)"]?[column]?.description ?? "deleted"
            }
            let apart = "\(note) \(value(cast.apart, note)), \(other) \(value(cast.apart, other))"
            tell("\(cast.apart): \(apart): different fields, both edits stand", "fields", apart, &report)
            let together = value(cast.together, other)
            tell("\(cast.together): \(together): the same field, the later write won", "same", together, &report)
            for (name, key) in [(cast.deletedByA, "deletedByA"), (cast.deletedByB, "deletedByB")] {
                let fate = value(name, note)
                tell("\(name): \(fate): a delete wins over an edit that did not know of it", key, fate, &report)
            }
            for device in ["a.sqlite", "b.sqlite"] { try await tellOfKept(device, cast) }
            check(report.edits["fields"] == "\(note) 'seen by A', \(other) 'moved by B'", "the merged record", &report)
            check(report.edits["same"] == "'B says so'", "the field that both set", &report)
            check(report.edits["deletedByA"] == "deleted", "the record that A deleted", &report)
            check(report.edits["deletedByB"] == "deleted", "the record that B deleted", &report)
        }

        /// Prints the edits that a device keeps because they lost or overwrote: those of the cast in full, the others
        /// as a number.
        private func tellOfKept(_ device: String, _ cast: Cast) async throws {
            let status = try await world.status(device)
            let names = [cast.apart, cast.together, cast.deletedByA, cast.deletedByB]
            let lines = status.lines.filter { $0.hasPrefix("refused") || $0.hasPrefix("conflict") }
            let told = lines.filter { line in names.contains { line.contains(" \($0):") || line.contains(" \($0).") } }
            let name = device.prefix(1).uppercased()
            for line in told { say("     kept on \(name): \(line)") }
            if lines.count > told.count { say("     kept on \(name): and \(lines.count - told.count) more conflicts") }
        }

        private func tell(_ line: String, _ key: String, _ value: String, _ report: inout DemoReport) {
            say("     " + line)
            report.edits[key] = value
        }

        private func check(_ isSo: Bool, _ what: String, _ report: inout DemoReport) {
            if !isSo { report.differences.append("not as expected: \(what)") }
        }

        private func compare(_ report: inout DemoReport) async throws {
            say("")
            say("11. who holds what now")
            let server = try await world.rowsOfServer()
            for device in ["a.sqlite", "b.sqlite"] {
                let rows = try world.rows(of: device)
                let keys = Set(rows.keys).union(server.keys).filter { rows[$0] != server[$0] }.sorted()
                let name = device.prefix(1).uppercased()
                report.differences += keys.map { "\(name) and the server differ in \($0)" }
                let verdict = keys.isEmpty ? "the same as" : "\(keys.count) other than"
                say("     \(name): \(rows.count) rows, \(verdict) the server")
                for key in keys.prefix(5) { say("       \(key)") }
                let status = try await world.status(device)
                check(status.pending + status.sent + status.blocked == 0, "\(name) still has edits to send", &report)
                check(status.quarantined.isEmpty, "\(name) has quarantined rows", &report)
            }
            say("     server: \(server.count) rows")
        }

        /// Where everything is, and how to go on by hand.
        func farewell() {
            let me = ChildProcess.executable.path(percentEncoded: false)
            let store = "sqlite:" + world.path("server.sqlite")
            say("")
            say("The files are in \(world.folder.path(percentEncoded: false)). To go on by hand:")
            say("  \(me) serve --listen 127.0.0.1:8080 --store \(store) &")
            say("  export TIDEMARK_TOKEN=$(\(me) token --store \(store) --sub ada --scope 'machine:*=rw')")
            say("  \(me) sync \(world.path("b.sqlite")) --server http://127.0.0.1:8080")
        }
    }
#endif
