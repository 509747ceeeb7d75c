import TidemarkCore

/// What an app knows of itself and its device, by which the engine works more or less eagerly (E6).
///
/// The engine asks no platform for it: `scenePhase`, `NWPathMonitor` and `ProcessInfo` tell an app, and it passes on
/// what it knows; what it does not know stays as it is. No condition keeps a record from being sent or fetched, and
/// ``SyncEngine/syncNow()`` pays no heed to them. Attachments wait for a network that costs nothing where their
/// ``AttachmentConfiguration`` says so.
public struct SyncConditions: Hashable, Sendable {
    /// Whether the app is on the screen. Out of sight an engine asks every 15 minutes at most, and hears no nudges.
    public var isInForeground = true
    /// Whether there is a network, as far as the platform knows. Without one the engine tries every 15 minutes at most.
    public var isOnline = true
    /// Whether each byte costs the user money: `NWPath.isExpensive`. The engine's ticks are four times as far apart.
    public var isMetered = false
    /// Whether the user saves power: `ProcessInfo.isLowPowerModeEnabled`. The engine's ticks are four times as far
    /// apart.
    public var isLowPower = false

    /// Makes the conditions of an app on the screen, with a network that costs nothing, and power.
    public init() {}

    var rule: SyncScheduler.Conditions {
        var rule = SyncScheduler.Conditions()
        rule.isInForeground = isInForeground
        rule.isOnline = isOnline
        rule.isMetered = isMetered
        rule.isLowPower = isLowPower
        return rule
    }
}

extension SyncConfiguration {
    func adapted(by scheduler: SyncScheduler) -> SyncConfiguration {
        let settings = scheduler.adapted(
            SyncScheduler.Settings(
                tickMilliseconds: tick.milliseconds, longestWaitMilliseconds: longestWait.milliseconds,
                receivesNudges: receivesNudges))
        var adapted = self
        adapted.tick = .milliseconds(settings.tickMilliseconds)
        adapted.longestWait = .milliseconds(settings.longestWaitMilliseconds)
        adapted.receivesNudges = settings.receivesNudges
        return adapted
    }
}

extension SyncEngine {
    /// Adapts to what the app knows of itself and its device, also while the engine runs.
    ///
    /// An app that comes to the screen, or to a network, pulls every scope at once, also one that waits after a
    /// failure; what the server itself asked to wait is kept. The ``configuration`` stays: it is what the conditions
    /// make less eager, and never more.
    ///
    /// ```swift
    /// for await path in paths {
    ///     conditions.isOnline = path.status == .satisfied
    ///     conditions.isMetered = path.isExpensive
    ///     await sync.adapt(to: conditions)
    /// }
    /// ```
    public func adapt(to conditions: SyncConditions) async {
        for effect in scheduler.note(conditions.rule) {
            switch effect {
            case .adapt: await useAdapted(syncs: false)
            case .pull: await wake()
            }
        }
    }

    /// Syncs as ``syncNow()`` does, but for no longer than a time that the system has granted: that of a background
    /// refresh, or of a silent push notification.
    ///
    /// What was taken in until then stays, and the next sync goes on from there.
    /// - Returns: `nil` where the time was over first.
    /// - Throws: as ``syncNow()`` does.
    @discardableResult
    public func syncNow(within time: Duration) async throws -> SyncReport? {
        try await withThrowingTaskGroup(of: SyncReport?.self) { group in
            group.addTask { try await self.syncNow() }
            group.addTask {
                try await Dependencies.current.sleep(for: time)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }
}
