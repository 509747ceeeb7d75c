package import TidemarkWire

/// Sub-scopes: sets of entities within a scope, each with a log and checkpoints of its own and the permission of the
/// scope (A3).
extension SyncServer {
    /// Where records of an entity lie within a scope, for a caller who names the scope alone.
    /// A record without a place there is refused when it is written.
    package func place(of entity: String, in scope: Scope) -> Scope {
        declarations.place(of: entity, in: scope) ?? scope
    }

    /// Why an operation may not stand in this scope: a record that lay in two would be two.
    func misplacement(of operation: Operation, in scope: Scope) -> Verdict.Refusal? {
        guard let place = declarations.place(of: operation.entity, in: scope) else {
            return Verdict.Refusal(
                code: RejectionCode.scopeMismatch,
                detail: "The names of \(scope) and of the sub-scope of \(operation.entity) are too long together.",
                hint: "Together they take up to \(Identifier.scopeLimit - 1) characters.")
        }
        guard place != scope else { return nil }
        let subscope = place.subscope.map { "sub-scope \($0)" } ?? "no sub-scope"
        return Verdict.Refusal(
            code: RejectionCode.scopeMismatch,
            detail: "\(operation.entity) is declared to be in \(subscope): its records lie in \(place).",
            hint: "Give the table the same sub-scope in the app as the entity has on the server.")
    }

    /// A caller may do in a sub-scope what he may do in its scope. A sub-scope that no entity is declared to be in is
    /// refused, so that a caller who may write to one scope cannot make logs of any name.
    package func access(
        to scope: Scope, _ authorize: (Scope) async throws -> Access
    ) async throws -> Access {
        var access = try await authorize(scope.parent)
        if let subscope = scope.subscope, !subscopes.contains(subscope) { access.level = .none }
        return access
    }

    /// The sub-scopes that are declared.
    func declaredSubscopes(of scope: Scope) -> [Scope] { subscopes.compactMap { scope.appending(subscope: $0) } }
}
