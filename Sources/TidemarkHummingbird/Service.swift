#if Server
    public import ServiceLifecycle
    public import TidemarkServer

    /// A host lists the engine among its services: `Application(router: router, services: [sync])`.
    extension SyncServer: Service {
        /// Keeps the log small, hears of what other nodes commit, calls the hooks, and takes over what other programs
        /// write to the operator's own tables, until the host shuts down or cancels.
        ///
        /// - Throws: what watching other nodes throws, and `StoreWithoutHooks`; nothing when it is cancelled.
        public func run() async throws {
            do {
                try await cancelWhenGracefulShutdown {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        group.addTask { try await self.sweepContinuously() }
                        group.addTask { try await self.watchOtherNodes() }
                        group.addTask { try await self.captureContinuously() }
                        group.addTask { try await self.callHooksContinuously() }
                        try await group.waitForAll()
                    }
                }
            } catch is CancellationError {
                // This is how sweeping ends; to a service group any error would be a failure.
            }
        }
    }
#endif
