#if Server
    import AsyncHTTPClient
    import Foundation
    import NIOCore
    import NIOHTTP1
    import Synchronization
    import Testing

    /// A stream of server-sent events that somebody reads, kept as text.
    final class OpenEvents: Sendable {
        /// One block of the stream.
        struct Event: Sendable {
            let text: String

            static func changes(_ scope: String, _ head: Int) -> Event {
                Event(text: "event: changes\ndata: {\"scope\":\"\(scope)\",\"head\":\(head)}\n\n")
            }
        }

        private struct State {
            var text = ""
            var isEnded = false
        }

        private static let client = HTTPClient(eventLoopGroupProvider: .singleton)
        private static let patience: Duration = .seconds(60)

        let status: Int
        let contentType: String
        private let state = Mutex(State())
        private let reader = Mutex<Task<Void, Never>?>(nil)

        init(_ live: LiveServer, _ query: String, _ token: String?) async throws {
            var request = HTTPClientRequest(url: live.url + "/sync/events?" + query)
            if let token { request.headers.add(name: "Authorization", value: "Bearer \(token)") }
            let response = try await Self.client.execute(request, deadline: .distantFuture)
            status = Int(response.status.code)
            contentType = response.headers.first(name: "Content-Type") ?? ""
            let task = Task { [weak self] in
                do {
                    for try await part in response.body {
                        self?.state.withLock { $0.text += String(buffer: part) }
                    }
                } catch {
                    // Cut off is at its end too.
                }
                self?.state.withLock { $0.isEnded = true }
            }
            reader.withLock { $0 = task }
        }

        deinit { close() }

        /// Hangs up.
        func close() { reader.withLock { $0?.cancel() } }

        var text: String { state.withLock { $0.text } }
        var isEnded: Bool { state.withLock { $0.isEnded } }

        func wait(for event: Event) async throws { try await wait { $0.contains(event.text) } }

        func wait(until isThere: (String) -> Bool) async throws {
            let deadline = ContinuousClock.now + Self.patience
            while !isThere(text) {
                guard ContinuousClock.now < deadline else {
                    Issue.record("It has not come: \(text.suffix(500))")
                    return
                }
                try await Task.sleep(for: .milliseconds(10))
            }
        }

        func waitForEnd() async throws { try await poll { isEnded } }
    }
#endif
