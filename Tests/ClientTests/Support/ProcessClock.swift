import GRDB
import Synchronization
import TidemarkCore

@testable import Tidemark

/// A process of its own, as far as an engine can tell. Its clocks stand still but where the test turns them, so that no
/// slow machine makes another process look dead, and the test says which others have ended.
final class ProcessClock: TestClock {
    private struct State {
        var ahead: Int64 = 0
        var wallAhead: Int64 = 0
        var ended: Set<String> = []
        var isFull = false
    }

    let platform = Platform()
    private let name: String
    private let start = Platform().uptime
    private let state = Mutex(State())

    init(_ name: String) { self.name = name }

    var wallClock: Int64 { platform.wallClock + state.withLock { $0.wallAhead } }
    var uptime: Instant { start + state.withLock { $0.ahead } }
    func random() -> UInt64 { platform.random() }
    func sleep(for duration: Duration) async throws { try await platform.sleep(for: duration) }
    func engineName() -> String { name }
    func noteEnd(of engine: String) { end(engine) }
    func mayBeThere(_ engine: String, isFirst _: Bool) -> Bool { state.withLock { !$0.ended.contains(engine) } }

    func use<Result: Sendable>(
        _ writer: any DatabaseWriter, _ access: FileAccess, at point: WritePoint?,
        _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        if access == .write, state.withLock({ $0.isFull }) { throw DatabaseError(resultCode: .SQLITE_FULL) }
        return try await platform.use(writer, access, at: point, body)
    }

    func turn(by milliseconds: Int64) { state.withLock { $0.ahead += milliseconds } }
    func turnWallClock(by milliseconds: Int64) { state.withLock { $0.wallAhead += milliseconds } }
    /// Whether the disk is full for this process.
    func fill(_ isFull: Bool) { state.withLock { $0.isFull = isFull } }
    func end(_ engine: String) { state.withLock { _ = $0.ended.insert(engine) } }
}
