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
        private var members: [String: [String]] = [:]

        init(of request: Request) throws(Problem) {
            for (name, value) in try request.queryMembers() { members[name, default: []].append(value) }
            guard let name = try Self.only("scope", members) else {
                throw Problem(.malformedRequest, "In `scope`: a required member is missing.")
            }
            guard let scope = Scope(name) else {
                throw Problem(.invalidIdentifier, "In `scope`: a name that is not of the allowed form.")
            }
            self.scope = scope
        }

        /// A member that may stand once.
        func text(_ name: String) throws(Problem) -> String? { try Self.only(name, members) }

        /// A member that may stand several times, in its order.
        func texts(_ name: String) -> [String] { members[name] ?? [] }

        func number(_ name: String) throws(Problem) -> Int64? {
            guard let text = try text(name) else { return nil }
            if let number = Int64(text) { return number }
            let digits = text.first == "-" ? text.dropFirst() : text[...]
            guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                throw Problem(.malformedRequest, "In `\(name)`: a number was expected.")
            }
            throw Problem(.limitOutOfRange, "In `\(name)`: a number outside its limits.")
        }

        /// How rows may come that the reader holds an older form of.
        func differences() throws(Problem) -> Differences {
            Differences(patches: try text("patches") == "true", fields: try text("partial") == "true")
        }

        private static func only(
            _ name: String, _ members: [String: [String]]
        ) throws(Problem) -> String? {
            let values = members[name] ?? []
            guard values.count <= 1 else { throw Problem(.malformedRequest, "In `\(name)`: a member given twice.") }
            return values.first
        }
    }

    /// A body as it came.
    struct SyncBody: Sendable {
        let bytes: [UInt8]
        let isCompressed: Bool
        let limit: Int

        /// Bytes when it is inflated, as it says itself; never more than are taken.
        var size: Int { isCompressed ? min(Gzip.announcedSize(bytes), limit) : bytes.count }

        func inflated() throws(Problem) -> [UInt8] {
            guard isCompressed else { return bytes }
            do {
                return try Gzip.decompress(bytes, limit: size)
            } catch {
                // A body that inflates to more bytes than it announces is no gzip either.
                if case .tooLarge(let size) = error, size == limit {
                    throw Self.tooLarge("more bytes, inflated,", limit)
                }
                throw Problem(.malformedRequest, "The body is not gzip, or was cut on the way.")
            }
        }

        static func tooLarge(_ what: String, _ limit: Int) -> Problem {
            Problem(.requestTooLarge, "The body has \(what) where \(limit) are taken.")
        }
    }

    extension Request {
        func queryMembers() throws(Problem) -> [(name: String, value: String)] {
            try PercentEncoding.members(ofQuery: uri.query ?? "")
        }

        /// Reads the body of a push, JSON, plain or gzip, and passes it on as it came.
        ///
        /// - Parameters:
        ///   - caller: whose it is, for the budget.
        ///   - limit: the bytes that are taken, inflated or not.
        ///   - type: another media type that is taken for JSON here.
        func withSyncBody<Result: Sendable>(
            of caller: String, within budget: BodyBudget, limit: Int, or type: String? = nil,
            _ use: (SyncBody) async throws -> Result
        ) async throws -> Result {
            try checkContentType(or: type)
            let isCompressed = try isGzip()
            let announced = headers[.contentLength].flatMap { Int($0) }
            if let announced, announced > limit {
                throw SyncBody.tooLarge("\(announced) bytes", limit)
            }
            let body = self.body
            return try await budget.collect(of: caller, announced: announced) { hold in
                var bytes: [UInt8] = []
                do {
                    for try await part in body {
                        guard bytes.count + part.readableBytes <= limit else {
                            throw SyncBody.tooLarge("more bytes", limit)
                        }
                        try hold(part.readableBytes)
                        bytes += part.readableBytesView
                    }
                } catch let error where error is CancellationError || error is Problem {
                    throw error
                } catch {
                    throw Problem(.malformedRequest, "The body is not framed as HTTP has it, or was cut on the way.")
                }
                return bytes
            } use: { bytes in
                try await use(SyncBody(bytes: bytes, isCompressed: isCompressed, limit: limit))
            }
        }

        private func checkContentType(or other: String?) throws(Problem) {
            guard let type = headers[.contentType] else { return }
            let essence = type.prefix { $0 != ";" }.filter { !$0.isWhitespace }.lowercased()
            guard essence == "application/json" || essence == other else {
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
