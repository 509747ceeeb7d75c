#if Server
    import Metrics
    public import TidemarkServer

    /// Counts what hooks do, by `swift-metrics`, with the hook's name as `hook`:
    ///
    /// - `tidemark_hook_calls`: calls that ended, by `outcome`: `told`, `failed`, `given_up`, `stopped`.
    /// - `tidemark_hook_lag`: the time from a commit until it was told.
    /// - `tidemark_hook_behind`: scopes that the node knows to have news for the hook; up to 1,000 of them.
    ///
    /// ```swift
    /// configuration.onHookEvent = HookMetrics.record
    /// ```
    public enum HookMetrics {
        /// Counts one call.
        @Sendable public static func record(_ event: HookEvent) {
            let outcome =
                switch event.kind {
                case .told: "told"
                case .failed: "failed"
                case .givenUp: "given_up"
                case .stopped: "stopped"
                }
            let hook = ("hook", event.hook)
            Counter(label: "tidemark_hook_calls", dimensions: [hook, ("outcome", outcome)]).increment()
            Gauge(label: "tidemark_hook_behind", dimensions: [hook]).record(event.behind)
            guard event.kind == .told else { return }
            Timer(label: "tidemark_hook_lag", dimensions: [hook]).recordMilliseconds(event.lag)
        }
    }
#endif
