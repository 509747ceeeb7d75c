#if Server
    import Foundation
    import GRDB
    import TidemarkWire

    /// Two devices that watch: the server tells one at once what the other has sent.
    extension DemoStory {
        func nudge(_ report: inout DemoReport) async throws {
            say("")
            say("9. both watch now; A is edited by plain SQL, and B hears of it by a nudge")
            let watchers = try ["a.sqlite", "b.sqlite"].map(world.startWatching)
            do {
                let (a, b) = (try world.open("a.sqlite"), try world.open("b.sqlite"))
                // The first one waits for the two to have begun.
                _ = try await arrival(of: "watched", from: a, at: b)
                var times: [Double] = []
                for number in 1...5 { times.append(try await arrival(of: "nudged \(number)", from: a, at: b)) }
                let sorted = times.sorted()
                report.nudged = sorted[sorted.count / 2]
                say("     B has it \((report.nudged * 1000).rounded().formatted()) ms later (the median of five)")
                try a.close()
                try b.close()
            } catch {
                for watcher in watchers { watcher.signal(SIGKILL) }
                throw error
            }
            for watcher in watchers {
                watcher.signal(SIGTERM)
                let status = await watcher.wait()
                if status != 0 { report.differences.append("a watcher ended with exit code \(status)") }
            }
        }

        /// Seconds from the commit of an edit in one file until it stands in the other.
        private func arrival(of text: String, from here: DatabaseQueue, at there: DatabaseQueue) async throws -> Double
        {
            let table = world.data.parent
            let column = table.columns[table.columns.count - 1]
            let id = try await here.write { db in
                let id = try String.fetchOne(db, sql: "SELECT min(\(table.key)) FROM \(table.name)") ?? ""
                try db.execute(
                    sql: "UPDATE \(table.name) SET \(column) = ? WHERE \(table.key) = ?", arguments: [text, id])
                return id
            }
            let start = ContinuousClock.now
            while ContinuousClock.now - start < .seconds(30) {
                let shown = try await there.read { db in
                    try String.fetchOne(
                        db, sql: "SELECT \(column) FROM \(table.name) WHERE \(table.key) = ?", arguments: [id])
                }
                if shown == text { return (ContinuousClock.now - start) / .seconds(1) }
                try await Task.sleep(for: .milliseconds(1))
            }
            throw Failure("an edit did not come from one watching device to the other within 30 s")
        }
    }

    extension DemoWorld {
        /// `tidemark sync --watch` in a process of its own. No tick comes while the demo runs.
        func startWatching(_ name: String) throws -> ChildProcess {
            try ChildProcess(
                ChildProcess.executable,
                [
                    "sync", path(name), "--server", url, "--scope", Self.scope.name, "--watch", "--interval", "1h",
                    "--json",
                ],
                environment: ["TIDEMARK_TOKEN": token])
        }
    }
#endif
