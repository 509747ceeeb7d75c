import Foundation
import Synchronization
import TidemarkCore

/// Seeds that are still to be played, for several threads.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class SeedSource: Sendable {
    private let left: Mutex<(next: UInt64, last: UInt64)?>

    init(_ seeds: ClosedRange<UInt64>) { left = Mutex((seeds.lowerBound, seeds.upperBound)) }

    func next() -> UInt64? {
        left.withLock { left in
            guard let (next, last) = left else { return nil }
            left = next < last ? (next + 1, last) : nil
            return next
        }
    }

    /// Something was found: the other threads finish the world that they are in.
    func end() { left.withLock { $0 = nil } }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
struct WorkerResult: Sendable {
    var report = Simulation.Report()
    var failure: Simulation.Failure?
}

/// Plays worlds one after the other, on a thread of its own: a world never waits for anything but itself.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
struct Worker: Sendable {
    let simulation: Simulation
    let laboratory: Laboratory

    func run(_ source: SeedSource) async -> WorkerResult {
        await Self.onThread {
            var result = WorkerResult()
            while let seed = source.next() {
                let script = simulation.script(seed: seed)
                switch outcome(of: script) {
                case .success(let report): result.report.add(report)
                case .failure(let failure):
                    source.end()
                    result.failure = shortened(failure, seed: seed)
                    return result
                }
            }
            return result
        }
    }

    func survey(_ source: SeedSource) async -> [Simulation.Failure] {
        await Self.onThread {
            var failures: [Simulation.Failure] = []
            while let seed = source.next() {
                laboratory.audit?.begin("seed \(seed)")
                guard case .failure(var failure) = outcome(of: simulation.script(seed: seed)) else { continue }
                failure.seed = seed
                failures.append(failure)
            }
            return failures
        }
    }

    func play(_ script: Simulation.Script) async throws -> Simulation.Report {
        try await Self.onThread { outcome(of: script) }.get()
    }

    func trace(_ script: Simulation.Script) async throws -> [String] {
        try await Self.onThread {
            Result {
                let world = try World(in: laboratory, plan: script.plan, verbose: true)
                defer { world.end() }
                do {
                    for step in script.steps { try world.perform(step) }
                    _ = try world.calm(limit: simulation.calmLimit.milliseconds)
                } catch { world.note("\(error)") }
                return world.trace.lines ?? []
            }
        }.get()
    }

    func shortened(_ failure: Simulation.Failure, seed: UInt64?) -> Simulation.Failure {
        // The shortest way to the same failure, and not to whichever is nearest.
        var shrinking = Shrinking(failure.script) { script in
            guard case .failure(let other) = outcome(of: script) else { return false }
            return other.guarantee == failure.guarantee
        }
        shrinking.run()
        guard case .failure(var short) = outcome(of: shrinking.script) else { return failure }
        short.seed = seed
        return short
    }

    /// Plays one world to its end.
    private func outcome(of script: Simulation.Script) -> Result<Simulation.Report, Simulation.Failure> {
        do {
            let world = try World(in: laboratory, plan: script.plan)
            defer { world.end() }
            for step in script.steps { try world.perform(step) }
            let quiet = try world.calm(limit: simulation.calmLimit.milliseconds)
            var report = Simulation.Report()
            (report.worlds, report.events, report.deaths) = (1, world.trace.count, world.deaths)
            (report.remedies, report.handovers) = (world.doneRemedies, world.handovers)
            (report.early, report.files) = (world.earlyRequests, world.fileCounts)
            (report.longestCalm, report.trace) = (.milliseconds(quiet), world.trace.hash)
            return .success(report)
        } catch {
            return .failure(Simulation.Failure(error, in: script))
        }
    }

    static func onThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            let thread = Thread { continuation.resume(returning: body()) }
            thread.stackSize = 8 << 20
            thread.start()
        }
    }
}
