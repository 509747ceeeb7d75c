#if Server
    import Foundation
    import HTTPTypes
    import Hummingbird
    import NIOCore
    import NIOHTTP1
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkTesting

    /// A cache for many readers before a server, as small as one can be: what says `public` it keeps under its address
    /// and coding, all else it asks for.
    final class CachingProxy: Sendable {
        /// One request that came to it.
        struct Seen: Sendable {
            var path: String
            var status: Int
            var isHit: Bool
            var hasToken: Bool
        }

        /// What stands in the way of a page.
        typealias Fault = @Sendable (_ path: String, _ page: Answer) throws -> Answer

        private let seen = Guarded<[Seen]>([])
        private let kept = Guarded<[String: Answer]>([:])
        private let fault = Guarded<Fault?>(nil)
        private let origin: Caller

        private init(before url: String) { origin = Caller(url: url) }

        /// Runs one on a free port for as long as `body` runs.
        static func run<Result: Sendable>(
            before url: String, _ body: @Sendable (CachingProxy, _ url: String) async throws -> Result
        ) async throws -> Result {
            let proxy = CachingProxy(before: url)
            let router = Router(context: SyncRequestContext.self)
            router.add(middleware: Forwarding(proxy: proxy))
            // The engine behind this router is never reached.
            return try await LiveServer.serve(SyncServer(store: MemoryStore(seed: 1)), router: router) { live in
                try await body(proxy, live.url)
            }
        }

        /// What came so far, for addresses of pages or for all.
        func requests(for prefix: String = "/sync/pages/") -> [Seen] {
            seen.withLock { $0 }.filter { $0.path.hasPrefix(prefix) }
        }

        func failPages(_ fault: @escaping Fault) { self.fault.withLock { $0 = fault } }

        private struct Forwarding: RouterMiddleware {
            let proxy: CachingProxy

            func handle(
                _ request: Request, context: SyncRequestContext,
                next: (Request, SyncRequestContext) async throws -> Response
            ) async throws -> Response {
                try await proxy.answer(request)
            }
        }

        private func answer(_ request: Request) async throws -> Response {
            let path = request.uri.string
            let key = "\(path) \(request.headers[.acceptEncoding] ?? "")"
            let hit = request.method == .get ? kept.withLock { $0[key] } : nil
            var answer = hit
            if answer == nil {
                let headers = request.headers.filter { ![.connection, .contentLength].contains($0.name) }
                    .map { ($0.name.rawName, $0.value) }
                let body = try await request.body.collect(upTo: 64 << 20)
                answer = try await origin.send(
                    HTTPMethod(rawValue: request.method.rawValue), path,
                    request.method == .get ? nil : Array(body.readableBytesView), headers)
            }
            guard var answer else { throw HTTPError(.badGateway) }
            if let fault = fault.withLock({ $0 }), path.hasPrefix("/sync/pages/") { answer = try fault(path, answer) }
            let status = answer.status
            let isKept = status == 200 && answer.headers.first(name: "Cache-Control")?.hasPrefix("public") == true
            if isKept, request.method == .get { kept.withLock { [answer] in $0[key] = answer } }
            seen.withLock {
                $0.append(
                    Seen(
                        path: path, status: status, isHit: hit != nil, hasToken: request.headers[.authorization] != nil)
                )
            }
            var headers: HTTPFields = [:]
            for (name, value) in answer.headers {
                guard let field = HTTPField.Name(name), ![.contentLength, .connection].contains(field),
                    name.lowercased() != "transfer-encoding"
                else { continue }
                headers[field] = value
            }
            return Response(
                status: HTTPResponse.Status(code: status), headers: headers,
                body: .init(byteBuffer: ByteBuffer(bytes: answer.bytes)))
        }
    }
#endif
