import TidemarkCore
import TidemarkWire

extension SyncServer {
    /// Pushes, and asks what the caller may read of scopes to whose tables his rows may refer. Which ones these are is
    /// learned once, by a push that is undone for it; it depends on the tables, not on what their rows hold.
    func push(
        _ request: ExchangeRequest, since checkpoint: Checkpoint?, access: Access,
        authorize: @Sendable (Scope) async throws -> Access
    ) async throws -> PushResult {
        var grants: [Scope: Bool] = [:]
        if !request.operations.isEmpty {
            for scope in referredScopes.withLock({ $0 }) { grants[scope] = try await authorize(scope).level != .none }
        }
        while true {
            do { return try await push(request, since: checkpoint, access: access, grants: grants) } catch let wanted
                as GrantsWanted
            {
                let unknown = wanted.scopes.filter { grants[$0] == nil }
                guard !unknown.isEmpty else { throw wanted }
                for scope in unknown { grants[scope] = try await authorize(scope).level != .none }
                referredScopes.withLock { $0.formUnion(unknown) }
            }
        }
    }
}

extension ScopeWriter {
    /// Checks what a caller writes against the scopes that rows of attached tables may refer to; the server's own
    /// programs are not held to them.
    func checkingReferences<Result>(
        of access: Access, grants: [Scope: Bool], _ body: () throws -> Result
    ) throws -> Result {
        guard let tables = self as? any TableScopeWriter, !access.isService else { return try body() }
        return try tables.withReferences(grants: grants, body)
    }
}

extension SyncServer {
    /// Runs a write of another dialect, whose rows refer to their own scope and to no other.
    func withoutGrants<Result>(_ write: ([Scope: Bool]) async throws -> Result) async throws -> Result {
        do { return try await write([:]) } catch let wanted as GrantsWanted {
            return try await write(Dictionary(wanted.scopes.map { ($0, false) }) { first, _ in first })
        }
    }
}
