import Foundation
import JWTKit

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// snippet: webhook-apns
/// Wakes an app that is not running, by a background push: it shows nothing, and carries no data of the user's.
public actor BackgroundPush {
    /// What became of a push.
    public enum Outcome: Sendable {
        /// Apple has it.
        case sent
        /// The app was removed, or the token was never one: forget it.
        case unknownDevice
    }

    /// Apple does not take it now: the webhook should come again.
    public struct Busy: Error {
        /// Of HTTP.
        public let status: Int
    }

    /// Apple wants the same token for 20 to 60 minutes.
    private static let tokenLife: TimeInterval = 40 * 60

    private let host, topic, keyID, teamID: String
    private let key: ES256PrivateKey
    private var token: (text: String, made: Date)?

    /// - Parameters:
    ///   - host: `https://api.push.apple.com`, or `https://api.sandbox.push.apple.com` for builds from Xcode.
    ///   - topic: the app's bundle identifier.
    ///   - key: the text of the `.p8` file.
    public init(host: String, topic: String, keyID: String, teamID: String, key: String) throws {
        (self.host, self.topic, self.keyID, self.teamID) = (host, topic, keyID, teamID)
        self.key = try ES256PrivateKey(pem: key)
    }

    /// Sends one push. Throws where it may be taken later.
    public func send(to device: String, scope: String, head: Int64) async throws -> Outcome {
        guard let url = URL(string: "\(host)/3/device/\(device)") else { return .unknownDevice }
        var request = URLRequest(url: url, timeoutInterval: 8)
        request.httpMethod = "POST"
        request.setValue("bearer \(try await currentToken())", forHTTPHeaderField: "authorization")
        request.setValue(topic, forHTTPHeaderField: "apns-topic")
        request.setValue("background", forHTTPHeaderField: "apns-push-type")
        request.setValue("5", forHTTPHeaderField: "apns-priority")
        // For an hour, and of one scope the newest only.
        let expiration = Int(Date.now.timeIntervalSince1970) + 3600
        request.setValue("\(expiration)", forHTTPHeaderField: "apns-expiration")
        if scope.utf8.count <= 64 { request.setValue(scope, forHTTPHeaderField: "apns-collapse-id") }
        request.httpBody = Data(#"{"aps":{"content-available":1},"scope":"\#(scope)","head":\#(head)}"#.utf8)
        let (body, answer) = try await URLSession.shared.data(for: request)
        let status = (answer as? HTTPURLResponse)?.statusCode ?? 0
        let text = String(decoding: body, as: UTF8.self)
        switch status {
        case 200: return .sent
        case 410: return .unknownDevice
        case 400 where text.contains("BadDeviceToken"): return .unknownDevice
        case 403:
            // The token has ended, or is not taken: the next push brings another one.
            token = nil
            throw Busy(status: 403)
        default: throw Busy(status: status)
        }
    }

    private func currentToken() async throws -> String {
        if let token, token.made.timeIntervalSinceNow > -Self.tokenLife { return token.text }
        let keys = await JWTKeyCollection().add(ecdsa: key, kid: JWKIdentifier(string: keyID))
        // Apple takes whole seconds.
        let made = Date(timeIntervalSince1970: Date.now.timeIntervalSince1970.rounded(.down))
        let claims = ProviderClaims(iss: IssuerClaim(value: teamID), iat: IssuedAtClaim(value: made))
        let text = try await keys.sign(claims, kid: JWKIdentifier(string: keyID))
        token = (text, made)
        return text
    }
}

struct ProviderClaims: JWTPayload {
    var iss: IssuerClaim
    var iat: IssuedAtClaim

    func verify(using algorithm: some JWTAlgorithm) throws {}
}
// end snippet
