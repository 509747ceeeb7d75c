#if Server
    import Foundation
    import HTTPTypes
    import Hummingbird
    import Logging
    import NIOCore
    import ServiceLifecycle
    import Testing
    import Tidemark
    import TidemarkAsyncHTTPClient

    /// Bytes that are not JSON over both transports and real HTTP: as attachments travel.
    @Suite(.serialized) struct ByteTransportTests {
        /// Bytes that gzip would make small, and that begin as gzip does.
        private static let bytes = [0x1f, 0x8b] + [UInt8](repeating: 7, count: 100_000)

        private func withServer(_ body: @Sendable (URL) async throws -> Void) async throws {
            let router = Router()
            router.put("blob") { request, _ in
                var request = request
                let buffer = try await request.collectBody(upTo: 1 << 20)
                var headers = HTTPFields()
                for name in [
                    HTTPField.Name.contentEncoding, .contentLength, .contentType, .contentRange, .acceptEncoding,
                    .authorization,
                ] {
                    if let value = request.headers[name], let echo = HTTPField.Name("X-\(name.rawName)") {
                        headers[echo] = value
                    }
                }
                return Response(status: .accepted, headers: headers, body: .init(byteBuffer: buffer))
            }
            router.head("blob") { _, _ in
                Response(status: .ok, headers: [.contentLength: "5000", .eTag: "\"x\""], body: .init())
            }
            let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
            let app = Application(
                router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
                onServerRunning: { continuation.yield($0.localAddress?.port ?? 0) },
                logger: Logger(label: "bytes") { _ in SwiftLogNoOpLogHandler() })
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await app.run() }
                var iterator = ports.makeAsyncIterator()
                let port = await iterator.next() ?? 0
                try await body(try #require(URL(string: "http://127.0.0.1:\(port)")))
                group.cancelAll()
            }
        }

        private static func transports(_ root: URL) -> [any Transport] {
            [HTTPTransport(root) { "t" }, AsyncHTTPClientTransport(root) { "t" }]
        }

        @Test(.timeLimit(.minutes(2))) func bytesGoAndComeAsTheyAre() async throws {
            try await withServer { root in
                for transport in Self.transports(root) {
                    var request = TransportRequest(
                        method: "PUT", path: "/blob",
                        headers: ["Content-Type": "application/octet-stream", "Content-Range": "bytes 0-9/10"],
                        body: Self.bytes)
                    request.carriesBytes = true
                    let answer = try await transport.send(request)
                    #expect(answer.status == 202)
                    #expect(answer.body == Self.bytes)
                    #expect(answer.header("X-Content-Type") == "application/octet-stream")
                    #expect(answer.header("X-Content-Range") == "bytes 0-9/10")
                    #expect(answer.header("X-Content-Encoding") == nil)
                    #expect(answer.header("X-Accept-Encoding") == "identity")
                    #expect(answer.header("X-Authorization") == "Bearer t")
                    #expect(answer.bytesSent == Self.bytes.count)
                }
            }
        }

        @Test(.timeLimit(.minutes(2))) func headAndABodyOfNothing() async throws {
            try await withServer { root in
                for transport in Self.transports(root) {
                    var request = TransportRequest(method: "HEAD", path: "/blob")
                    request.carriesBytes = true
                    let answer = try await transport.send(request)
                    #expect(answer.status == 200)
                    #expect(answer.header("ETag") == "\"x\"")
                    #expect(answer.body.isEmpty && answer.bytesReceived == 0)
                    request.method = "PUT"
                    let empty = try await transport.send(request)
                    #expect(empty.status == 202 && empty.body.isEmpty)
                    #expect(empty.header("X-Content-Length") == "0", "A server wants to know that there are none.")
                }
            }
        }
    }
#endif
