import Foundation

/// Plays an app in all worlds of a few steps: two devices, and every order of some edits, messages, losses, crashes and
/// openings of the server. What a ``Simulation`` meets by luck is met here for certain, as long as it takes no more
/// than that.
///
/// Engines that are in the midst of something cannot be copied, so a world is reached by playing its steps. A world
/// that is the same as another one (``WorldOutline``) is gone on from once only; and since most edges lead to worlds
/// that are known, a scan goes on from there to the next edge that nobody has taken, until none is left. To look at all
/// worlds of one depth before those of the next would play each path from the beginning, ten times slower. The checks
/// run after every step; where a new world is reached in which nothing is under way, the faults end, and all devices
/// have to come to be in sync. Every other world leads to such a one by arrivals alone.
///
/// What is not sure: two worlds count as the same although their clocks differ (how long each wait still takes does
/// not); although of two waits that end at once the other one may be over first; although rows that the server will
/// sweep are of different age; although what the oracle has seen differs, apart from the edits that it expects to see
/// again; and where they are the same but for the devices' numbers. So a bug that needs such a difference may be passed
/// over, and no other.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
package struct Exploration: Sendable {
    private(set) var simulation: Simulation
    /// How often each kind of thing may happen.
    package var budget = Budget()
    /// Where it begins: these steps come first in every world.
    private(set) var prelude: [Step] = []
    private(set) var plan = WorldPlan(
        seed: 1, page: 1, shufflesTasks: false, hasWindow: false, hasForeignKeys: false)
    /// Goes through the worlds breadth first, up to so many edges from the beginning. `nil`: in scans, to the end.
    package var depthLimit: Int?
    /// It ends with so many worlds.
    package var stateLimit = Int.max
    /// Hears now and then how far it has come.
    package var progress: @Sendable (Report) -> Void = { _ in }

    package init(of app: SimulatedApp) { simulation = Simulation(of: app) }

    /// Threads that play worlds at once.
    package var workerCount: Int {
        get { simulation.workerCount }
        set { simulation.workerCount = newValue }
    }

    /// Plays another app, with all else as it is.
    package mutating func play(_ app: SimulatedApp) {
        let workerCount = workerCount
        simulation = Simulation(of: app)
        self.workerCount = workerCount
    }

    /// Begins where a script ends. The server's store is in memory: what it holds tells worlds apart.
    package mutating func begin(with script: Simulation.Script) {
        (plan, prelude) = (script.plan, script.steps)
        plan.usesSQLite = false
    }

    /// What was found.
    package struct Report: Hashable, Sendable {
        /// Worlds that differ.
        package var states = 0
        /// Edges from one of them to another.
        package var transitions = 0
        /// All worlds that are fewer edges than this from the beginning were gone on from, where they are taken in that
        /// order.
        package var depth = 0
        /// Worlds that were played, each from the beginning through many of those.
        package var scans = 0
        /// The most steps of one of them.
        package var longestScan = 0
        /// How often the faults ended and all devices came to be in sync, and the longest time that it took.
        package var calms = 0
        package var longestCalm: Duration = .zero
        package var duration: Duration = .zero
    }

    /// Looks at all worlds up to the limits.
    ///
    /// - Throws: the ``Simulation/Failure`` of a world in which something does not hold, shortened.
    @discardableResult
    package func run() async throws -> Report { try await run(under: []) }

    /// As ``run()``, and holds the records of every device against their machine.
    ///
    /// - Throws: as ``run()`` does.
    package func audit() async throws -> (report: Report, coverage: RecordCoverage) {
        let audits = (0..<max(1, workerCount)).map { _ in RecordAudit() }
        for audit in audits { audit.begin("exploration") }
        let report = try await run(under: audits)
        return (report, audits.reduce(into: RecordCoverage()) { $0.add($1.coverage) })
    }

    /// - Parameter audits: one for each thread, or none.
    private func run(under audits: [RecordAudit]) async throws -> Report {
        let graph = StateGraph(deviceCount: plan.deviceCount, limit: stateLimit, isBreadthFirst: depthLimit != nil)
        let explorers = try await withThrowingTaskGroup(of: Explorer.self, returning: [Explorer].self) { group in
            for index in 0..<max(1, workerCount) {
                group.addTask { [self] in
                    let explorer = Explorer(exploration: self, laboratory: try await Laboratory(app: simulation.app))
                    explorer.laboratory.audit = audits.isEmpty ? nil : audits[index]
                    await Worker.onThread { explorer.explore(graph) }
                    return explorer
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        if let failure = graph.failure {
            throw await Worker.onThread { [first = explorers[0]] in first.shortened(failure) }
        }
        return graph.report
    }
}
