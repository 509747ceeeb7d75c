#if Server
    public import Foundation
    import JWTKit
    public import TidemarkServer
    import TidemarkWire

    /// The claims of a token: who it is, until when, and what may be done in which scopes (Protocol.md).
    public struct TokenClaims: Hashable, Sendable {
        /// How far a grant goes.
        public enum Grant: String, Hashable, Sendable, CaseIterable, Codable {
            /// Pull.
            case read = "r"
            /// Pull and push.
            case readWrite = "rw"
        }

        /// The principal that the token speaks for (`sub`).
        public var subject: String
        /// When it ends (`exp`).
        public var expires: Date
        /// Grants by scope pattern: a scope's exact name, or a beginning followed by `*`.
        public var scopes: [String: Grant]
        /// Whether it is one of the operator's own programs (`"role": "service"`).
        public var isService: Bool

        /// Makes claims from their parts.
        public init(subject: String, expires: Date, scopes: [String: Grant], isService: Bool = false) {
            self.subject = subject
            self.expires = expires
            self.scopes = scopes
            self.isService = isService
        }

        /// The token's access to a scope: the widest of the grants whose patterns match it.
        public func access(to scope: Scope) -> Access {
            let grants = scopes.filter { Self.matches($0.key, scope) }.values
            let level: Access.Level = grants.contains(.readWrite) ? .readWrite : grants.isEmpty ? .none : .read
            return Access(level, principal: subject, isService: isService, expires: expires)
        }

        /// The scope of a token that grants one by its name, and nothing else.
        public var onlyScope: Scope? { scopes.count == 1 ? scopes.keys.first.flatMap { Scope($0) } : nil }

        /// Whether a pattern is a scope's name, or the beginning of one followed by `*`. A sub-scope has its
        /// scope's permission, and none of its own.
        public static func isPattern(_ text: String) -> Bool {
            guard text.utf8.last == UInt8(ascii: "*") else { return isScope(text) }
            return text.utf8.count == 1 || isScope(String(text.dropLast()))
        }

        private static func isScope(_ text: String) -> Bool { Scope(text).map { $0.subscope == nil } ?? false }

        private static func matches(_ pattern: String, _ scope: Scope) -> Bool {
            guard pattern.utf8.last == UInt8(ascii: "*") else { return pattern.hasSameBytes(as: scope.name) }
            return scope.name.utf8.starts(with: pattern.utf8.dropLast())
        }
    }

    /// Why a secret cannot sign tokens. The description is safe to log: it holds nothing of the secret.
    public struct TokenSecretError: Error, Hashable, Sendable, CustomStringConvertible {
        /// The kind of an error, as a name that stays: compare it with the constants here, and treat others as your
        /// program treats an error that it does not know. A later version may add some.
        public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
            /// The name, such as `secret_too_short`.
            public var rawValue: String

            /// Makes a code from its name.
            public init(rawValue: String) { self.rawValue = rawValue }

            private init(_ rawValue: String) { self.rawValue = rawValue }

            /// The name.
            public var description: String { rawValue }

            /// The secret has fewer bytes than the mark that it makes; a key of that size can be guessed.
            public static let secretTooShort = Code("secret_too_short")

            /// All codes of this version, for documents and tests.
            public static let all: [Code] = [.secretTooShort]
        }

        /// The kind of the error.
        public var code: Code
        /// The error's context.
        public var detail: String
        /// The remedy, for people.
        public var hint: String

        /// Makes an error, for tests.
        public init(_ code: Code, _ detail: String, hint: String) {
            self.code = code
            self.detail = detail
            self.hint = hint
        }

        /// The error in one line, for a log.
        public var description: String { "\(code): \(detail) \(hint)" }
    }

    /// Signs tokens, with HS256.
    ///
    /// ```swift
    /// let claims = TokenClaims(subject: "ada", expires: .now + 3600, scopes: ["workspace:*": .readWrite])
    /// let token = try await TokenSigner(secret: secret).token(claims)
    /// ```
    public struct TokenSigner: Sendable {
        private let keys: JWTKeyCollection

        /// Makes a signer from a secret of at least 32 bytes.
        ///
        /// - Throws: ``TokenSecretError``.
        public init(secret: [UInt8]) async throws { keys = try await JWTKeyCollection(secret: secret) }

        /// The claims as a signed token.
        ///
        /// - Throws: JWTKit's error where the claims cannot be encoded.
        public func token(_ claims: TokenClaims) async throws -> String {
            try await keys.sign(TokenPayload(claims))
        }
    }

    /// Checks tokens: one algorithm, HS256, one key, and a time.
    public struct TokenVerifier: Sendable {
        private static let algorithm = "HS256"
        private let keys: JWTKeyCollection
        private let now: @Sendable () -> Date

        /// Makes a verifier from a secret of at least 32 bytes, and the clock that expiry is held against. The
        /// clock is asked on any thread.
        ///
        /// - Throws: ``TokenSecretError``.
        public init(secret: [UInt8], now: @escaping @Sendable () -> Date = { Date.now }) async throws {
            keys = try await JWTKeyCollection(secret: secret)
            self.now = now
        }

        /// The claims of a token, or `nil` for one that is malformed, altered, expired or signed otherwise.
        public func claims(of token: String) async -> TokenClaims? {
            guard hasExpectedAlgorithm(token), let payload = try? await keys.verify(token, as: TokenPayload.self) else {
                return nil
            }
            let moment = now().timeIntervalSince1970
            guard payload.exp > moment, payload.nbf ?? moment <= moment, !payload.sub.isEmpty else { return nil }
            return TokenClaims(
                subject: payload.sub, expires: Date(timeIntervalSince1970: payload.exp), scopes: payload.scopes,
                isService: payload.role == "service")
        }

        /// The header may not choose how the token is checked: anything but the one algorithm is refused (RFC 8725).
        private func hasExpectedAlgorithm(_ token: String) -> Bool {
            let parts = token.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.count == 3 else { return false }
            let text = parts[0].replacing("-", with: "+").replacing("_", with: "/")
            let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
            guard let header = Data(base64Encoded: text + padding) else { return false }
            return [UInt8](header).withUnsafeBytes { (try? Self.algorithm(in: $0)) == Self.algorithm }
        }

        private static func algorithm(in header: UnsafeRawBufferPointer) throws(JSONError) -> String? {
            var reader = JSONReader(header)
            var seen = MemberNames()
            var algorithm: String?
            try reader.enterObject()
            while let name = try reader.nextMember() {
                try seen.insert(name, of: reader)
                switch reader.string(name) {
                case "alg": algorithm = try reader.readString()
                case "crit": return nil
                default: try reader.skip()
                }
            }
            try reader.finish()
            return algorithm
        }
    }

    extension JWTKeyCollection {
        private static let secretBytes = 32

        fileprivate init(secret: [UInt8]) async throws(TokenSecretError) {
            guard secret.count >= Self.secretBytes else {
                throw TokenSecretError(
                    .secretTooShort, "The secret has \(secret.count) bytes.",
                    hint: "Take one of at least \(Self.secretBytes) random bytes.")
            }
            self.init()
            add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
        }
    }

    private struct TokenPayload: JWTPayload {
        var sub: String
        var exp: Double
        var nbf: Double?
        var scopes: [String: TokenClaims.Grant]
        var role: String?

        init(_ claims: TokenClaims) {
            sub = claims.subject
            exp = claims.expires.timeIntervalSince1970.rounded(.down)
            scopes = claims.scopes
            role = claims.isService ? "service" : nil
        }

        /// The signature is JWTKit's to check; times are held against the verifier's own clock.
        func verify(using algorithm: some JWTAlgorithm) throws {}
    }
#endif
