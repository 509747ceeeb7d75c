import Foundation
import GRDB
import GRDBSQLite
import Synchronization
import TidemarkCore

@testable import Tidemark

/// A device whose file is cut off in the midst of SQLite's work: within each use after a number of instructions, as a
/// call of `interrupt()` or the system's suspension would from another thread. Waits take no time.
final class InterruptedFile: TestClock {
    /// What cuts off the work.
    enum Cause {
        /// The running statement ends with `SQLITE_INTERRUPT`, as after `DatabaseReader.interrupt()`.
        case interrupt
        /// The app posts GRDB's notification that it is about to be suspended.
        case suspension
    }

    let platform = Platform()
    private let clock = QuickClock(seed: nil)
    private let cause: Cause
    private let budget: @Sendable (WritePoint?) -> Int?
    private let cut = Mutex(0)
    /// Whether the app is suspended. It is told so once: GRDB looks at the file under its own lock from then on.
    private let isSuspended = Mutex(false)
    /// Called behind each use in which the work was cut off.
    private let afterCut: @Sendable () -> Void

    /// - Parameters:
    ///   - afterCut: called behind each use that was cut off.
    ///   - budget: after how many instructions the next use is cut off, by what it writes; `nil` for one that is left
    ///     alone.
    init(
        _ cause: Cause, afterCut: @escaping @Sendable () -> Void = {},
        budget: @escaping @Sendable (WritePoint?) -> Int?
    ) {
        self.cause = cause
        self.afterCut = afterCut
        self.budget = budget
    }

    /// The app is back.
    func resume() {
        guard isSuspended.withLock({ $0 }) else { return }
        isSuspended.withLock { $0 = false }
        NotificationCenter.default.post(name: Database.resumeNotification, object: nil)
    }

    /// How many uses were cut off.
    var cuts: Int { cut.withLock { $0 } }

    var wallClock: Int64 { clock.wallClock }
    var uptime: Instant { clock.uptime }
    func random() -> UInt64 { clock.random() }
    func sleep(for duration: Duration) async throws { try await clock.sleep(for: duration) }

    func use<Result: Sendable>(
        _ writer: any DatabaseWriter, _ access: FileAccess, at point: WritePoint?,
        _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        guard !isSuspended.withLock({ $0 }), let budget = budget(point) else {
            return try await platform.use(writer, access, at: point, body)
        }
        let cutter = Cutter(cause)
        defer {
            if cutter.hasCut {
                cut.withLock { $0 += 1 }
                isSuspended.withLock { $0 = cause == .suspension }
                afterCut()
            }
        }
        return try await platform.use(writer, access, at: point) { db in
            try cutter.watching(db, budget) { try body(db) }
        }
    }
}

/// Cuts off the work of a connection once.
private final class Cutter: Sendable {
    private let cause: InterruptedFile.Cause
    private let done = Mutex(false)

    init(_ cause: InterruptedFile.Cause) { self.cause = cause }

    var hasCut: Bool { done.withLock { $0 } }

    func watching<Result>(_ db: Database, _ budget: Int, _ body: () throws -> Result) rethrows -> Result {
        let connection = db.sqliteConnection
        sqlite3_progress_handler(
            connection, CInt(budget),
            { context in
                guard let context else { return 0 }
                return Unmanaged<Cutter>.fromOpaque(context).takeUnretainedValue().cutOff()
            }, Unmanaged.passUnretained(self).toOpaque())
        defer { sqlite3_progress_handler(connection, 0, nil, nil) }
        return try body()
    }

    /// Returns whether SQLite shall interrupt the statement, as its progress handlers do.
    private func cutOff() -> CInt {
        let isFirst = done.withLock { done in
            defer { done = true }
            return !done
        }
        guard isFirst else { return 0 }
        switch cause {
        case .interrupt: return 1
        case .suspension:
            NotificationCenter.default.post(name: Database.suspendNotification, object: nil)
            return 0
        }
    }
}
