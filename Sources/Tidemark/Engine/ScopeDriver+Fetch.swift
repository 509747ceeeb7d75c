import TidemarkCore
import TidemarkWire

extension ScopeDriver {
    /// Fetches records that the scan does not bring. A failure here must not hold up the exchange, unless the server
    /// asks for a wait or the app has interrupted its file: the fetch is tried again before the next one.
    func fetch(_ exchange: Exchange) async throws {
        (fetchError, hasMoreToFetch) = (nil, false)
        guard !exchange.refetch.isEmpty else { return }
        let fetch = RecordFetch(
            schemaCache: schemaCache, scope: scope, schema: exchange.schema, declarations: exchange.declarations)
        do {
            let result = try await fetch.run(exchange.refetch)
            counts += result.counts
            hasMoreToFetch = result.unanswered.isEmpty && exchange.refetch.count == RecordFetch.requestLimit
        } catch {
            let failure = Failure(error, scope: scope)
            fetchError = failure.error
            if failure.wait != nil || failure.error.code == .databaseInterrupted { throw failure }
            // Records that the server will not tell are not asked for again; a comparison of digests finds any
            // difference.
            guard failure.kind == .needsApp else { return }
            let scope = scope
            try? await schemaCache.file.write(at: .unwanted) { db in
                for record in exchange.refetch { try RefetchQueue.remove(db, scope, record.entity, record.id.text) }
            }
        }
    }
}
