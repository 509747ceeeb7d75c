import Crypto
import Foundation
import HTTPTypes
import Hummingbird
import JWTKit
import Push

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sends signed webhooks to the relay, and stands in for Apple's servers: looks at each header, the token's signature
/// and the body of what arrives. Ends with an error at the first difference.
@main
struct PushCheck {
    static let secret = "0123456789abcdef0123456789abcdef"

    static func main() async throws {
        let key = ES256PrivateKey()
        let apple = FakeApple(key: key.publicKey)
        try await serve(apple.router) { applePort in
            let push = try BackgroundPush(
                host: "http://127.0.0.1:\(applePort)", topic: "org.example.app", keyID: "KEY1234567",
                teamID: "TEAM123456", key: key.pemRepresentation)
            let devices = DeviceTokens(["user:ada": ["aa11", "gone"]])
            try await serve(relay(secret: secret, devices: devices, push: push)) { port in
                try await play(port, apple, devices)
            }
        }
        print("push-relay: pushes arrive as Apple's documentation asks for them")
    }

    private static func play(_ port: Int, _ apple: FakeApple, _ devices: DeviceTokens) async throws {
        let body = #"{"scope":"user:ada","head":7,"changes":1,"time":1767225600000}"#
        try await expect(post(body, signature(body), port) == 204, "a signed webhook is taken")
        try await expect(apple.pushes == ["aa11"], "a push arrives")
        try await expect(devices.devices(of: "user:ada") == ["aa11"], "a device that is gone is forgotten")
        try await expect(post(body + " ", signature(body), port) == 401, "an altered body is refused")
        try await expect(post(body, signature(body, -301), port) == 401, "an old signature is refused")
        try await expect(post(body, "", port) == 401, "none is refused")
        await apple.answer(.tooManyRequests)
        try await expect(post(body, signature(body), port) == 503, "what Apple does not take comes again")
        try await expect(apple.complaints == [], "\(await apple.complaints)")
    }

    private static func signature(_ body: String, _ seconds: Int = 0) -> String {
        let time = Int(Date.now.timeIntervalSince1970) + seconds
        let mark = HMAC<SHA256>.authenticationCode(
            for: Data("\(time).\(body)".utf8), using: SymmetricKey(data: Data(secret.utf8)))
        return "t=\(time),v1=" + mark.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    private static func post(_ body: String, _ signature: String, _ port: Int) async throws -> Int {
        guard let url = URL(string: "http://127.0.0.1:\(port)/tidemark") else { return 0 }
        var request = URLRequest(url: url, timeoutInterval: 20)
        request.httpMethod = "POST"
        request.setValue(signature, forHTTPHeaderField: "Tidemark-Signature")
        request.httpBody = Data(body.utf8)
        return (try await URLSession.shared.data(for: request).1 as? HTTPURLResponse)?.statusCode ?? 0
    }

    private static func expect(_ isSo: Bool, _ what: String) throws {
        guard isSo else { throw Difference(description: "push-relay: not so: \(what)") }
    }

    struct Difference: Error, CustomStringConvertible { let description: String }

    /// Runs a server on a free port for as long as the body runs.
    private static func serve(
        _ router: Router<BasicRequestContext>, _ body: @escaping @Sendable (Int) async throws -> Void
    ) async throws {
        let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
        let app = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { continuation.yield($0.localAddress?.port ?? 0) })
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await app.run() }
            for await port in ports {
                try await body(port)
                break
            }
            group.cancelAll()
        }
    }
}

/// What Apple's servers look at.
actor FakeApple {
    private let key: ES256PublicKey
    private(set) var pushes: [String] = []
    private(set) var complaints: [String] = []
    private var next: HTTPResponse.Status?

    init(key: ES256PublicKey) { self.key = key }

    func answer(_ status: HTTPResponse.Status) { next = status }

    nonisolated var router: Router<BasicRequestContext> {
        let router = Router()
        router.post("3/device/:token") { request, context -> HTTPResponse.Status in
            var request = request
            let body = try await request.collectBody(upTo: 4096)
            return await self.take(
                try context.parameters.require("token"), request.headers, Data(buffer: body))
        }
        return router
    }

    private func take(_ device: String, _ headers: HTTPFields, _ body: Data) async -> HTTPResponse.Status {
        func header(_ name: String) -> String? { HTTPField.Name(name).flatMap { headers[$0] } }
        let wanted = [
            ("apns-push-type", "background"), ("apns-priority", "5"), ("apns-topic", "org.example.app"),
            ("apns-collapse-id", "user:ada"),
        ]
        for (name, value) in wanted where header(name) != value { complaints.append("\(name): \(header(name) ?? "-")") }
        let members = try? JSONSerialization.jsonObject(with: body) as? [String: Any]
        if (members?["aps"] as? [String: Int]) != ["content-available": 1] || members?["head"] as? Int != 7 {
            complaints.append(String(decoding: body, as: UTF8.self))
        }
        do { try await check(header("authorization") ?? "") } catch { complaints.append("token: \(error)") }
        if let next { return next }
        guard device == "aa11" else { return .gone }
        pushes.append(device)
        return .ok
    }

    private struct Claims: JWTPayload {
        var iss: String
        var iat: Int

        func verify(using algorithm: some JWTAlgorithm) throws {
            guard iss == "TEAM123456", abs(Double(iat) - Date.now.timeIntervalSince1970) < 3600 else {
                throw PushCheck.Difference(description: "\(iss) at \(iat)")
            }
        }
    }

    private func check(_ authorization: String) async throws {
        guard authorization.hasPrefix("bearer ") else { throw PushCheck.Difference(description: "no bearer") }
        let text = String(authorization.dropFirst(7))
        let keys = JWTKeyCollection()
        await keys.add(ecdsa: key, kid: "KEY1234567")
        _ = try await keys.verify(text, as: Claims.self)
        let head = text.prefix { $0 != "." }.replacing("-", with: "+").replacing("_", with: "/")
        let padded = String(head) + String(repeating: "=", count: (4 - head.count % 4) % 4)
        let members = Data(base64Encoded: padded).flatMap { try? JSONSerialization.jsonObject(with: $0) }
        let header = members as? [String: String]
        guard header?["alg"] == "ES256", header?["kid"] == "KEY1234567" else {
            throw PushCheck.Difference(description: "\(header ?? [:])")
        }
    }
}
