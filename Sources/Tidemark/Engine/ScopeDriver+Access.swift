import GRDB
import TidemarkCore
import TidemarkWire

// MARK: - Requests, and access that is lost

extension ScopeDriver {
    /// The tables as they stand, and what the operator declared.
    func prepared() async throws -> (SyncSchema, Declarations) {
        let schema = try await database { try await self.schemaCache.install() }
        let declarations = try await schemaCache.declarations(clientID: schema.clientID, scope: scope)
        guard await schemaCache.schema == nil else { return (schema, declarations) }
        return (try await database { try await self.schemaCache.install() }, declarations)
    }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        let response = try await carry(request)
        if response.status == 403 {
            let failure = Failure(response, scope: scope)
            if failure.kind == .forbidden, failure.isOurs {
                // A sub-scope that the server does not declare is forbidden too: that takes no rows.
                await schemaCache.heard(fingerprint: response.header(ProtocolVersion.declarationsHeader))
                try await loseAccess()
            }
        }
        return response
    }

    /// Sends what says nothing about the access, whatever the answer is.
    func carry(_ request: TransportRequest) async throws -> TransportResponse {
        measuring.stage = .request
        if let response = try takeEarly(request) { return response }
        return try await transmit(request)
    }

    func transmit(_ request: TransportRequest) async throws -> TransportResponse {
        let response = try await schemaCache.transport.send(request)
        counts.roundTrips += 1
        counts.bytesSent += response.bytesSent
        counts.bytesReceived += response.bytesReceived
        return response
    }

    /// The server does not grant the scope any more (T25): its rows go, what was not sent is kept.
    private func loseAccess() async throws {
        let (schema, declarations) = try await prepared()
        let removal = ScopeRemoval(
            scope: scope, schema: schema, declarations: declarations, isLoss: true, now: wallClockMilliseconds())
        let removed = try await database {
            try await self.file.writeWithoutTransaction(at: .loss) { db in try removal.run(db) }
        }
        loss = removed ?? loss
    }

    /// The error with the number of rows that went with it, and of the edits that are kept.
    func told(_ error: SyncError) -> SyncError {
        guard let loss, [.scopeForbidden, .scopeErased].contains(error.code) else { return error }
        var error = error
        error.detail += " " + loss.sentence
        return error
    }
}
