import Foundation
import SampleApps
import Testing
import TidemarkTesting

/// An audit that finds nothing says only as much as it would have seen.
@Suite("The audit of records sees faults of the bookkeeping")
struct RecordFaultTests {
    /// Apps whose worlds come to all that the faults are done to.
    private static let counts: [(app: String, worlds: UInt64)] = [
        ("task", 8), ("ledger", 14), ("order", 6), ("notebook", 10), ("migrating", 8), ("catalog", 8),
    ]

    private static let orphaning = "of two edits that were orphaned one after the other the later one stands (I1)"

    private static func word(_ tally: RecordFaultTrial.Tally) -> String {
        tally.seen == 0 ? "never" : tally.seen == tally.planted ? "always" : "at times"
    }

    @Test("as Machines.md says of each kind")
    func faults() async throws {
        let trial = RecordFaultTrial(limit: 12)
        for (name, count) in Self.counts {
            var simulation = Simulation(of: try #require(SampleApps[name]))
            simulation.workerCount = 1
            let (failures, coverage) = try await simulation.audit(seeds: 1...count, trial: trial)
            // What is planted is taken out again: the worlds go on as if nothing had been done.
            #expect(failures.isEmpty && coverage.report == [])
        }
        // Scopes seldom go in so few worlds.
        let found = try #require(CorpusCase.all.first { $0.name == Self.orphaning })
        let script = try #require(Simulation.Script(found.script))
        let app = try #require(SampleApps[found.app])
        #expect(try await Simulation(of: app).audit(script, world: found.name, trial: trial).failure == nil)
        let results = trial.results
        let rows = RecordFault.all.map { fault in
            let tally = results[fault, default: .init()]
            #expect(tally.planted > 0, "nothing to do it to: \(fault.name)")
            return "| \(fault.name) | \(Self.word(tally)) |"
        }
        let page = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../Documentation/Machines.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let table = try #require(text.firstMatch(of: /\| fault \|.*\n\|[-|]+\n((?:\|.*\n)+)/))
        #expect(table.1.split(separator: "\n").map(String.init) == rows)
    }
}
