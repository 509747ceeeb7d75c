import TidemarkWire

extension ScopeDriver {
    /// Foreign keys that one request follows.
    private static let followedFields = Limits().followedFields

    /// Brings a record by name, ahead of the checkpoint. A scope that is being filled takes none before the filling has
    /// ended.
    func bring(_ record: RefetchQueue.Record, follow: [String]) async throws {
        await mutex.lock()
        defer { mutex.unlock() }
        do {
            let (schema, declarations) = try await prepared()
            try await resolveInferred(schema, declarations)
            try remedy.refuseStopped(scope)
            let scope = scope
            let isFilling = try await database {
                try await self.file.read { db in try ScopeRecord.read(db, scope).bootstrap != nil }
            }
            if isFilling, let error = await syncAlone().1 { throw error }
            var fetch = RecordFetch(schemaCache: schemaCache, scope: scope, schema: schema, declarations: declarations)
            var rest = follow[...]
            repeat {
                fetch.follow = Array(rest.prefix(Self.followedFields))
                rest = rest.dropFirst(Self.followedFields)
                counts += try await fetch.run([record]).counts
            } while !rest.isEmpty
        } catch { throw Failure(error, scope: scope).error }
        await changed(isStopped)
    }

    /// Takes the scope off the device and ends; `false` where it has edits that the server has not taken. The caller
    /// has locked the mutex.
    func evict() async -> Bool {
        guard let schema = await schemaCache.schema else { return false }
        let (scope, now) = (scope, wallClockMilliseconds())
        let isGone = try? await file.writeWithoutTransaction(at: .leave) { db in
            try HeldScopes.evict(db, scope, schema, now: now)
        }
        guard isGone == true else { return false }
        retire()
        return true
    }
}
