extension SyncServer {
    /// The devices that this server knows: who is behind, with what, and why. A device is listed once for each of its
    /// scopes. A device's own report is shown as it came: the server has not checked it.
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
