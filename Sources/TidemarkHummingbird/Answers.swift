#if Server
    import HTTPTypes
    import Hummingbird
    import NIOCore
    import TidemarkGzip
    import TidemarkWire

    extension Response {
        /// Seconds that a caller is asked to wait where the problem itself does not say.
        private static let retryAfter = 5

        /// A JSON body, compressed where the caller takes gzip and it pays.
        static func json(_ body: [UInt8], status: HTTPResponse.Status = .ok, to request: Request) -> Response {
            var headers: HTTPFields = [.contentType: "application/json", .vary: "Accept-Encoding"]
            guard isCompressed(body, to: request) else {
                return Response(status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: body)))
            }
            headers[.contentEncoding] = "gzip"
            let compressed = ByteBuffer(bytes: Gzip.compress(body))
            return Response(status: status, headers: headers, body: .init(byteBuffer: compressed))
        }

        static func isCompressed(_ body: [UInt8], to request: Request) -> Bool {
            body.count >= Gzip.threshold && AcceptedEncodings(request.headers[.acceptEncoding]).allowsGzip
        }

        init(problem: Problem) {
            var headers: HTTPFields = [.contentType: Problem.contentType]
            switch problem.code {
            case .unauthenticated: headers[.wwwAuthenticate] = "Bearer"
            case .conflict, .preconditionFailed: headers[.eTag] = problem.recordTag.map { "\"\($0)\"" }
            case .tooManyRequests, .unavailable:
                headers[.retryAfter] = String(problem.retryAfter ?? Self.retryAfter)
            default: break
            }
            self.init(
                status: HTTPResponse.Status(code: problem.code.status), headers: headers,
                body: .init(byteBuffer: ByteBuffer(bytes: problem.body())))
        }
    }

    /// The `Accept-Encoding` header, as far as gzip is concerned (RFC 9110, 12.5.3).
    struct AcceptedEncodings {
        private(set) var allowsGzip = false

        init(_ header: String?) {
            guard let header else { return }
            var anything: Bool?
            for part in header.split(separator: ",") {
                let words = part.split(separator: ";").map { $0.filter { !$0.isWhitespace }.lowercased() }
                guard let coding = words.first else { continue }
                let weight = words.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
                if coding == "gzip" || coding == "x-gzip" {
                    allowsGzip = weight > 0
                    return
                }
                if coding == "*" { anything = weight > 0 }
            }
            allowsGzip = anything ?? false
        }
    }
#endif
