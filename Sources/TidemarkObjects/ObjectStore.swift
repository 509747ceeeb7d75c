public import TidemarkWire

/// A client of the server's delta headers: it fetches the objects of a class, keeps them, and has the server send only
/// what is new or changed the next time, and the ids to drop.
///
/// ```swift
/// let store = try ObjectStore(
///     storage: .persistent(path: path), transport: HTTPTransport(url) { try await session.accessToken() })
/// store.deltaSyncStrategy = .objectBased
/// let conferences = try await store.fetch("conference")
/// ```
///
/// It reads. An app that edits, offline above all, wants `SyncEngine`. A store may be used from any task; fetches of
/// one class wait for each other, those of different classes do not.
public final class ObjectStore: Sendable {
    private struct Settings: Sendable {
        var cache: CacheStrategy
        var delta: DeltaSyncStrategy
    }

    let limits: ObjectLimits
    let scope: Scope?
    let transport: any Transport
    let cache: ObjectCache
    private let settings: Locked<Settings>
    private let turns = Locked<[String: AsyncMutex]>([:])

    /// Opens a store.
    ///
    /// - Parameters:
    ///   - storage: where it keeps what it fetches. A file that was filled for another scope is emptied.
    ///   - scope: the scope whose objects are meant; `nil` for the token's only one, or the one of the class's path.
    ///   - cacheStrategy: see ``cacheStrategy``.
    ///   - deltaSyncStrategy: see ``deltaSyncStrategy``.
    ///   - limits: the bounds of what it sends and takes.
    ///   - transport: what carries its requests, such as `HTTPTransport`.
    /// - Throws: ``ObjectStoreError`` `deltaNeedsCache` where the strategies do not fit together, and `storageFailed`
    ///   where the file cannot be opened.
    public init(
        storage: ObjectStorage, scope: Scope? = nil, cacheStrategy: CacheStrategy = .networkElseCache,
        deltaSyncStrategy: DeltaSyncStrategy = .none, limits: ObjectLimits = ObjectLimits(), transport: any Transport
    ) throws(ObjectStoreError) {
        if cacheStrategy == .networkOnly, deltaSyncStrategy != .none { throw .deltaNeedsCache(deltaSyncStrategy) }
        cache = try ObjectCache(storage, scope: scope)
        settings = Locked(Settings(cache: cacheStrategy, delta: deltaSyncStrategy))
        self.scope = scope
        self.limits = limits
        self.transport = transport
    }

    /// Where the store reads. May be set at any time, from any task; a fetch that runs goes on as it began.
    public var cacheStrategy: CacheStrategy {
        get { settings.withLock { $0.cache } }
        set { settings.withLock { $0.cache = newValue } }
    }

    /// How the store tells the server what it holds. May be set at any time, from any task; what is kept serves either
    /// form.
    ///
    /// A setter cannot throw, so a strategy that finds no cache is refused by the next ``fetch(_:where:)`` or
    /// ``object(_:id:)``, before anything is sent.
    public var deltaSyncStrategy: DeltaSyncStrategy {
        get { settings.withLock { $0.delta } }
        set { settings.withLock { $0.delta = newValue } }
    }

    // MARK: Reading

    /// Fetches the objects of a class, or those of them that meet all filters.
    ///
    /// - Returns: the complete collection in the order of ids, whatever part of it has come.
    /// - Throws: ``ObjectStoreError``; `CancellationError` where the task was cancelled. A fetch that ends early makes
    ///   no later one skip anything.
    public func fetch(_ name: String, where filters: [ObjectFilter] = []) async throws -> [StoredObject] {
        let settings = try checkedSettings()
        let query = try ObjectQuery(name, filters)
        if settings.cache == .cacheElseNetwork, let kept = try await cache.collection(query) { return kept }
        return try await inTurn(name) { cache in
            if settings.cache == .networkOnly { return try await self.list(query) }
            do {
                try await self.refresh(query, settings.delta, in: cache)
                return try await cache.collection(query) ?? []
            } catch let error as ObjectStoreError where error.isOutage && settings.cache == .networkElseCache {
                guard let kept = try await cache.collection(query) else { throw error }
                return kept
            }
        }
    }

    /// The collection as it is in the cache, without a request: for a screen that is filled before a fetch ends.
    ///
    /// - Returns: `nil` where it was never fetched to its end.
    /// - Throws: ``ObjectStoreError``.
    public func cached(_ name: String, where filters: [ObjectFilter] = []) async throws -> [StoredObject]? {
        try await cache.collection(try ObjectQuery(name, filters))
    }

    /// One object, from where ``cacheStrategy`` says. An object that has left its last collection has left the cache.
    ///
    /// - Returns: `nil` where there is no such object (any more).
    /// - Throws: ``ObjectStoreError``; `CancellationError` where the task was cancelled.
    public func object(_ name: String, id: RecordID) async throws -> StoredObject? {
        let settings = try checkedSettings()
        _ = try ObjectQuery(name)
        if settings.cache == .cacheElseNetwork, let kept = try await cache.object(name, id) { return kept }
        return try await inTurn(name) { cache in
            do {
                let object = try await self.load(name, id)
                if settings.cache == .networkOnly { return object }
                if let object {
                    try await cache.take(object, of: name)
                } else {
                    try await cache.miss(id, of: name)
                }
                return object
            } catch let error as ObjectStoreError where error.isOutage && settings.cache == .networkElseCache {
                guard let kept = try await cache.object(name, id) else { throw error }
                return kept
            }
        }
    }

    /// Forgets everything that was fetched, as when another user signs in. A fetch that runs fails with `cacheCleared`.
    ///
    /// - Throws: ``ObjectStoreError`` `storageFailed`.
    public func removeAll() async throws { try await cache.removeAll() }

    // MARK: Turns

    private func checkedSettings() throws(ObjectStoreError) -> Settings {
        let settings = settings.withLock { $0 }
        if settings.cache == .networkOnly, settings.delta != .none { throw .deltaNeedsCache(settings.delta) }
        return settings
    }

    /// Takes one answer about a class at a time: an answer that was overtaken by a newer one would show deleted
    /// objects again.
    private func inTurn<Result: Sendable>(
        _ name: String, _ body: @Sendable (ObjectCache) async throws -> Result
    ) async throws -> Result {
        let mutex = turns.withLock { turns in
            let mutex = turns[name] ?? AsyncMutex()
            turns[name] = mutex
            return mutex
        }
        await mutex.lock()
        defer { mutex.unlock() }
        try Task.checkCancellation()
        return try await body(cache.forFetch())
    }
}
