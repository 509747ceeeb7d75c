extension SyncServer {
    /// The devices that this server knows: who is behind, with what, and why. A device is listed once for each of its
    /// scopes. What it tells of itself is its own word, and nobody has checked it.
    ///
    /// ```swift
    /// var query = FleetQuery()
    /// query.leastBehind = 1000
    /// for device in try await server.devices(query).devices { print(device.name.client, device.behind) }
    /// ```
    /// - Throws: errors of the store.
    public nonisolated(nonsending) func devices(_ query: FleetQuery = FleetQuery()) async throws -> FleetPage {
        try await store.devices(query)
    }
}
