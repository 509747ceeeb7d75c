public import TidemarkWire

/// The work that a store does for all of its scopes at once, so that history goes when nobody needs it any more. Its
/// functions are called from any task, several at once; each throws ``StoreUnavailable`` for troubles that pass by
/// themselves, and an error of the store's own for the rest.
public protocol HistoryStore: Sendable {
    /// Removes at most `limit` rows that were superseded before a moment (milliseconds since 1970; a row is superseded
    /// at the moment given with its successor), the first of them first, and raises each scope's sweep floor before.
    /// Returns how many rows went.
    ///
    /// - Throws: ``StoreUnavailable`` for what passes by itself; `CancellationError` in a cancelled task; an error of
    ///   the store's own for the rest.
    func sweep(supersededBefore moment: Int64, limit: Int) async throws -> Int

    /// The names of at most `limit` scopes behind one, in the order of their bytes.
    ///
    /// - Throws: ``StoreUnavailable`` for what passes by itself; `CancellationError` in a cancelled task; an error of
    ///   the store's own for the rest.
    func scopes(after scope: Scope?, limit: Int) async throws -> [Scope]

    /// The time by which history ages, as it was kept last, in milliseconds since 1970. Until it is kept for the first
    /// time it is that of the first write of a row, a verdict or an id: a clock that jumps before anybody looks must
    /// not make everything old. `nil` for a store that nobody wrote to.
    ///
    /// - Throws: ``StoreUnavailable`` for what passes by itself; `CancellationError` in a cancelled task; an error of
    ///   the store's own for the rest.
    func ageClock() async throws -> Int64?

    /// Keeps the time by which history ages, in milliseconds since 1970.
    ///
    /// - Throws: ``StoreUnavailable`` for what passes by itself; `CancellationError` in a cancelled task; an error of
    ///   the store's own for the rest.
    func setAgeClock(_ moment: Int64) async throws

    /// Takes the bytes of what was removed out of the store's own files, where the store can: other readers go on, and
    /// writers may wait for as long as it takes.
    ///
    /// - Throws: ``StoreUnavailable`` for what passes by itself; `CancellationError` in a cancelled task; an error of
    ///   the store's own for the rest.
    func purge() async throws
}

extension HistoryStore {
    /// Does nothing: for a store whose files are not its own.
    ///
    /// - Throws: nothing.
    public func purge() async throws {}
}
