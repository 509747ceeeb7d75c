import Foundation
import TidemarkWire

/// Plays an app on several devices against the real server engine, in worlds where everything goes wrong that can:
/// messages are lost, repeated, cut and late, apps are killed, files and the server's store are put back to what they
/// were, clocks are off. After each step the guarantees of sync are checked, and the app's own invariants.
///
/// Time is virtual and chance comes from a seed: dozens of worlds are played in a second, and a world that fails is
/// played again by its seed, or by its ``Script``.
///
/// ```swift
/// let app = SimulatedApp(tables: [.table("todo")], scopes: ["user:1"], acts: acts) { db in try migrate(db) }
/// try await Simulation(of: app).run(seeds: 1...500)
/// ```
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
public struct Simulation: Sendable {
    /// The app that is played.
    public let app: SimulatedApp
    /// Steps of the longest worlds before the faults end; most have a quarter of them.
    public var stepLimit = 40
    /// How long devices may take to be in sync once the faults have ended (I12): three waits of a device in the
    /// foreground, since what one hears at its second may free an edit that others hear of at their next.
    public var calmLimit: Duration = .seconds(90)
    /// Whether the server of every world that a seed makes has its store on SQLite, as a real one. Otherwise one in
    /// 128 has, and the others one in memory, which is faster; what happens is the same.
    public var usesSQLite = false
    /// Whether the server's operator asks something of devices in the worlds that a seed makes: that they fill their
    /// scopes anew, compare themselves, slow down or stop. All is cleared when the troubles end.
    public var hasRemedies = false
    /// Whether a second process opens the app's file on some devices in the worlds that a seed makes, as an extension
    /// of the app does: it edits, syncs, takes over and is killed.
    public var hasSecondProcesses = false
    /// Whether devices send the next request while they apply an answer, as real ones do. A script says it, since it
    /// counts the messages.
    public var sendsEarly = false
    /// One world in so many has its server's store on SQLite in any case.
    static let sqliteShare: UInt64 = 128
    /// Threads that play worlds at once.
    public var workerCount = ProcessInfo.processInfo.activeProcessorCount

    /// Makes a simulation; nothing is played yet.
    ///
    /// - Parameter app: has at least one act, one table and one scope, and acts whose names have no blanks.
    public init(of app: SimulatedApp) {
        precondition(!app.acts.isEmpty && !app.tables.isEmpty && !app.scopes.isEmpty, "nothing to play")
        precondition(!app.acts.contains { $0.name.isEmpty || $0.name.contains(" ") }, "an act's name is one word")
        self.app = app
    }

    /// What was played.
    public struct Report: Hashable, Sendable {
        /// Worlds.
        public var worlds = 0
        /// Steps, messages, crashes and other things that happened in them.
        public var events = 0
        /// Where apps and servers were killed in the midst of what they did, and how often: just before, within or
        /// after a use of the file, the wire or the store, by the name of who asked for it.
        public var deaths: [String: Int] = [:]
        /// How often devices have carried out what the operator asked, by its kind.
        package var remedies: [String: Int] = [:]
        /// How often another process came to sync a file than before.
        package var handovers = 0
        /// Requests for changes that went while an answer was not applied yet, with those behind an unusable answer.
        package var early = 0
        /// What happened to bytes of attachments, and how often.
        package var files: [String: Int] = [:]
        /// The longest time, of the world, that devices took to be in sync once the faults had ended.
        public var longestCalm: Duration = .zero
        /// How long all of it took.
        public var duration: Duration = .zero
        /// A number that follows from everything that happened: the same for the same seeds, in any process.
        public var trace: UInt64 = 0

        /// Nothing.
        public init() {}
    }

    /// A world in which something did not hold.
    public struct Failure: Error, Sendable, CustomStringConvertible {
        /// The seed that made the world; `nil` where a script was played.
        public var seed: UInt64?
        /// What did not hold, in a word: `invariant` for one of the app's, `act` for an act that the file refused,
        /// `script` for a script that names none of the app's acts; else one of Tidemark's own guarantees (`I4`;
        /// Documentation/Architecture.md and Reliability.md) or checks, which is a bug of ours.
        public var guarantee: String
        /// What did not hold, and where.
        public var reason: String
        /// What happened in the world, made as short as possible.
        public var script: Script

        /// Makes a failure, for tests of what shows it.
        public init(seed: UInt64? = nil, guarantee: String, reason: String, script: Script) {
            self.seed = seed
            self.guarantee = guarantee
            self.reason = reason
            self.script = script
        }

        /// What did not hold, and how to see it again.
        public var description: String {
            """
            \(reason)
            \(seed.map { "It is seed \($0), shortened to" } ?? "It is") \(script.count) steps. \
            Simulation.play(_:) plays them again, and trace(of:) tells what happens:
            \(script)
            """
        }
    }

