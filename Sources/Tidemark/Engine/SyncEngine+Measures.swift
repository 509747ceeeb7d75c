extension SyncEngine {
    /// What this file's syncing has cost, and where it has failed, over the file's life: bytes for each entity, how
    /// many changes came for each that made a difference, the time to the first useful data, failures by stage (A20).
    /// How far checkpoints lag says ``status()``.
    ///
    /// The file keeps the numbers with each answer that is taken in; what this engine measured since is added here, and
    /// lost with an engine that ends before the next answer.
    ///
    /// - Throws: ``SyncError`` `database_failed` where the file cannot be read.
    public func measures() async throws -> SyncMeasures {
        var sum = try await file.asked(to: .read) { db in try SyncMeasures.read(db) }
        sum += schemaCache.measures.present
        return sum
    }
}
