import Foundation

/// A value that is used under a lock.
///
/// Unchecked because the value is reached between lock and unlock only; the library's own `Mutex` needs systems newer
/// than the package's oldest.
package final class Locked<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    package init(_ value: Value) { self.value = value }

    package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}
