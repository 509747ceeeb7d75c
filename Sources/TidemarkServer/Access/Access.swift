public import Foundation
import TidemarkWire

/// A caller's permission in one scope: the answer to the one question that a host's authorisation has to decide.
public struct Access: Hashable, Sendable {
    /// How far the permission goes.
    public enum Level: Hashable, Sendable {
        /// Not at all; the caller learns nothing, not even whether the scope exists.
        case none
        /// Pull.
        case read
        /// Pull and push.
        case readWrite
    }

    /// A caller's name may have at most so many bytes of UTF-8, because it is part of keys in the store.
    public static let principalLimit = 255

    /// How far the permission goes.
    public var level: Level
    /// The caller's name, for example a token's `sub`, in at most ``principalLimit`` bytes of UTF-8. Operation keys
    /// belong to it: nobody replays another's.
    public var principal: String
    /// Whether this is one of the operator's own programs, which may write server-authoritative fields (E4).
    public var isService: Bool

    /// When it ends, for example with a token (`exp`); a stream ends with it. With `nil` a stream goes on as long as
    /// the host still grants it whenever it is asked again.
    public var expires: Date?

    /// Makes an access from its parts.
    public init(_ level: Level, principal: String, isService: Bool = false, expires: Date? = nil) {
        self.level = level
        self.principal = principal
        self.isService = isService
        self.expires = expires
    }

    /// No access.
    public static let none = Access(.none, principal: "")
    /// Pull only.
    public static func read(as principal: String) -> Access { Access(.read, principal: principal) }
    /// Pull and push.
    public static func readWrite(as principal: String) -> Access { Access(.readWrite, principal: principal) }

    func require(_ needed: Level, in scope: Scope) throws(Problem) {
        switch (level, needed) {
        case (.none, _): throw Problem(.scopeForbidden, "The token does not grant scope \(scope).")
        case (.read, .readWrite): throw Problem(.scopeReadOnly, "The token grants only reading in scope \(scope).")
        case (.read, _), (.readWrite, _): break
        }
        guard principal.utf8.count <= Self.principalLimit else {
            throw Problem(
                .invalidIdentifier,
                "In `sub` of the token: \(principal.utf8.count) bytes where \(Self.principalLimit) are taken.")
        }
    }
}
