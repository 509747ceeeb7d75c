import GRDB

/// Where a store reads: from the server, or from what it has kept.
public enum CacheStrategy: String, Hashable, Sendable, CaseIterable {
    /// From the server alone. Nothing is kept, and no delta strategy is possible.
    case networkOnly
    /// From the server, and what is new is kept; from the cache where the server cannot be reached.
    case networkElseCache
    /// From the cache where the collection or the object is in it, without a request; else from the server.
    case cacheElseNetwork
}

/// How a store tells the server what it holds, so that only what is new or changed comes.
public enum DeltaSyncStrategy: String, Hashable, Sendable, CaseIterable {
    /// Not at all: each fetch takes the complete list.
    case none
    /// As a map of ids to the times at which the objects were last modified. The most exact form, for collections of
    /// up to some 200 objects; where the map would be larger than a header may be, the fetch sends the time instead.
    case objectBased
    /// As one time for each collection, that of its last fetch. The header is small, however large the collection is.
    case collectionBased
}

/// Where a store keeps what it has fetched.
public enum ObjectStorage: Hashable, Sendable {
    /// In memory: gone with the store.
    case inMemory
    /// In a SQLite file of the store's own. One store at a time may use it, on behalf of one user.
    case persistent(path: String)
}

extension ObjectStorage {
    func open() throws -> DatabaseQueue {
        switch self {
        case .inMemory: try DatabaseQueue()
        case .persistent(let path): try DatabaseQueue(path: path)
        }
    }
}

/// The bounds of what a store sends and takes.
public struct ObjectLimits: Hashable, Sendable {
    /// Objects on a page that are asked for.
    public var pageObjects = 500
    /// Pages of one fetch.
    public var pages = 1000
    /// Bytes of one answer, inflated.
    public var answerBytes = 16 << 20
    /// Bytes of the `x-apiomat-delta` header: a larger map is not sent.
    public var deltaHeaderBytes = 8 << 10

    /// The defaults.
    public init() {}
}
