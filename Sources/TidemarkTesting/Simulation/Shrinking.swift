/// Makes a failing script as short as it gets while it still fails: delta debugging (Zeller and Hildebrandt, 2002),
/// then each thing that is left made simpler.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
struct Shrinking {
    /// Worlds that are played for it at most.
    var limit = 3000
    private(set) var script: Simulation.Script
    private let fails: (Simulation.Script) -> Bool

    init(_ script: Simulation.Script, fails: @escaping (Simulation.Script) -> Bool) {
        self.script = script
        self.fails = fails
    }

    mutating func run() {
        var last: Simulation.Script?
        while last != script, limit > 0 {
            last = script
            simplifyPlan()
            deleteSteps()
            simplifySteps()
        }
    }

    /// Keeps a script that fails too.
    private mutating func attempt(_ candidate: Simulation.Script) -> Bool {
        guard candidate != script, limit > 0 else { return false }
        limit -= 1
        guard fails(candidate) else { return false }
        script = candidate
        return true
    }

    private mutating func deleteSteps() {
        var size = max(1, script.steps.count / 2)
        while size > 0 {
            var start = 0
            while start < script.steps.count {
                var candidate = script
                candidate.steps.removeSubrange(start..<min(start + size, candidate.steps.count))
                if !attempt(candidate) { start += size }
            }
            size /= 2
        }
    }

    private mutating func simplifyPlan() {
        for change in Self.planChanges {
            var candidate = script
            change(&candidate.plan)
            _ = attempt(candidate)
        }
    }

    private static let planChanges: [@Sendable (inout WorldPlan) -> Void] = [
        { $0.usesSQLite = false }, { $0.shufflesTasks = false }, { $0.hasWindow = true }, { $0.hasForeignKeys = true },
        { $0.userCount = 1 }, { $0.sendsEarly = false },
        { $0.page = 50 }, { $0.nodeCount = 1 }, { $0.isHurried = false }, { $0.isVerified = true },
        { $0.deviceCount = max(1, $0.deviceCount - 1) }, { $0.deviceCount = max(1, $0.deviceCount - 1) },
        { $0.seed = 1 },
    ]

    private mutating func simplifySteps() {
        for index in script.steps.indices {
            for step in Self.simpler(script.steps[index]) {
                var candidate = script
                candidate.steps[index] = step
                if attempt(candidate) { break }
            }
        }
    }

    /// The same, but easier to understand; the easiest first.
    private static func simpler(_ step: Step) -> [Step] {
        switch step {
        case .edit(let device, let act, let choice):
            [0, 1, 2, choice / 2].filter { $0 < choice }.map { .edit(device: device, act: act, choice: $0) }
        case .pass(let place, let fate):
            [.flow, fate == .arrives ? nil : .pass(place, .arrives), place > 0 ? .pass(0, fate) : nil].compactMap { $0 }
        case .passFile(let place, let fate): [.flow, place > 0 ? .passFile(0, fate) : nil].compactMap { $0 }
        case .wait(let milliseconds): [10, 2000, 31_000].filter { $0 < milliseconds }.map { .wait($0) }
        case .kill(let device, let after): after > 0 ? [.kill(device, after: 0)] : []
        case .killAt(let device, _, _): [.kill(device, after: 0)]
        case .setClock(let device, let offset): offset != 0 ? [.setClock(device, 0)] : []
        case .server(.fail(let count)) where count > 1: [.server(.fail(1))]
        case .file(let device, let act, let choice): choice > 0 ? [.file(device, act, choice: 0)] : []
        case .sync, .flow, .start, .backUp, .restore, .clone, .grant, .remedy, .second, .disk, .server: []
        }
    }
}
