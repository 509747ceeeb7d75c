import Foundation
import Hummingbird
import Push

/// Turns Tidemark's webhooks into background pushes of Apple's: `Documentation/Webhooks.md`.
@main
struct PushRelay {
    static func main() async throws {
        let push = try BackgroundPush(
            host: setting("APNS_HOST"), topic: setting("APNS_TOPIC"), keyID: setting("APNS_KEY_ID"),
            teamID: setting("APNS_TEAM_ID"), key: String(contentsOfFile: setting("APNS_KEY_FILE"), encoding: .utf8))
        // {"user:ada": ["device token", …]}
        let devices = try JSONDecoder().decode(
            [String: Set<String>].self, from: Data(contentsOf: URL(filePath: setting("DEVICES_FILE"))))
        let router = relay(secret: try setting("WEBHOOK_SECRET"), devices: DeviceTokens(devices), push: push)
        try await Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 8081))
        ).runService()
    }

    private static func setting(_ name: String) throws -> String {
        guard let value = Environment().get(name) else { throw Missing(description: "set \(name)") }
        return value
    }

    struct Missing: Error, CustomStringConvertible { let description: String }
}
