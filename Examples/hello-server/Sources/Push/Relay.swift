import Foundation
import HTTPTypes
import Hummingbird

/// Which devices want to hear of which scope. A real service keeps them in its database, where devices put them.
public actor DeviceTokens {
    private var devices: [String: Set<String>]

    /// - Parameter devices: device tokens by scope.
    public init(_ devices: [String: Set<String>]) { self.devices = devices }

    /// The devices of a scope.
    public func devices(of scope: String) -> Set<String> { devices[scope] ?? [] }
    /// Forgets one of them.
    public func forget(_ device: String, of scope: String) { devices[scope]?.remove(device) }
}

/// `POST /tidemark`: a webhook comes in, pushes go out.
public func relay(secret: String, devices: DeviceTokens, push: BackgroundPush) -> Router<BasicRequestContext> {
    struct News: Decodable {
        var scope: String
        var head: Int64
    }
    let router = Router()
    router.post("tidemark") { request, _ -> HTTPResponse.Status in
        let signature = request.headers[HTTPField.Name("Tidemark-Signature") ?? .authorization] ?? ""
        var request = request
        let body = Data(buffer: try await request.collectBody(upTo: 4096))
        guard isSigned(signature, body: body, secret: secret) else { throw HTTPError(.unauthorized) }
        let news = try JSONDecoder().decode(News.self, from: body)
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for device in await devices.devices(of: news.scope) {
                    group.addTask {
                        if case .unknownDevice = try await push.send(to: device, scope: news.scope, head: news.head) {
                            await devices.forget(device, of: news.scope)
                        }
                    }
                }
                try await group.waitForAll()
            }
        } catch {
            // The webhook comes again. Devices that were told are told twice, which does no harm.
            throw HTTPError(.serviceUnavailable)
        }
        return .noContent
    }
    return router
}
