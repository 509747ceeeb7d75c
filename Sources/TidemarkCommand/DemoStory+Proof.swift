#if Server
    import Foundation
    import GRDB
    import Tidemark

    /// Damage that no sync can see, since no trigger has seen it: the digest does.
    extension DemoStory {
        /// Changes one row of B past its triggers; `tidemark verify` finds it, and fetches it again, alone.
        func prove(_ report: inout DemoReport) async throws {
            say("")
            say("8. one value of B is damaged behind everybody's back, as a bad disk would do it")
            let id = try damageOne("b.sqlite")
            say("     B: " + (try await world.sync("b.sqlite").lines.first ?? ""))
            say("     nobody noticed; so B compares its tables with the server's digest")
            let found = try await world.verify("b.sqlite", repair: true)
            for line in found.lines { say("     B: " + line) }
            report.repaired = found.repaired
            let again = try await world.verify("b.sqlite", repair: false)
            say("     B: " + (again.lines.first ?? ""))
            let ids = found.tables.flatMap(\.ids)
            if ids != [id] || found.repaired != 1 || !again.isClean {
                report.differences.append("verify found \(ids) where \(id) had been damaged")
            }
        }

        /// Capture looks away while the flag is up, so that to this library nothing has happened.
        private func damageOne(_ device: String) throws -> String {
            let table = world.data.parent
            let database = try world.open(device)
            defer { try? database.close() }
            return try database.write { db in
                let id = try String.fetchOne(db, sql: "SELECT max(\(table.key)) FROM \(table.name)") ?? ""
                try CaptureSuppression.raise(db)
                try db.execute(
                    sql: "UPDATE \(table.name) SET \(table.columns[2]) = 'damaged' WHERE \(table.key) = ?",
                    arguments: [id])
                try CaptureSuppression.lower(db)
                return id
            }
        }
    }

    extension DemoWorld {
        /// `tidemark verify` in a process of its own.
        func verify(_ name: String, repair: Bool) async throws -> VerifySummary {
            let arguments = ["verify", path(name), "--server", url, "--json"] + (repair ? ["--repair"] : [])
            let (_, output, errors) = try await ChildProcess(
                ChildProcess.executable, arguments, environment: ["TIDEMARK_TOKEN": token]
            ).result()
            guard let summary = try? JSONDecoder().decode(VerifySummary.self, from: Data(output.utf8)) else {
                throw Failure("\(name) could not be compared", hint: errors)
            }
            return summary
        }
    }
#endif
