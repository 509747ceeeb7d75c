import GRDB
import TidemarkWire

/// Why a store has no answer. The description is safe to show and to log: it holds no objects, SQL or token.
public struct ObjectStoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error, as a name that stays: compare it with the constants here, and treat others as your app
    /// treats an error that it does not know. A later version may add some.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The name, such as `network_unavailable`.
        public var rawValue: String

        /// Makes a code from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ rawValue: String) { self.rawValue = rawValue }

        /// The name.
        public var description: String { rawValue }

        /// A delta strategy is set, and the cache strategy keeps nothing that a delta could be drawn from.
        public static let deltaNeedsCache = Code("delta_needs_cache")
        /// The name of the class, or a filter, is not of the allowed form.
        public static let queryInvalid = Code("query_invalid")
        /// No answer came.
        public static let networkUnavailable = Code("network_unavailable")
        /// The server is busy, starting, stopping, or has failed.
        public static let serverUnavailable = Code("server_unavailable")
        /// Something answered, but not as this server does: a captive portal, a proxy, a cut or foreign answer.
        public static let answerUnusable = Code("answer_unusable")
        /// The token is missing, bad or expired.
        public static let unauthenticated = Code("unauthenticated")
        /// The token does not grant the scope.
        public static let forbidden = Code("forbidden")
        /// The server takes no header of this size, not even that of the time form.
        public static let headerTooLarge = Code("header_too_large")
        /// The server cannot say any more what has changed, not even to a fetch that takes the complete list.
        public static let checkpointExpired = Code("checkpoint_expired")
        /// The server refuses the request as it stands; the detail says why.
        public static let requestRefused = Code("request_refused")
        /// The answer is beyond one of the store's limits.
        public static let limitExceeded = Code("limit_exceeded")
        /// `removeAll()` was called while the fetch ran; nothing of its answer was kept.
        public static let cacheCleared = Code("cache_cleared")
        /// The store's own file failed.
        public static let storageFailed = Code("storage_failed")

        /// All codes of this version, for documents and tests.
        public static let all: [Code] = [
            .deltaNeedsCache, .queryInvalid, .networkUnavailable, .serverUnavailable, .answerUnusable, .unauthenticated,
            .forbidden, .headerTooLarge, .checkpointExpired, .requestRefused, .limitExceeded, .cacheCleared,
            .storageFailed,
        ]
    }

    /// The kind of the error.
    public var code: Code
    /// The error's context.
    public var detail: String
    /// The remedy, for people.
    public var hint: String

    /// Makes an error, for previews and tests.
    public init(_ code: Code, _ detail: String, hint: String) {
        self.code = code
        self.detail = detail
        self.hint = hint
    }

    /// The error in one line, for a log or a screen.
    public var description: String { "\(code): \(detail) \(hint)" }

    /// Whether the cache may stand in for the answer.
    var isOutage: Bool { code == .networkUnavailable || code == .serverUnavailable }
}

extension ObjectStoreError {
    static func deltaNeedsCache(_ strategy: DeltaSyncStrategy) -> ObjectStoreError {
        ObjectStoreError(
            .deltaNeedsCache,
            "The delta strategy `\(strategy.rawValue)` needs what the cache strategy `networkOnly` does not keep.",
            hint: "Set `cacheStrategy` to `.networkElseCache`, or `deltaSyncStrategy` to `.none`.")
    }

    static func unusable(_ detail: String) -> ObjectStoreError {
        ObjectStoreError(.answerUnusable, detail, hint: "See whether the address is that of the server's root.")
    }

    static func expired(_ detail: String) -> ObjectStoreError {
        ObjectStoreError(.checkpointExpired, detail, hint: "Take the complete list.")
    }

    /// An answer that is not a success.
    init(_ response: TransportResponse) {
        let problem = response.body.withUnsafeBytes { Problem(from: $0) }
        let detail = problem.map { $0.detail.isEmpty ? $0.code.title : $0.detail }
        self.init(
            Self.code(response.status, problem?.code), detail ?? "The answer's status is \(response.status).",
            hint: problem?.code.hint ?? "See whether something stands between this device and the server.")
    }

    /// A proxy may refuse a header before the server sees it, so 431 counts without the server's words. What would
    /// drop objects does not.
    private static func code(_ status: Int, _ problem: ProblemCode?) -> Code {
        switch (status, problem) {
        case (401, _): .unauthenticated
        case (403, _): .forbidden
        case (431, _): .headerTooLarge
        case (_, .checkpointExpired): .checkpointExpired
        case (500..., _), (408, _), (425, _), (429, _): .serverUnavailable
        case (400..<500, .some): .requestRefused
        default: .answerUnusable
        }
    }

    init(_ error: DatabaseError) {
        let told = SyncError(error)
        self.init(
            .storageFailed, told.detail,
            hint: "The file holds nothing but copies: where it is damaged, delete it. \(told.hint)")
    }
}
