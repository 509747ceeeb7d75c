import Foundation
import SampleApps
import TidemarkTesting

/// Plays simulated worlds of the sample apps.
@main
enum Main {
    private static let usage = """
        Plays worlds of the sample apps in which everything goes wrong that can, and holds them against the guarantees.

        usage: TidemarkSimulator [--app NAME] [--first SEED] [--count WORLDS] [--steps STEPS]
                                 [--threads N] [--survey] [--sqlite] [--calm SECONDS] [--deaths]
                                 [--audit] [--remedies] [--second] [--early]
               TidemarkSimulator --app NAME --script FILE [--verbose]

          --app NAME      only this app: \(SampleApps.all.map(\.name).joined(separator: ", "))
          --first SEED    the first world (1)
          --count WORLDS  worlds of each app (1000)
          --steps STEPS   of the longest worlds, before their troubles end (40)
          --threads N     that play worlds at once (one for each core)
          --survey        goes on after a failure, and says of each failing world in one line what is wrong
          --audit         surveys, and holds each record of each device against its machine (Documentation/Machines.md)
          --remedies      with an operator who asks devices to fill anew, compare themselves, slow down or stop
          --second        with a second process on the file of some devices
          --early         with devices that send the next request while they apply an answer, as real ones do
          --sqlite        with the server's store on its SQLite file in all of them, which takes longer
          --calm SECONDS  that devices have to be in sync once the troubles have ended (90)
          --deaths        tells where apps and servers died, and how often
          --script FILE   plays one script, for example one that a failure has left
          --verbose       prints what happens in it, or in the first world
        """

    static func main() async throws {
        if CommandLine.arguments.dropFirst().first == "explore" { return try await explore() }
        var options = Options()
        guard options.read(CommandLine.arguments.dropFirst()) else {
            print(usage + "\n\n" + ExploreCommand.usage)
            exit(64)
        }
        do { try await run(options) } catch {
            print(error)
            exit(1)
        }
    }

    private static func explore() async throws {
        guard let command = ExploreCommand(CommandLine.arguments.dropFirst(2)) else {
            print(ExploreCommand.usage)
            exit(64)
        }
        do { if try await !command.run() { exit(1) } } catch {
            print(error)
            exit(1)
        }
    }

    private static func run(_ options: Options) async throws {
        if let script = options.script { return try await play(script, options) }
        if options.isVerbose { return try await trace(options) }
        var isSound = true
        var total = RecordCoverage()
        for (name, app) in options.apps {
            let simulation = simulation(of: app, options)
            if options.isAudit {
                let coverage = try await audit(simulation, of: name, options, &isSound)
                total.add(coverage)
            } else if options.isSurvey {
                let failures = try await simulation.survey(seeds: options.seeds)
                tell(failures, of: name, options, &isSound)
            } else {
                try await tell(simulation.run(seeds: options.seeds), of: name, options)
            }
        }
        if options.isAudit {
            print("all: \(total.summary)")
            for line in total.unvisited { print("  never: \(line)") }
        }
        if !isSound { exit(1) }
    }

    private static func simulation(of app: SimulatedApp, _ options: Options) -> Simulation {
        var simulation = Simulation(of: app)
        simulation.stepLimit = options.steps
        simulation.workerCount = options.threads ?? simulation.workerCount
        simulation.usesSQLite = options.usesSQLite
        simulation.hasRemedies = options.hasRemedies
        simulation.hasSecondProcesses = options.hasSecondProcesses
        simulation.sendsEarly = options.sendsEarly
        simulation.calmLimit = options.calm ?? simulation.calmLimit
        return simulation
    }

    private static func play(_ script: Simulation.Script, _ options: Options) async throws {
        for (_, app) in options.apps {
            let simulation = Simulation(of: app)
            if options.isAudit {
                let (failure, coverage) = try await simulation.audit(script, world: "script")
                if let failure { print(failure) }
                print(coverage.summary)
                for finding in coverage.report { print("  \(finding)") }
                continue
            }
            if options.isVerbose { for line in try await simulation.trace(of: script) { print(line) } }
            print(try await simulation.play(script))
        }
    }

