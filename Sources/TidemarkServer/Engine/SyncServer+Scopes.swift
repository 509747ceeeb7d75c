import TidemarkCore
import TidemarkWire

// An erased scope is refused, whoever asks.
extension SyncServer {
    /// Reads a scope for somebody who asks; one that is erased is refused. The mark is read in the same view as the
    /// rest, so that no node goes on with what it knew; a scope's mark for its sub-scopes just before, since what is
    /// declared is marked itself.
    func readScope<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeReader) throws -> Result
    ) async throws -> Result {
        try await endingStreams(of: scope) {
            try await refuseErasedParent(of: scope, for: caller)
            return try await store.read(scope, for: caller) { reader in
                try reader.state.refuseErased(scope)
                return try body(reader)
            }
        }
    }

    /// The same for a write, whose transaction reads the mark behind the scope's lock.
    func writeScope<Result: Sendable>(
        _ scope: Scope, for caller: String = "", _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result {
        try await endingStreams(of: scope) {
            try await refuseErasedParent(of: scope, for: caller)
            return try await store.write(scope, for: caller) { writer in
                try writer.state.refuseErased(scope)
                return try body(writer)
            }
        }
    }

    /// A sub-scope that was declared after its scope was erased has no mark of its own.
    private func refuseErasedParent(of scope: Scope, for caller: String) async throws {
        guard scope.subscope != nil else { return }
        try await store.read(scope.parent, for: caller) { try $0.state.refuseErased(scope.parent) }
    }

    /// Ends the streams of a scope once its first caller is refused: another process may have erased it.
    private func endingStreams<Result>(of scope: Scope, _ work: () async throws -> Result) async throws -> Result {
        do { return try await work() } catch let problem as Problem where problem.code == .scopeErased {
            nudges.end(of: scope)
            throw problem
        }
    }
}

extension ScopeState {
    fileprivate func refuseErased(_ scope: Scope) throws(Problem) {
        guard erasedAt != nil else { return }
        throw Problem(.scopeErased, "Scope \(scope) was erased by the operator, with all that it held.")
    }
}
