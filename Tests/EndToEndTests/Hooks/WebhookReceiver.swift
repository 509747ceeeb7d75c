#if Server
    import Foundation
    import HTTPTypes
    import Hummingbird
    import Logging
    import NIOCore
    import ServiceLifecycle
    import Synchronization
    import Testing
    import TidemarkHummingbird

    /// A receiver of webhooks on loopback, which answers as a test says.
    final class WebhookReceiver: Sendable {
        enum Reply: Sendable {
            case status(Int, retryAfter: String? = nil)
            case redirect(String)
            /// There is none while the receiver runs.
            case never
        }

        struct Call: Sendable {
            let headers: [String: String]
            let body: String
            fileprivate(set) var isTaken = false

            var members: [String: Any] {
                (try? JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]) ?? [:]
            }
            var scope: String { members["scope"] as? String ?? "" }
            var head: Int { members["head"] as? Int ?? 0 }
        }

        private struct Cut: Error {}

        private struct State {
            var calls: [Call] = []
            var reply: @Sendable (Call, Int) -> Reply = { _, _ in .status(200) }
        }

        private let state = Mutex(State())
        private let bound = Mutex(0)

        var port: Int { bound.withLock { $0 } }
        var url: String { "http://127.0.0.1:\(port)/hook" }
        var calls: [Call] { state.withLock { $0.calls } }

        /// - Parameter reply: by the call, and how many there were for its scope with it.
        func answer(_ reply: @escaping @Sendable (Call, Int) -> Reply) { state.withLock { $0.reply = reply } }

        /// Waits for the first call that is as it should be.
        func call(_ isIt: (Call) -> Bool) async throws -> Call {
            var found: Call?
            try await poll {
                found = calls.first(where: isIt)
                return found != nil
            }
            return try #require(found)
        }

        static func run(
            at port: Int = 0, _ body: @Sendable (WebhookReceiver) async throws -> Void
        ) async throws {
            let receiver = WebhookReceiver()
            let router = Router()
            router.post("hook") { request, _ in try await receiver.reply(to: request) }
            let logger = Logger(label: "receiver") { _ in SwiftLogNoOpLogHandler() }
            let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
            let app = Application(
                router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)),
                onServerRunning: { continuation.yield($0.localAddress?.port ?? 0) }, logger: logger)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    defer { continuation.finish() }
                    try await app.run()
                }
                guard let port = await ports.first(where: { _ in true }) else { return try await group.waitForAll() }
                receiver.bound.withLock { $0 = port }
                try await body(receiver)
                group.cancelAll()
            }
        }

        static func runTwo(
            _ body: @Sendable (WebhookReceiver, WebhookReceiver) async throws -> Void
        ) async throws {
            try await run { one in try await run { two in try await body(one, two) } }
        }

        private func reply(to request: Request) async throws -> Response {
            var request = request
            let buffer = try await request.collectBody(upTo: 1 << 20)
            let headers = request.headers.map { ($0.name.canonicalName, $0.value) }
            let call = Call(headers: Dictionary(headers) { $1 }, body: String(buffer: buffer))
            let (reply, index) = state.withLock { state in
                state.calls.append(call)
                return (
                    state.reply(call, state.calls.count { $0.scope == call.scope }), state.calls.count - 1
                )
            }
            switch reply {
            case .status(let status, let retryAfter):
                if status < 300 { state.withLock { $0.calls[index].isTaken = true } }
                var headers = HTTPFields()
                if let retryAfter { headers[.retryAfter] = retryAfter }
                return Response(status: .init(code: status), headers: headers)
            case .redirect(let url): return Response(status: .temporaryRedirect, headers: [.location: url])
            case .never:
                try await Task.sleep(for: .seconds(86_400))
                throw Cut()
            }
        }
    }
#endif
