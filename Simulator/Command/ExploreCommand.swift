import Foundation
import SampleApps
import TidemarkTesting

/// `explore`: all worlds of a few steps of the smallest apps.
struct ExploreCommand {
    static let usage = """
        TidemarkSimulator explore [--audit] [--states N] [--depth D] [--threads N] [--app card|folder] [--begin FILE]
                                  [--KIND N]

          --audit         holds the records of every device against their machine, and counts its cells
          --states N      ends after about so many worlds that differ (100000)
          --depth D       goes breadth first, and no further than so many edges from the beginning
          --begin FILE    a script at the end of which every world begins; empty: before anything has happened
          --KIND N        how often a kind of thing may happen: edits, losses, crashes, upheavals, syncs, waits
        """

    private var exploration = Exploration(of: CardApp.app)
    private var app = CardApp.app
    private var isAudit = false
    private var beginning: Simulation.Script?

    init?(_ words: ArraySlice<String>) {
        exploration.stateLimit = 100_000
        var words = words
        while let option = words.popFirst() {
            if option == "--audit" {
                isAudit = true
                continue
            }
            guard let value = words.popFirst(), read(option, value) else { return nil }
        }
        guard let beginning = beginning ?? Self.beginning(of: app) else { return nil }
        exploration.play(app)
        exploration.begin(with: beginning)
        exploration.progress = { report in
            print(Self.line(report))
            fflush(nil)
        }
    }

    /// A card, or an empty folder, on both devices. What refers to nothing does without keys that are enforced: three
    /// times as fast.
    private static func beginning(of app: SimulatedApp) -> Simulation.Script? {
        let keys = app.tables.count > 1 ? "" : " keyless"
        return Simulation.Script(
            "world seed 1 devices 2 users 1 page 1 windowless\(keys)\n0 edit insert 0\nflow\nserver backup")
    }

    private static let nothing = "world seed 1 devices 2 users 1 page 1 windowless keyless"

    private mutating func read(_ option: String, _ value: String) -> Bool {
        if option == "--app" {
            guard let app = SampleApps[value] else { return false }
            self.app = app
            return true
        }
        if option == "--begin" {
            guard let text = try? String(contentsOfFile: value, encoding: .utf8) else { return false }
            beginning = Simulation.Script(text.allSatisfy(\.isWhitespace) ? Self.nothing : text)
            return beginning != nil
        }
        guard let number = Int(value), number >= 0 else { return false }
        switch option {
        case "--states": exploration.stateLimit = number
        case "--depth": exploration.depthLimit = number
        case "--threads": exploration.workerCount = number
        case "--edits": exploration.budget.edits = UInt8(clamping: number)
        case "--losses": exploration.budget.losses = UInt8(clamping: number)
        case "--crashes": exploration.budget.crashes = UInt8(clamping: number)
        case "--upheavals": exploration.budget.upheavals = UInt8(clamping: number)
        case "--syncs": exploration.budget.syncs = UInt8(clamping: number)
        case "--waits": exploration.budget.waits = UInt8(clamping: number)
        default: return false
        }
        return true
    }

    /// - Returns: whether the audit found nothing.
    func run() async throws -> Bool {
        guard isAudit else {
            print(Self.line(try await exploration.run()))
            return true
        }
        let (report, coverage) = try await exploration.audit()
        print(Self.line(report) + "; " + coverage.summary)
        for finding in coverage.report { print("  \(finding)") }
        return coverage.findings.isEmpty
    }

    private static func line(_ report: Exploration.Report) -> String {
        let seconds = report.duration / .seconds(1)
        let depth = report.depth > 0 ? "all of fewer than \(report.depth) edges: " : ""
        return """
            \(depth)\(report.states) worlds that differ, \(report.transitions) edges between them, \
            in \(report.scans) scans of at most \(report.longestScan) steps; \
            \(report.calms) times calm, at most for \(report.longestCalm); \
            \(Int(seconds)) s, \(Int(Double(report.states) / seconds)) worlds and \
            \(Int(Double(report.transitions) / seconds)) edges a second
            """
    }
}
