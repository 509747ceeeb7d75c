import Crypto
import Foundation
import TidemarkHummingbird
import TidemarkServer

/// Access tokens.
enum Tokens {
    private static let secret = Array("not a secret: only fuzzing signs with it".utf8)
    private static let now = Date(timeIntervalSince1970: 1_700_000_000)

    /// A token that was not signed with the key lets nobody in, whatever its header says.
    static let checkForged: @Sendable ([UInt8]) async throws -> Void = { input in
        let verifier = try await TokenVerifier(secret: secret) { now }
        let isLetIn = await verifier.claims(of: String(decoding: input, as: UTF8.self)) != nil
        try hold(!isLetIn, "a token was forged")
        // One that was signed, and whose header was changed before that.
        let payload = Array(#"{"sub":"ada","exp":9999999999,"scopes":{"w":"r"}}"#.utf8)
        guard let claims = await verifier.claims(of: signed(input, payload)) else { return }
        try hold(claims.subject == "ada" && claims.scopes == ["w": .read], "the header speaks for the payload")
    }

    /// One that was signed, by an older or newer program, lets its owner in where it says.
    static let checkClaims: @Sendable ([UInt8]) async throws -> Void = { input in
        let verifier = try await TokenVerifier(secret: secret) { now }
        guard let claims = await verifier.claims(of: signed(Array(#"{"alg":"HS256","typ":"JWT"}"#.utf8), input)) else {
            return
        }
        try hold(!claims.subject.isEmpty, "nobody is let in")
        try hold(claims.expires > now, "a token that has ended is taken")
        for scope: Scope in ["w:1", "x"] where claims.access(to: scope).level != .none {
            let isNamed = claims.scopes.keys.contains { pattern in
                pattern == scope.name
                    || pattern.utf8.last == UInt8(ascii: "*") && scope.name.utf8.starts(with: pattern.utf8.dropLast())
            }
            try hold(isNamed, "\(scope) is granted, and named nowhere")
        }
    }

    private static func signed(_ header: [UInt8], _ payload: [UInt8]) -> String {
        let body = encoded(header) + "." + encoded(payload)
        let mark = HMAC<SHA256>.authenticationCode(for: Data(body.utf8), using: SymmetricKey(data: secret))
        return body + "." + encoded(Array(mark))
    }

    private static func encoded(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
