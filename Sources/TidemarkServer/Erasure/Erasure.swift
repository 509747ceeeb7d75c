import Foundation
import TidemarkCore
public import TidemarkWire

/// The target of an erasure.
public enum ErasureTarget: Hashable, Sendable {
    /// All that the store keeps of a scope and its sub-scopes, for everybody and for good: only the names stay, so that
    /// they are refused. Rows of attached tables are the operator's, and stay.
    case scope(Scope)
    /// The devices of a caller in all scopes and the answers to their edits, which the store keeps under his name, a
    /// token's `sub`. The log does not say who wrote a record.
    case principal(String)
}

extension SyncServer {
    /// Things that one transaction of an erasure removes: others write between two of them.
    private static let erasureStep = 500
    /// Scopes that are looked at between two questions for more of them.
    private static let erasureScopes = 256

    /// Erases a scope, or what is kept under a caller's name, in small steps.
    ///
    /// A scope is refused from the first step on, on every node that shares the store, with `scope_erased`; its
    /// devices treat that as lost access. A process that ends in the middle leaves the rest: ask again. Take a caller's
    /// token away before his name is erased, or his devices are written down again. Then ``purge()`` takes the bytes
    /// out of an SQLite file. What backups, other copies and devices still hold stands in `Documentation/Erasure.md`.
    ///
    /// ```swift
    /// let gone = try await server.erase(.scope("user:17"))
    /// try await server.erase(.principal("user-17"))
    /// try await server.purge()
    /// ```
    /// - Parameters:
    ///   - target: a scope or a caller's name.
    ///   - isRehearsal: only count.
    /// - Returns: what went, or would. Of a scope that the store does not know nothing, and it is not marked.
    /// - Throws: `CancellationError` when cancelled; errors of the store.
    @discardableResult
    public nonisolated(nonsending) func erase(
        _ target: ErasureTarget, isRehearsal: Bool = false
    ) async throws -> Erasure {
        switch target {
        case .scope(let scope): try await erase(scope, isRehearsal: isRehearsal)
        case .principal(let name): try await erase(everythingOf: name, isRehearsal: isRehearsal)
        }
    }

    /// Takes the bytes of what was removed out of the store's own files. An SQLite file is written anew: that takes as
    /// much room again, readers go on, and writers wait. In PostgreSQL that is the operator's `VACUUM`, and nothing is
    /// done.
    ///
    /// - Throws: errors of the store; then nothing has changed, and it may be tried again.
    public nonisolated(nonsending) func purge() async throws { try await store.purge() }

    /// A scope goes with its sub-scopes. Those that are declared are marked also where nothing is in them yet.
    private func erase(_ scope: Scope, isRehearsal: Bool) async throws -> Erasure {
        guard scope.subscope == nil else { return try await erase(one: scope, isRehearsal: isRehearsal) }
        let found = try await subscopes(of: scope)
        var erasure = try await erase(one: scope, isRehearsal: isRehearsal, marksUnknown: !found.isEmpty)
        let isKnown = erasure.scopes > 0 || !found.isEmpty
        for part in isKnown ? Set(found + declaredSubscopes(of: scope)).sorted() : [] {
            try Task.checkCancellation()
            let gone = try await erase(one: part, isRehearsal: isRehearsal, marksUnknown: true)
            erasure.add(gone)
            erasure.scopes += gone.scopes
            erasure.erasedAt = erasure.erasedAt ?? gone.erasedAt
        }
        return erasure
    }

    func subscopes(of scope: Scope) async throws -> [Scope] {
        var found: [Scope] = []
        while true {
            let scopes = try await store.scopes(after: found.last ?? scope.beforeSubscopes, limit: Self.erasureScopes)
            let some = scopes.prefix { $0.parent == scope }
            found += some
            guard some.count == Self.erasureScopes else { return found }
        }
    }

    private func erase(one scope: Scope, isRehearsal: Bool, marksUnknown: Bool = false) async throws -> Erasure {
        var (kept, state) = try await store.read(scope) { (try $0.countKept(by: nil), $0.state) }
        kept.add(try await countBlobs(of: scope))
        var erasure = Erasure()
        let isKnown = !kept.isEmpty || state != ScopeState()
        guard isKnown || marksUnknown && !isRehearsal else { return erasure }
        (erasure.scopes, erasure.erasedAt) = (isKnown ? 1 : 0, state.erasedAt.map(Date.init(milliseconds:)))
        if isRehearsal {
            erasure.add(kept)
            return erasure
        }
        // First of all, and durable: whatever becomes of the rest, nobody reads or writes here any more.
        let moment = configuration.moment()
        erasure.erasedAt = try await store.write(scope) { writer in
            try writer.markErased(at: moment)
            return writer.state.erasedAt.map(Date.init(milliseconds:))
        }
        nudges.end(of: scope)
        keptPages.forget(scope)
        hear([scope])
        erasure.add(try await eraseSteps(of: nil, in: scope))
        erasure.add(try await eraseBlobs(of: scope))
        // A reader who began before the mark may have kept a page since.
        keptPages.forget(scope)
        return erasure
    }

    private func erase(everythingOf principal: String, isRehearsal: Bool) async throws -> Erasure {
        var erasure = Erasure()
        var last: Scope?
        while true {
            let scopes = try await store.scopes(after: last, limit: Self.erasureScopes)
            for scope in scopes {
                try Task.checkCancellation()
                let kept = try await store.read(scope) { try $0.countKept(by: principal) }
                guard !kept.isEmpty else { continue }
                erasure.scopes += 1
                erasure.add(isRehearsal ? kept : try await eraseSteps(of: principal, in: scope))
            }
            guard scopes.count == Self.erasureScopes else { break }
            last = scopes.last
        }
        erasure.add(try await eraseParts(of: principal, isRehearsal: isRehearsal))
        return erasure
    }

    private func eraseSteps(of principal: String?, in scope: Scope) async throws -> Erasure {
        var erasure = Erasure()
        while true {
            try Task.checkCancellation()
            let gone = try await store.write(scope) { try $0.erase(of: principal, limit: Self.erasureStep) }
            if gone.isEmpty { return erasure }
            erasure.add(gone)
        }
    }
}
