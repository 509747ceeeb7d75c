import TidemarkCore
package import TidemarkWire

/// Which halves of an exchange a request asks for.
package enum ExchangeMode: Hashable, Sendable {
    case pushAndPull
    case pushOnly
}

extension SyncServer {
    /// `POST /sync` and `POST /sync/push`: operations in, a verdict for each, and a page (PROTOCOL.md 4).
    ///
    /// - Parameter authorize: what the caller may do in the scope that the body names.
    package func exchange(
        _ body: [UInt8], mode: ExchangeMode, authorize: (Scope) async throws -> Access
    ) async throws -> [UInt8] {
        let request = try read(body)
        guard ProtocolVersion.supported.contains(Int(truncatingIfNeeded: request.protocolVersion)) else {
            throw Problem(.unsupportedProtocol, "Version \(request.protocolVersion) was asked for.")
        }
        let access = try await authorize(request.scope)
        let isPush = !request.operations.isEmpty || mode == .pushOnly
        try access.require(isPush ? .readWrite : .read, in: request.scope)
        let limit = try pageLimit(request.limit)
        // A request that will be refused for its checkpoint must not have applied anything.
        let checkpoint = try request.since.map { token throws(Problem) in
            try Checkpoint(token: token, scope: request.scope, key: store.tokenKey)
        }
        let pushed = try await push(request, since: checkpoint, access: access)
        var answer = JSONWriter(capacity: 256)
        answer.raw("{\"results\":[")
        answer.raw(pushed.results)
        answer.raw("]")
        if let head = pushed.head { nudges.publish(request.scope, head) }
        answer.member("syncedAt", configuration.now())
        switch mode {
        case .pushAndPull:
            // A device without a checkpoint may have lost the row that it edits: it gets the whole one.
            let own = request.since == nil ? pushed.verbatim.subtracting(pushed.edits) : pushed.verbatim
            let page = try await page(
                of: request.scope, since: request.since, limit: limit, leavingOut: own,
                withholding: withheld(from: access), holding: pushed.oldest,
                takesPatches: request.takesPatches, device: try access.device(request.clientID))
            answer.raw(",")
            answer.raw(page)
        case .pushOnly:
            if let epoch = pushed.epoch { answer.member("epoch", epoch) }
        }
        answer.raw("}")
        return answer.bytes
    }

    private func read(_ body: [UInt8]) throws(Problem) -> ExchangeRequest {
        let limit = limits.operations
        let result: Result<ExchangeRequest, JSONError> = body.withUnsafeBytes { bytes in
            Result { () throws(JSONError) in try ExchangeRequest(from: bytes, operationLimit: limit) }
        }
        switch result {
        case .success(let request): return request
        case .failure(let error): throw Problem(error)
        }
    }
}
