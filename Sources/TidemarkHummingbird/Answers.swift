#if Server
    import HTTPTypes
    import Hummingbird
    import NIOCore
    import TidemarkWire

    extension Response {
        /// Seconds that a caller is asked to wait where the problem itself does not say.
        private static let retryAfter = 5

        /// A JSON body, compressed where the caller takes that and it pays.
        static func json(_ body: [UInt8], status: HTTPResponse.Status = .ok, to request: Request) -> Response {
            var headers: HTTPFields = [.contentType: "application/json", .vary: "Accept-Encoding"]
            let coding = ContentCoding(of: body, accepting: request.headers[.acceptEncoding])
            let compressed = coding.encode(body)
            if compressed != nil { headers[.contentEncoding] = coding.rawValue }
            return Response(
                status: status, headers: headers, body: .init(byteBuffer: ByteBuffer(bytes: compressed ?? body)))
        }

        init(problem: Problem) {
            var headers: HTTPFields = [.contentType: Problem.contentType]
            switch problem.code {
            case .unauthenticated: headers[.wwwAuthenticate] = "Bearer"
            case .conflict, .preconditionFailed: headers[.eTag] = problem.recordTag.map { "\"\($0)\"" }
            case .uploadOffsetMismatch: headers[.uploadOffset] = problem.offset.map { String($0) }
            case .tooManyRequests, .unavailable:
                headers[.retryAfter] = String(problem.retryAfter ?? Self.retryAfter)
            default: break
            }
            self.init(
                status: HTTPResponse.Status(code: problem.code.status), headers: headers,
                body: .init(byteBuffer: ByteBuffer(bytes: problem.body())))
        }
    }
#endif
