#if Server
    import HTTPTypes
    import Hummingbird
    import NIOCore
    import TidemarkGzip
    import TidemarkServer
    import TidemarkWire

    /// The query of a pull, each member checked where it enters.
    struct SyncQuery {
        let scope: Scope
        let since: String?
        let limit: Int64?

        init(of request: Request) throws(Problem) {
            var members: [Substring: Substring] = [:]
            for (name, value) in request.uri.queryParameters where ["scope", "since", "limit"].contains(name) {
                guard members.updateValue(value, forKey: name) == nil else {
                    throw Problem(.malformedRequest, "In `\(name)`: a member given twice.")
                }
            }
            guard let name = members["scope"] else {
                throw Problem(.malformedRequest, "In `scope`: a required member is missing.")
            }
            guard let scope = Scope(String(name)) else {
                throw Problem(.invalidIdentifier, "In `scope`: a name that is not of the allowed form.")
            }
            self.scope = scope
            since = members["since"].map(String.init)
            limit = try members["limit"].map { text throws(Problem) in try Self.limit(text) }
        }

        private static func limit(_ text: Substring) throws(Problem) -> Int64 {
            if let limit = Int64(text) { return limit }
            let digits = text.first == "-" ? text.dropFirst() : text
            guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                throw Problem(.malformedRequest, "In `limit`: a number was expected.")
            }
            throw Problem(.limitOutOfRange, "In `limit`: a number outside its limits.")
        }
    }

    extension Request {
        /// The body of a push: JSON, plain or gzip, never more than `limit` bytes in memory.
        func syncBody(limit: Int) async throws -> [UInt8] {
            try checkContentType()
            let isCompressed = try isGzip()
            if let announced = headers[.contentLength].flatMap({ Int($0) }), announced > limit {
                throw Self.tooLarge("\(announced) bytes", limit)
            }
            let body: [UInt8]
            do {
                body = Array(try await self.body.collect(upTo: limit).readableBytesView)
            } catch is NIOTooManyBytesError {
                throw Self.tooLarge("more bytes", limit)
            }
            guard isCompressed else { return body }
            do {
                return try Gzip.decompress(body, limit: limit)
            } catch {
                switch error {
                case .corrupt: throw Problem(.malformedRequest, "The body is not gzip, or was cut on the way.")
                case .tooLarge: throw Self.tooLarge("more bytes, inflated,", limit)
                }
            }
        }

        private static func tooLarge(_ what: String, _ limit: Int) -> Problem {
            Problem(.requestTooLarge, "The body has \(what) where \(limit) are taken.")
        }

        private func checkContentType() throws(Problem) {
            guard let type = headers[.contentType] else { return }
            let essence = type.prefix { $0 != ";" }.filter { !$0.isWhitespace }.lowercased()
            guard essence == "application/json" else {
                throw Problem(.unsupportedEncoding, "The body's Content-Type has to be application/json.")
            }
        }

        private func isGzip() throws(Problem) -> Bool {
            switch headers[.contentEncoding]?.lowercased() {
            case nil, "", "identity": return false
            case "gzip", "x-gzip": return true
            default: throw Problem(.unsupportedEncoding, "The body's Content-Encoding has to be gzip, once, or absent.")
            }
        }
    }
#endif
