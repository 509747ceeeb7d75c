import TidemarkCore
import TidemarkWire

extension SyncServer {
    /// Sweeps superseded rows, and less often what ``compact(elapsed:trustingClock:isRehearsal:)`` lets go, in small
    /// steps until the task is cancelled; a failed step is tried again next time.
    ///
    /// - Throws: `CancellationError` when cancelled.
    public func sweepContinuously() async throws {
        let clock = ContinuousClock()
        var last = clock.now
        while true {
            try await Task.sleep(for: configuration.sweepInterval)
            _ = try? await sweep()
            let now = clock.now
            guard now - last >= configuration.compactionInterval else { continue }
            if (try? await compact(elapsed: now - last)) != nil { last = now }
        }
    }

    /// Removes what no reader in mid-scan can still need. Returns how many rows went.
    ///
    /// - Throws: what the store throws: ``StoreUnavailable`` for what passes by itself.
    @discardableResult
    public func sweep() async throws -> Int {
        let moment = configuration.moment().saturatingSubtracting(configuration.window.milliseconds)
        return try await store.sweep(supersededBefore: moment, limit: configuration.sweepLimit)
    }
}
