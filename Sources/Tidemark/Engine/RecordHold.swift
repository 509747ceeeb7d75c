public import TidemarkWire

/// A record that a screen needs: as long as it is held, its scope is here and in sync (D4).
///
/// Keep it for as long as the screen is there, and ``release()`` it then. One that is let go of without that is
/// released soon after. It may be used from any task.
public final class RecordHold: Sendable {
    /// The scope that is kept.
    public let scope: Scope
    private let letGo: @Sendable () async -> Void
    private let isHeld = Locked(true)

    init(_ scope: Scope, release letGo: @escaping @Sendable () async -> Void) {
        self.scope = scope
        self.letGo = letGo
    }

    deinit {
        let letGo = letGo
        if end() { Task { await letGo() } }
    }

    /// Lets go of the record. Where nothing else holds its scope, and the engine does not follow it anyway, its rows
    /// leave the device; nothing changes on the server.
    ///
    /// Rows with edits that the server has not taken, or that were refused or wait for a decision, keep the scope here:
    /// it syncs on, and goes once there are none. Where a request of the scope is under way, the call waits for it.
    public func release() async {
        if end() { await letGo() }
    }

    /// Whether it was held until now.
    private func end() -> Bool {
        isHeld.withLock { isHeld in
            defer { isHeld = false }
            return isHeld
        }
    }
}
