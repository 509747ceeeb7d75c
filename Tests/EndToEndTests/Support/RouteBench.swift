#if Server
    import Foundation
    import HTTPTypes
    import Hummingbird
    import Logging
    import NIOCore
    import NIOEmbedded
    import Synchronization
    import TidemarkGzip
    import TidemarkHummingbird
    import TidemarkSQLite
    import TidemarkServer
    import TidemarkWire

    @testable import TidemarkCommand

    /// The routes of `tidemark serve` without a socket: a request goes in, an answer comes out.
    struct RouteBench: Sendable {
        let store: SQLiteStore
        private let responder: RouterResponder<SyncRequestContext>
        private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

        init(in folder: TemporaryFolder, entities: [EntityDeclaration]) async throws {
            store = try SQLiteStore(path: folder.path("sync.sqlite"))
            // Small enough that requests meet them.
            var limits = Limits()
            (limits.bodyBytes, limits.recordBytes, limits.pageBytes) = (64 << 10, 8 << 10, 16 << 10)
            (limits.digestScan, limits.digestParts, limits.digestRewind) = (50, 4, 200)
            responder = ServerApplication(
                server: SyncServer(store: store, entities: entities, limits: limits),
                verifier: try await TokenVerifier(secret: LiveServer.secret), logger: logger
            ).router.buildResponder()
        }

        /// An answer, inflated, and how long it took.
        struct Routed {
            var status: Int
            var headers: HTTPFields
            var bytes: [UInt8]
            var time: Duration

            var problem: Problem? { bytes.withUnsafeBytes { Problem(from: $0) } }

            func member(_ name: String) -> Any? {
                (try? JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])?[name]
            }
        }

        func send(_ request: GrownRequest) async throws -> Routed {
            let head = HTTPRequest(
                method: request.method, scheme: "http", authority: "localhost", path: request.path,
                headerFields: request.headers)
            let context = SyncRequestContext(
                source: ApplicationRequestContextSource(channel: EmbeddedChannel(), logger: logger))
            let clock = ContinuousClock()
            let start = clock.now
            let response = try await responder.respond(
                to: Request(head: head, body: RequestBody(buffer: ByteBuffer(bytes: request.body))), context: context)
            let body = Collected()
            try await response.body.write(body)
            let time = clock.now - start
            var bytes = body.bytes
            switch response.headers[.contentEncoding] {
            case "gzip": bytes = try Gzip.decompress(bytes, limit: 64 << 20)
            case "br": bytes = try BrotliDecoder.decompress(bytes, limit: 8 << 20)
            default: break
            }
            return Routed(status: response.status.code, headers: response.headers, bytes: bytes, time: time)
        }

        /// As a device would: with a token, and nothing broken.
        func get(_ path: String, token: String) async throws -> Routed {
            try await send(GrownRequest(path: path, headers: [.authorization: "Bearer \(token)"]))
        }

        func post(_ path: String, _ body: String, token: String) async throws -> Routed {
            let headers: HTTPFields = [.authorization: "Bearer \(token)", .contentType: "application/json"]
            return try await send(
                GrownRequest(method: .post, path: path, headers: headers, body: Array(body.utf8)))
        }
    }

    /// Takes an answer's body as it is written.
    private final class Collected: ResponseBodyWriter {
        private let parts = Mutex<[UInt8]>([])

        var bytes: [UInt8] { parts.withLock { $0 } }

        func write(_ buffer: ByteBuffer) async throws { parts.withLock { $0 += buffer.readableBytesView } }
        func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }
#endif
