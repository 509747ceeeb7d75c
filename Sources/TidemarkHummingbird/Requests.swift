#if Server
    import HTTPTypes
    import Hummingbird
    import NIOCore
    import TidemarkGzip
    import TidemarkServer
    import TidemarkWire

    /// The query of a read, each member checked where it enters. Members that no route knows are passed over.
    struct SyncQuery {
        let scope: Scope
        private var members: [Substring: [Substring]] = [:]

        init(of request: Request) throws(Problem) {
            for (name, value) in request.uri.queryParameters { members[name, default: []].append(value) }
            guard let name = try Self.only("scope", members) else {
                throw Problem(.malformedRequest, "In `scope`: a required member is missing.")
            }
            guard let scope = Scope(name) else {
                throw Problem(.invalidIdentifier, "In `scope`: a name that is not of the allowed form.")
            }
            self.scope = scope
        }

        /// A member that may stand once.
        func text(_ name: Substring) throws(Problem) -> String? { try Self.only(name, members) }

        /// A member that may stand several times, in its order.
        func texts(_ name: Substring) -> [String] { (members[name] ?? []).map { String($0) } }

        func number(_ name: Substring) throws(Problem) -> Int64? {
            guard let text = try text(name) else { return nil }
            if let number = Int64(text) { return number }
            let digits = text.first == "-" ? text.dropFirst() : text[...]
            guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                throw Problem(.malformedRequest, "In `\(name)`: a number was expected.")
            }
            throw Problem(.limitOutOfRange, "In `\(name)`: a number outside its limits.")
        }

        private static func only(
            _ name: Substring, _ members: [Substring: [Substring]]
        ) throws(Problem) -> String? {
            let values = members[name] ?? []
            guard values.count <= 1 else { throw Problem(.malformedRequest, "In `\(name)`: a member given twice.") }
            return values.first.map { String($0) }
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
            } catch is CancellationError {
                throw CancellationError()
            } catch {
                throw Problem(.malformedRequest, "The body is not framed as HTTP has it, or was cut on the way.")
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
