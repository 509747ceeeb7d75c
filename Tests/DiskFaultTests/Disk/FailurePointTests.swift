import Testing
import Tidemark

/// SQLite's own method, on the whole: every call of every story fails once, and everything recovers.
///
/// A build tries a sample. `TIDEMARK_FAULT_STRIDE` tries every story with each disk, and sets how dense: 1 is every
/// call, which takes hours. `TIDEMARK_FAULT_SCENARIO` names stories by a part of their name, and
/// `TIDEMARK_FAULT_OFFSET` moves the sample.
@Suite("Everybody recovers from any failed call to the disk, and ends where they would have")
struct FailurePointTests {
    /// A story with the disk that fails in it.
    struct Case: Sendable, CustomStringConvertible {
        var points: FailurePoints
        /// Where the sample begins: another place in each story.
        var offset: Int

        var description: String { "\(points.scenario), \(points.victim), \(points.opening)" }
    }

    private static let stride = Amount.word("TIDEMARK_FAULT_STRIDE").flatMap { Int($0) }

    static let scenarios: [Scenario] = {
        guard let word = Amount.word("TIDEMARK_FAULT_SCENARIO") else { return Scenarios.all }
        return Scenarios.all.filter { $0.name.contains(word) }
    }()

    static let cases: [Case] = {
        let disks: [(Stage.Victim, DiskDevice.Opening)] = [(.server, .queue), (.device, .queue), (.device, .pool)]
        let offset = Amount.named("TIDEMARK_FAULT_OFFSET", or: 0)
        return scenarios.enumerated().flatMap { index, scenario in
            disks.enumerated().filter { stride != nil || index % 5 == 0 && index / 5 % disks.count == $0.offset }
                .map { disk in
                    let points = FailurePoints(scenario: scenario, victim: disk.element.0, opening: disk.element.1)
                    return Case(points: points, offset: offset + index * 11 + disk.offset * 5)
                }
        }
    }()

    @Test(.timeLimit(.minutes(600)), arguments: cases)
    func calls(_ one: Case) async throws {
        let model = try await one.points.model()
        var tally = FailurePoints.Tally()
        for (index, fault) in FailurePoints.faults.enumerated() {
            let count = model.calls[fault.calls] ?? 0
            // Without a stride, one call of each kind.
            let step = max(1, Self.stride ?? count)
            let first = 1 + (one.offset + index * 37) % step
            tally += await one.points.run(
                fault, model, calls: Array(Swift.stride(from: first, through: count, by: step)))
        }
        for finding in tally.findings.prefix(20) { Issue.record(Comment(rawValue: finding)) }
        guard Self.stride != nil else { return }
        Amount.tell(
            "\(one): \(tally.runs) runs, \(tally.struck) struck, \(tally.recoveries) recoveries, "
                + "\(tally.findings.count) findings")
    }
}

@Suite("A story in which nothing fails ends well")
struct StoryTests {
    /// Plays each story without a failure: one that ends badly by itself says nothing of failures. One did: a record
    /// that had come back in part counted as different for ever.
    @Test("A story without a failure ends well", arguments: Scenarios.all)
    func sound(_ scenario: Scenario) async throws {
        _ = try await FailurePoints(scenario: scenario, victim: .device).model()
    }
}

/// `TIDEMARK_FAULT_STRIDE`, whatever it is, tries every story instead of a few.
@Suite("Everybody ends where they would have after any failed send")
struct SendTests {
    private static let scenarios = FailurePointTests.scenarios.enumerated().filter {
        Amount.word("TIDEMARK_FAULT_STRIDE") != nil || $0.offset % 16 == 1
    }.map(\.element)

    @Test(.timeLimit(.minutes(600)), arguments: scenarios)
    func sends(_ scenario: Scenario) async throws {
        let points = FailurePoints(scenario: scenario, victim: .device)
        let model = try await points.model()
        for loss in Wire.Loss.allCases {
            let tally = await points.lose(loss, model)
            for finding in tally.findings.prefix(20) { Issue.record(Comment(rawValue: finding)) }
            if Amount.word("TIDEMARK_FAULT_STRIDE") != nil { Amount.tell("\(scenario), \(loss): \(tally.runs) sends") }
        }
    }
}
