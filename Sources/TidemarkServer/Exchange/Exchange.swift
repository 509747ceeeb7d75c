import TidemarkCore
package import TidemarkWire

/// Which halves of an exchange a request asks for.
package enum ExchangeMode: Hashable, Sendable {
    case pushAndPull
    case pushOnly
}

extension SyncServer {
    /// `POST /sync` and `POST /sync/push`: operations in, a verdict for each, and a page (Protocol.md).
    ///
    /// - Parameters:
    ///   - size: bytes of the body; `body` gives them when their turn has come.
    ///   - caller: who asks, as far as that is known before the body is read.
    ///   - authorize: what the caller may do in the scope that the body names, and in scopes to whose attached tables
    ///     rows of it may refer.
    package func exchange(
        _ size: Int, of body: @escaping @Sendable () throws -> [UInt8], mode: ExchangeMode, for caller: String,
        authorize: @escaping @Sendable (Scope) async throws -> Access
    ) async throws -> [UInt8] {
        try await inTurn(size, for: caller) {
            let (bytes, scope) = try await offload(size) {
                let bytes = try body()
                return (bytes, try Self.understood { () throws(JSONError) in try bytes.scope() })
            }
            let access = try await authorize(scope)
            try access.require(mode == .pushOnly ? .readWrite : .read, in: scope)
            let limit = limits.operations
            let request = try await offload(size) {
                try Self.understood { () throws(JSONError) in try bytes.request(operationLimit: limit) }
            }
            return try await answer(request, mode: mode, access: access, authorize: authorize)
        }
    }

    /// The same for a body that is at hand.
    package func exchange(
        _ body: [UInt8], mode: ExchangeMode, authorize: @escaping @Sendable (Scope) async throws -> Access
    ) async throws -> [UInt8] {
        try await exchange(body.count, of: { body }, mode: mode, for: "", authorize: authorize)
    }

    /// Works on a body of so many bytes when its turn has come: when there is memory for what becomes of it.
    func inTurn<Result: Sendable>(
        _ size: Int, for caller: String, _ work: () async throws -> Result
    ) async throws -> Result {
        let gate = size > Self.smallBody ? largeWork : smallWork
        return try await gate.pass(for: caller, weight: Self.requestWeight + size * Self.bodyWeight, work)
    }

    /// Bytes of memory that a request is reckoned to hold while it is worked on: these for itself, and these for each
    /// byte of its body. Objects with many names of two letters hold the most.
    private static let requestWeight = 16 << 10
    private static let bodyWeight = 12

    /// A body of so few bytes is read faster than it is handed to another thread, and waits for no large one.
    private static let smallBody = 16 << 10

    /// Reads a body where that keeps nobody else waiting.
    func offload<Result: Sendable>(
        _ size: Int, _ work: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        guard size > Self.smallBody else { return try work() }
        return try await withCheckedThrowingContinuation { continuation in
            configuration.offload { continuation.resume(with: Swift.Result { try work() }) }
        }
    }

    static func understood<Result>(_ read: () throws(JSONError) -> Result) throws(Problem) -> Result {
        do { return try read() } catch { throw Problem(error) }
    }

    private func answer(
        _ request: ExchangeRequest, mode: ExchangeMode, access: Access,
        authorize: @Sendable (Scope) async throws -> Access
    ) async throws -> [UInt8] {
        guard ProtocolVersion.supported.contains(Int(truncatingIfNeeded: request.protocolVersion)) else {
            throw Problem(.unsupportedProtocol, "Version \(request.protocolVersion) was asked for.")
        }
        let isPush = !request.operations.isEmpty || mode == .pushOnly
        try access.require(isPush ? .readWrite : .read, in: request.scope)
        let limit = try pageLimit(request.limit)
        // A request that will be refused for its checkpoint must not have applied anything.
        let checkpoint = try request.since.map { token throws(Problem) in
            try Checkpoint(token: token, scope: request.scope, key: store.tokenKey)
        }
        let pushed = try await push(request, since: checkpoint, access: access, authorize: authorize)
        var answer = JSONWriter(capacity: 256)
        answer.raw("{\"results\":[")
        answer.raw(pushed.results)
        answer.raw("]")
        if let head = pushed.head { tell(request.scope, head) }
        answer.member("syncedAt", configuration.moment())
        switch mode {
        case .pushAndPull:
            // A device without a checkpoint may have lost the row that it edits: it gets the whole one.
            let own = request.since == nil ? pushed.verbatim.subtracting(pushed.edits) : pushed.verbatim
            let page = try await page(
                of: request.scope, since: request.since, limit: limit, leavingOut: own, holding: pushed.oldest,
                takes: request.takes, device: try access.device(request.clientID), telling: request.report,
                takesRemedies: true, for: access)
            answer.raw(",")
            answer.raw(page)
        case .pushOnly:
            // A push of nothing has written nowhere, and so was refused by nobody.
            if pushed.epoch == nil { try await readScope(request.scope, for: access.principal) { _ in } }
            if let epoch = pushed.epoch { answer.member("epoch", epoch) }
        }
        answer.raw("}")
        return answer.bytes
    }
}

extension [UInt8] {
    fileprivate func scope() throws(JSONError) -> Scope {
        try withUnsafeBytes { bytes in
            Result { () throws(JSONError) in try ExchangeRequest.scope(in: bytes) }
        }.get()
    }

    fileprivate func request(operationLimit limit: Int) throws(JSONError) -> ExchangeRequest {
        try withUnsafeBytes { bytes in
            Result { () throws(JSONError) in try ExchangeRequest(from: bytes, operationLimit: limit) }
        }.get()
    }
}
