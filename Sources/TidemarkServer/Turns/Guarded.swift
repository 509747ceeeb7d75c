import Foundation

/// A value that is used under a lock, and not across a wait. The client has its own (`Locked`): the floors that both
/// stand on are without Foundation.
///
/// Unchecked because the value is reached between lock and unlock only; the library's own `Mutex` needs systems newer
/// than the package's oldest.
package final class Guarded<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    package init(_ value: Value) { self.value = value }

    package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }

    /// `nil` where the lock was not to be had in so many seconds.
    func withLock<Result>(within seconds: TimeInterval, _ body: (inout Value) throws -> Result) rethrows -> Result? {
        guard lock.lock(before: Date(timeIntervalSinceNow: seconds)) else { return nil }
        defer { lock.unlock() }
        return try body(&value)
    }
}