    private static func trace(_ options: Options) async throws {
        for (_, app) in options.apps {
            let simulation = simulation(of: app, options)
            for line in try await simulation.trace(of: simulation.script(seed: options.first)) { print(line) }
        }
    }

    private static func audit(
        _ simulation: Simulation, of name: String, _ options: Options, _ isSound: inout Bool
    ) async throws -> RecordCoverage {
        let (failures, coverage) = try await simulation.audit(seeds: options.seeds)
        tell(failures, of: name, options, &isSound, more: "; \(coverage.summary)")
        for finding in coverage.report { print("  \(finding)") }
        isSound = isSound && coverage.findings.isEmpty
        return coverage
    }

    private static func tell(
        _ failures: [Simulation.Failure], of name: String, _ options: Options, _ isSound: inout Bool, more: String = ""
    ) {
        for failure in failures { print("\(name) \(failure.seed ?? 0): \(failure.reason)") }
        print("\(name): \(failures.count) of \(options.count) worlds fail\(more)")
        isSound = isSound && failures.isEmpty
    }

    private static func tell(_ report: Simulation.Report, of name: String, _ options: Options) {
        let seconds = report.duration / .seconds(1)
        let speed = Int(Double(report.worlds) / seconds)
        print(
            """
            \(name): \(report.worlds) worlds in \(Int(seconds)) s, \(speed) a second; \
            \(report.events) events, longest calm \(report.longestCalm), trace \(report.trace)
            """)
        guard options.tellsDeaths else { return }
        for (point, count) in report.deaths.sorted(by: { $0.key < $1.key }) { print("  \(count) \(point)") }
        for (what, count) in report.files.sorted(by: { $0.key < $1.key }) { print("  \(count) files: \(what)") }
    }
}

private struct Options {
    var apps = SampleApps.all
    var first: UInt64 = 1
    var count: UInt64 = 1000
    var seeds: ClosedRange<UInt64> { first...(first + count - 1) }
    var steps = 40
    var threads: Int?
    var isSurvey = false
    var isAudit = false
    var usesSQLite = false
    var hasRemedies = false
    var hasSecondProcesses = false
    var sendsEarly = false
    var calm: Duration?
    var isVerbose = false
    var tellsDeaths = false
    var script: Simulation.Script?

    mutating func read(_ words: ArraySlice<String>) -> Bool {
        var words = words
        while let word = words.popFirst() {
            switch (word, words.first) {
            case ("--survey", _):
                isSurvey = true
                continue
            case ("--audit", _):
                isAudit = true
                continue
            case ("--sqlite", _):
                usesSQLite = true
                continue
            case ("--second", _):
                hasSecondProcesses = true
                continue
            case ("--early", _):
                sendsEarly = true
                continue
            case ("--remedies", _):
                hasRemedies = true
                continue
            case ("--deaths", _):
                tellsDeaths = true
                continue
            case ("--verbose", _):
                isVerbose = true
                continue
            case ("--app", let name?): apps = (SampleApps.all + SampleApps.small).filter { $0.name == name }
            case ("--first", let number?): first = UInt64(number) ?? 0
            case ("--steps", let number?): steps = Int(number) ?? 0
            case ("--threads", let number?): threads = Int(number) ?? 0
            case ("--calm", let number?): calm = .seconds(Int(number) ?? 0)
            case ("--count", let number?): count = UInt64(number) ?? 0
            case ("--script", let path?):
                script = (try? String(contentsOfFile: path, encoding: .utf8)).flatMap(Simulation.Script.init)
                if script == nil { return false }
            default: return false
            }
            words.removeFirst()
        }
        return !apps.isEmpty && first > 0 && count > 0 && steps > 0 && threads != 0
    }
}
