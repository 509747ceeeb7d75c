import Tidemark

/// Every call of a scenario fails once: the n-th, for n = 1, 2, … to the last.
struct FailurePoints {
    var scenario: Scenario
    var victim: Stage.Victim
    var opening: DiskDevice.Opening = .queue

    /// What a number of runs has come to.
    struct Tally: Sendable {
        var runs = 0
        /// Runs in which the call came and failed.
        var struck = 0
        var recoveries = 0
        var findings: [String] = []

        static func += (tally: inout Tally, other: Tally) {
            tally.runs += other.runs
            tally.struck += other.struck
            tally.recoveries += other.recoveries
            tally.findings += other.findings
        }
    }

    /// The story without a fault: where it begins, how it ends, and how many calls and sends it takes.
    struct Model: Sendable {
        var scene: Stage.Scene
        var outcome: Outcome
        var calls: [FaultDisk.Calls: Int]
        var sends: Int
    }

    func model() async throws -> Model {
        let first = Stage(scenario, opening: opening)
        if scenario.beginning != .nothing { try await first.open() }
        for step in scenario.prepare { try await step.run(first) }
        let scene = first.scene()
        let stage = Stage(scenario, scene, victim: victim, opening: opening)
        if scenario.beginning == .open { try await stage.open() }
        let disk = stage.disk
        let kinds = Set(Self.faults.map(\.calls))
        let before = Dictionary(uniqueKeysWithValues: kinds.map { ($0, disk.count($0)) })
        let sends = await stage.devices[0].wire.sends
        if scenario.beginning != .open { try await stage.open() }
        for step in scenario.script { try await step.run(stage) }
        let calls = before.reduce(into: [:]) { $0[$1.key] = disk.count($1.key) - $1.value }
        let sent = await stage.devices[0].wire.sends - sends
        let outcome = try await stage.outcome()
        guard stage.findings.isEmpty else { throw Flawed(findings: stage.findings) }
        return Model(scene: scene, outcome: outcome, calls: calls, sends: sent)
    }

    /// The scenario itself does not end well.
    struct Flawed: Error { var findings: [String] }

    static let faults: [FaultDisk.Fault] = [.powerCut, .busy, .full, .staysFull, .badWrite, .badSync, .badRead]

    /// Fails these calls of the fault's kinds, one in each run.
    func run(_ fault: FaultDisk.Fault, _ model: Model, calls: [Int]) async -> Tally {
        var tally = Tally()
        for n in calls {
            tally += await play("\(victim) \(opening), \(fault) at call \(n)", model, seed: UInt64(n)) { stage in
                stage.disk.fail(at: n, fault)
            } struck: {
                $0.failures > 0
            }
        }
        return tally
    }

    func lose(_ loss: Wire.Loss, _ model: Model) async -> Tally {
        var tally = Tally()
        for n in 1...max(1, model.sends) {
            tally += await play("\(loss) of send \(n)", model, seed: UInt64(n)) { stage in
                await stage.devices[0].wire.lose(loss, at: n)
            } struck: { _ in
                true
            }
        }
        return tally
    }

    private func play(
        _ name: String, _ model: Model, seed: UInt64, fail: (Stage) async -> Void, struck: (FaultDisk) -> Bool
    ) async -> Tally {
        let stage = Stage(scenario, model.scene, victim: victim, opening: opening, seed: seed &* 1000)
        var tally = Tally(runs: 1)
        let disk = stage.disk
        do {
            if scenario.beginning == .open { try await stage.open() }
            await fail(stage)
            if scenario.beginning != .open { try await stage.play("open") { try await $0.open() } }
            for step in scenario.script { try await stage.play(step.name, step.run) }
            let outcome = try await stage.outcome()
            if outcome != model.outcome { stage.note("ends as \(outcome), not as \(model.outcome)") }
        } catch { stage.note("ended in \(error)") }
        stage.close()
        tally.struck = struck(disk) ? 1 : 0
        tally.recoveries = stage.recoveries
        let place = disk.failures > 0 ? " (\(disk.failedCall))" : ""
        tally.findings = stage.findings.map { "\(scenario.name), \(name)\(place): \($0)" }
        return tally
    }
}
