extension SyncEngine {
    /// The engine's state outside its file, without points in time, as a text: engines with the same state go on alike
    /// from the same file. For state-space exploration.
    package var memory: String {
        get async {
            var parts = [await schemaCache.memory]
            for driver in drivers { parts.append(await driver.memory) }
            return parts.joined(separator: "; ")
        }
    }
}
