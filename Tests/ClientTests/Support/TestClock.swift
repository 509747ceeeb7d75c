import Foundation
import GRDB
import Synchronization
import Testing
import TidemarkCore
import TidemarkTesting

@testable import Tidemark

/// An environment that is the platform's but for the time.
protocol TestClock: Environment {
    var platform: Platform { get }
}

extension TestClock {
    func nextUUID() -> [UInt8] { platform.nextUUID() }

    func use<Result: Sendable>(
        _ writer: any DatabaseWriter, _ access: FileAccess, at point: WritePoint?,
        _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result { try await platform.use(writer, access, at: point, body) }

    func watchEdits(
        of writer: any DatabaseWriter, _ notify: @escaping @Sendable () -> Void
    ) -> AnyDatabaseCancellable { platform.watchEdits(of: writer, notify) }
}

/// The device's own clock, or one that stands still, by which nothing takes any time. It counts the waits that are
/// longer than a bound, as they begin.
final class CountingClock: TestClock {
    let platform = Platform()
    private let bound: Duration
    private let begun = Mutex(0)
    private let moment: Instant?

    init(longerThan bound: Duration = .zero, standingStill: Bool = false) {
        self.bound = bound
        moment = standingStill ? Platform().uptime : nil
    }

    var waits: Int { begun.withLock { $0 } }
    var wallClock: Int64 { platform.wallClock }
    var uptime: Instant { moment ?? platform.uptime }
    func random() -> UInt64 { platform.random() }

    func sleep(for duration: Duration) async throws {
        if duration > bound { begun.withLock { $0 += 1 } }
        try await platform.sleep(for: duration)
    }

    func wait(for count: Int) async throws { try await poll { waits >= count } }

    /// The same for one who holds a lock meanwhile: blocks the thread, for half a minute at most. Answers whether there
    /// were so many.
    func block(for count: Int) -> Bool {
        for _ in 0..<3000 where waits < count { Thread.sleep(forTimeInterval: 0.01) }
        return waits >= count
    }
}

/// A device whose waits take no time: its clock goes on to where each ends.
final class QuickClock: TestClock {
    private struct State {
        var uptime: Int64 = 0
        var generator: SplitMix64?
    }

    private let state: Mutex<State>
    let platform = Platform()
    /// Waits of this length are those of the task that looks for edits, and never end.
    static let poll = Duration.seconds(777)

    /// - Parameter seed: `nil` where all that is random is 0.
    init(seed: UInt64?) { state = Mutex(State(generator: seed.map { SplitMix64(seed: $0) })) }

    var wallClock: Int64 { 1_800_000_000_000 + uptime.milliseconds }
    var uptime: Instant { Instant(milliseconds: state.withLock(\.uptime)) }
    func random() -> UInt64 { state.withLock { $0.generator?.next() ?? 0 } }

    func sleep(for duration: Duration) async throws {
        guard duration != Self.poll else { return try await Task.sleep(for: .seconds(3600)) }
        state.withLock { $0.uptime += max(duration.milliseconds, 0) }
        await Task.yield()
    }
}

/// A clock by which a granted time is over once something has happened.
final class GrantedClock: TestClock {
    static let time = Duration.milliseconds(50)
    let platform = Platform()
    private let isOver: @Sendable () async -> Bool

    init(isOver: @escaping @Sendable () async -> Bool) { self.isOver = isOver }

    var wallClock: Int64 { platform.wallClock }
    var uptime: Instant { platform.uptime }
    func random() -> UInt64 { platform.random() }

    func sleep(for duration: Duration) async throws {
        guard duration == Self.time else { return try await platform.sleep(for: duration) }
        try await poll { await isOver() }
    }
}

/// The device's own clock, where one row of the file takes few keys of a first capture.
final class SmallPartsClock: TestClock {
    let platform = Platform()
    var wallClock: Int64 { platform.wallClock }
    var uptime: Instant { platform.uptime }
    var firstCaptureKeys: Int { 20 }
    func random() -> UInt64 { platform.random() }
    func sleep(for duration: Duration) async throws { try await platform.sleep(for: duration) }
}