    /// Plays one world for each seed.
    ///
    /// - Parameter seeds: a world follows from its seed, the app and ``stepLimit``.
    /// - Throws: the ``Failure`` of the lowest seed that was found to fail, with its shortened script; what the app's
    ///   `migrate` throws, or ``SyncError`` where its tables cannot be synced.
    @discardableResult
    public func run(seeds: ClosedRange<UInt64>) async throws -> Report {
        let start = ContinuousClock().now
        let source = SeedSource(seeds)
        let results = try await work { worker in await worker.run(source) }
        if let failure = results.compactMap(\.failure).min(by: { $0.seed ?? 0 < $1.seed ?? 0 }) { throw failure }
        var report = results.reduce(into: Report()) { $0.add($1.report) }
        report.duration = ContinuousClock().now - start
        return report
    }

    /// Plays one world for each seed, also after failures, and shortens none of them.
    package func survey(seeds: ClosedRange<UInt64>) async throws -> [Failure] {
        let source = SeedSource(seeds)
        let failures = try await work { worker in await worker.survey(source) }
        return failures.flatMap(\.self).sorted { ($0.seed ?? 0) < ($1.seed ?? 0) }
    }

    /// As ``survey(seeds:)``, and holds the records of every device against their machine.
    ///
    /// - Parameter trial: faults that the audit is tried with.
    package func audit(
        seeds: ClosedRange<UInt64>, trial: RecordFaultTrial? = nil
    ) async throws -> (failures: [Failure], coverage: RecordCoverage) {
        let source = SeedSource(seeds)
        let results = try await work { worker in
            let audit = RecordAudit(trial: trial)
            worker.laboratory.audit = audit
            return (await worker.survey(source), audit.coverage)
        }
        let failures = results.flatMap(\.0).sorted { ($0.seed ?? 0) < ($1.seed ?? 0) }
        return (failures, results.reduce(into: RecordCoverage()) { $0.add($1.1) })
    }

    /// Plays one script, and holds the records of every device against their machine.
    package func audit(
        _ script: Script, world: String, trial: RecordFaultTrial? = nil
    ) async throws -> (failure: Failure?, coverage: RecordCoverage) {
        let worker = Worker(simulation: self, laboratory: try await Laboratory(app: app))
        let audit = RecordAudit(trial: trial)
        audit.begin(world)
        worker.laboratory.audit = audit
        do { _ = try await worker.play(script) } catch let failure as Failure { return (failure, audit.coverage) }
        return (nil, audit.coverage)
    }

    private func work<Result: Sendable>(_ body: @escaping @Sendable (Worker) async -> Result) async throws -> [Result] {
        try await withThrowingTaskGroup(of: Result.self) { group in
            for _ in 0..<max(1, workerCount) {
                group.addTask { await body(Worker(simulation: self, laboratory: try await Laboratory(app: app))) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// Plays one script, for example one that a failure has left.
    ///
    /// - Throws: the ``Failure``, not shortened any more.
    @discardableResult
    public func play(_ script: Script) async throws -> Report {
        try await Worker(simulation: self, laboratory: Laboratory(app: app)).play(script)
    }

    /// What happens in a script's world, line by line, with the messages: for one who wants to see why it fails. It
    /// does not throw for what fails; the last line says it.
    ///
    /// - Throws: what stands in the way of making the world.
    public func trace(of script: Script) async throws -> [String] {
        try await Worker(simulation: self, laboratory: Laboratory(app: app)).trace(script)
    }

    /// The script that a seed makes.
    public func script(seed: UInt64) -> Script {
        var chooser = StepChooser(seed: seed, app: (app.acts.map(\.name), app.scopes.count, app.hasFiles))
        var (plan, steps) = chooser.script(limit: stepLimit)
        if hasRemedies { Remedy.insert(into: &steps, seed: seed, devices: plan.deviceCount) }
        if hasSecondProcesses {
            // Files are added by the app.
            let acts = app.acts.filter { $0.adding == nil }.map(\.name)
            SecondAct.insert(into: &steps, seed: seed, devices: plan.deviceCount, acts: acts)
        }
        // The world looks at blobs as they are in memory.
        plan.usesSQLite = !app.hasFiles && (usesSQLite || seed.isMultiple(of: Self.sqliteShare))
        plan.sendsEarly = sendsEarly
        // Only behind a full request, or a page with another one behind it, one goes early.
        if sendsEarly { plan.page = min(plan.page, 1 + Int(seed % 2)) }
        return Script(plan: plan, steps: steps)
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Simulation.Failure {
    init(_ error: any Error, in script: Simulation.Script) {
        guarantee = (error as? Violation)?.guarantee ?? "error"
        reason = "\(error)"
        self.script = script
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Simulation.Report {
    mutating func add(_ other: Self) {
        worlds += other.worlds
        events += other.events
        deaths.merge(other.deaths, uniquingKeysWith: +)
        remedies.merge(other.remedies, uniquingKeysWith: +)
        handovers += other.handovers
        early += other.early
        files.merge(other.files, uniquingKeysWith: +)
        longestCalm = max(longestCalm, other.longestCalm)
        // The order in which worlds end is no part of it.
        trace &+= other.trace
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Simulation.Report: CustomStringConvertible {
    /// A sentence for a log: `Played 10 worlds with 400 events and 12 deaths.`
    public var description: String {
        let count = deaths.values.reduce(0, +)
        return "Played \(counted(worlds, "world")) with \(counted(events, "event")) and \(counted(count, "death"))."
    }
}
