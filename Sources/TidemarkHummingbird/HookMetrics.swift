#if Server
    import Metrics
    public import TidemarkServer
    import TidemarkCore

    /// Counts what hooks do, by `swift-metrics`, with the hook's name as `hook`:
    ///
    /// - `tidemark_hook_calls`: calls that ended, by `outcome`: `told`, `failed`, `given_up`, `stopped`.
    /// - `tidemark_hook_lag`: the time from a commit until it was told.
    /// - `tidemark_hook_behind`: scopes that the node knows to have news for the hook; up to 1,000 of them.
    /// - `tidemark_hook_unavailable`: how often it was said that the store fails the hook, once a minute while it does.
    ///
    /// ```swift
    /// configuration.onHookEvent = HookMetrics.record
    /// ```
    public enum HookMetrics {
        /// Counts one call, or one failure of the store.
        @Sendable public static func record(_ event: HookEvent) {
            let hook = ("hook", event.hook)
            let outcome: String
            switch event.kind {
            case .told: outcome = "told"
            case .failed: outcome = "failed"
            case .givenUp: outcome = "given_up"
            case .stopped: outcome = "stopped"
            case .unavailable:
                Counter(label: "tidemark_hook_unavailable", dimensions: [hook]).increment()
                return
            }
            Counter(label: "tidemark_hook_calls", dimensions: [hook, ("outcome", outcome)]).increment()
            Gauge(label: "tidemark_hook_behind", dimensions: [hook]).record(event.behind)
            guard event.kind == .told else { return }
            Timer(label: "tidemark_hook_lag", dimensions: [hook]).recordMilliseconds(event.lag.milliseconds)
        }
    }
#endif
