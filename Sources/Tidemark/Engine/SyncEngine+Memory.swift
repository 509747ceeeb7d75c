extension SyncEngine {
    /// What the engine remembers beside its file, moments left out, as a text: engines that say the same go on alike
    /// from the same file. For one who explores what engines come to.
    package var memory: String {
        get async {
            var parts = [await schemaCache.memory]
            for driver in drivers { parts.append(await driver.memory) }
            return parts.joined(separator: "; ")
        }
    }
}
