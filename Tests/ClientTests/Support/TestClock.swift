import Foundation
import GRDB
import Synchronization
import Testing
import TidemarkCore

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

    func wait(for count: Int) async throws {
        for _ in 0..<3000 where waits < count { try await Task.sleep(for: .milliseconds(10)) }
        try #require(waits >= count)
    }
}
