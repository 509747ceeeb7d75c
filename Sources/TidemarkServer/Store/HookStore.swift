package import TidemarkCore
package import TidemarkWire

/// A store that remembers what hooks were told (B3). Its functions are called from any task, several at once; each
/// throws ``StoreUnavailable`` for troubles that pass by themselves, and an error of the store's own for the rest.
package protocol HookStore: ChangeStore {
    /// Takes or keeps the right to call a hook for a time, and answers whether it was to be had: no other holder has it
    /// until then.
    func holdHook(_ hook: String, as holder: String, for time: Duration) async throws -> Bool

    /// Releases the right; does nothing for a holder who has it not.
    func releaseHook(_ hook: String, as holder: String) async throws

    /// Notes for some scopes, at most `limit` and in the order of their names, that their present heads count as told,
    /// until it was done for all that there were. Answers whether something is left. Does nothing for a hook for which
    /// it is done.
    func beginHook(_ hook: String, limit: Int) async throws -> Bool

    /// The hook begins at the start: no head counts as told but those that are noted.
    func beginHookAtStart(_ hook: String) async throws

    /// The heads that were not told, of the scopes that are named (`nil`: of at most `limit` scopes behind one, in the
    /// order of their names). Erased scopes have none.
    func untold(
        to hook: String, of scopes: [Scope]?, after scope: Scope?, limit: Int
    ) async throws -> [HookMachine.News]

    /// Notes what was told. A head that is noted already and newer stays.
    func keepTold(_ heads: [Scope: Version], to hook: String) async throws
}
