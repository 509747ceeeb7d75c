import Foundation
import SampleApps
import Testing
import TidemarkCore
import TidemarkTesting

/// Worlds in which each record of each device is held against its machine, before and after every transaction.
@Suite("Every record of every device keeps to its machine")
struct RecordAuditTests {
    /// Worlds of each app. An audited world takes some times as long as another one.
    private static let counts: [String: UInt64] = [
        "task": 25, "ledger": 25, "shelf": 25, "order": 25, "notebook": 20, "trigger": 20, "migrating": 30,
        "catalog": 25, "taskparts": 15, "shelfparts": 15, "album": 10,
    ]

    /// The worlds are played once for all tests.
    private actor Runs {
        private var runs: [String: Task<RecordCoverage, any Error>] = [:]

        func coverage(
            _ name: String, _ play: @escaping @Sendable () async throws -> RecordCoverage
        ) async throws
            -> RecordCoverage
        {
            let run = runs[name] ?? Task { try await play() }
            runs[name] = run
            return try await run.value
        }
    }

    private static let runs = Runs()

    private static func worlds(of name: String) async throws -> RecordCoverage {
        let app = try #require(SampleApps[name])
        let count = try #require(counts[name])
        return try await runs.coverage(name) {
            var simulation = Simulation(of: app)
            simulation.workerCount = 1
            let (failures, coverage) = try await simulation.audit(seeds: 1...count)
            if let failure = failures.first { throw failure }
            return coverage
        }
    }

    private static func world(_ found: CorpusCase) async throws -> RecordCoverage {
        let app = try #require(SampleApps[found.app])
        let script = try #require(Simulation.Script(found.script))
        return try await runs.coverage(found.name) {
            let (failure, coverage) = try await Simulation(of: app).audit(script, world: found.name)
            if let failure { throw failure }
            return coverage
        }
    }

    @Test("in worlds of every app", arguments: SampleApps.all.map(\.name))
    func worlds(name: String) async throws {
        let coverage = try await Self.worlds(of: name)
        #expect(coverage.transactions > 100)
        #expect(coverage.report == [])
    }

    @Test("in worlds that once broke a guarantee", arguments: CorpusCase.all)
    func corpus(_ found: CorpusCase) async throws {
        let report = try await Self.world(found).report
        #expect(report == [])
    }

    /// The page lists these cells before the tests of the client that come to them, each as one item of a list.
    @Test("Machines.md names each cell and coupling that these worlds do not come to, and no other one")
    func unvisited() async throws {
        var coverage = RecordCoverage()
        for name in SampleApps.all.map(\.name) { coverage.add(try await Self.worlds(of: name)) }
        for found in CorpusCase.all { coverage.add(try await Self.world(found)) }
        let page = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../Documentation/Machines.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let listed = Set(text.matches(of: /\n- `([^`]+)`/).map { String($0.1) })
        let unvisited = Set(coverage.unvisited)
        #expect(unvisited.subtracting(listed).sorted() == [], "not on the page")
        #expect(listed.subtracting(unvisited).sorted() == [], "visited, or no cell of the machine")
    }
}
