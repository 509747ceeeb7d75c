import TidemarkCore
import TidemarkWire

extension SyncEngine {
    /// Keeps one stream of nudges open, until cancelled (B3), for the scopes that the token grants, the first
    /// ``NudgeStream/scopeLimit`` of them by name. Only how soon a scope is pulled depends on it: the ticks go on.
    func listen(through transport: any StreamingTransport) async {
        var reconnection = Reconnection(configuration.backoff.rule, longest: adapted.longestWait.milliseconds)
        while !Task.isCancelled {
            reconnection.backoff = configuration.backoff.rule
            reconnection.longest = adapted.longestWait.milliseconds
            let scopes = nudgedScopes
            guard !scopes.isEmpty else {
                await waitForOthers(than: scopes)
                continue
            }
            let began = Dependencies.current.uptime
            let end = await NudgeStream(transport: transport, scopes: scopes).run(
                opened: { await self.noteListening(true) }, hear: { await self.hear($0) },
                isOutdated: { await self.waitForOthers(than: scopes) })
            await noteListening(false)
            guard let wait = await wait(after: end, &reconnection, lasted: Dependencies.current.uptime - began) else {
                continue
            }
            _ = await listening.sleep(for: .milliseconds(wait))
        }
    }

    /// How long to wait before another stream is opened, in milliseconds; `nil` where it is wanted now.
    private func wait(
        after end: NudgeStream.End, _ reconnection: inout Reconnection, lasted: Int64
    ) async -> Int64? {
        let jitter = Dependencies.current.random()
        switch end {
        case .replaced: return nil
        case .ended: return reconnection.wait(after: nil, lasted: lasted, jitter: jitter)
        case .failed(let failure, let asked):
            // Each scope's own exchange tells which of them it is that the token does not grant.
            if failure.isRefusal { for driver in drivers { await driver.wake() } }
            return reconnection.wait(after: failure, lasted: lasted, asked: asked, jitter: jitter)
        }
    }

    /// The scopes to hear of: those that the token grants, as far as is known, up to the number that one stream takes.
    private var nudgedScopes: [Scope] {
        guard adapted.receivesNudges else { return [] }
        return drivers.map(\.scope).filter { !refused.contains($0) }.sorted().prefix(NudgeStream.scopeLimit).map(\.self)
    }

    /// Returns when the scopes to hear of are others, or the task is cancelled.
    private func waitForOthers(than scopes: [Scope]) async {
        // Each change raises the signal: the time has no meaning.
        while !Task.isCancelled, nudgedScopes == scopes { _ = await listening.sleep(for: .seconds(3600)) }
    }

    private func hear(_ nudge: Nudge) async {
        await drivers.first { $0.scope == nudge.scope }?.hear(nudge.head)
    }

    private func noteListening(_ isListening: Bool) async {
        guard self.isListening != isListening else { return }
        self.isListening = isListening
        await publishStatus()
    }

    /// Notes whether the server lets this device into the scope: one that it does not would end the stream of all.
    func noteAccess(_ driver: ScopeDriver) async {
        guard schemaCache.transport.streaming != nil else { return }
        guard let isRefused = await driver.isRefused, isRefused != refused.contains(driver.scope) else { return }
        if isRefused { refused.insert(driver.scope) } else { refused.remove(driver.scope) }
        listening.raise()
    }
}
