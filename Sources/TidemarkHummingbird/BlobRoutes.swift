#if Server
    import HTTPTypes
    import Hummingbird
    import NIOCore
    import TidemarkServer
    import TidemarkWire

    extension SyncServer {
        /// `HEAD`, `GET` and `PUT` of `blobs/{hash}` (A12).
        func addBlobRoutes<Context: RequestContext>(
            to routes: RouteCollection<Context>,
            authorize: @escaping @Sendable (Scope, Request, Context) async throws -> Access
        ) {
            let get: @Sendable (Request, Context) async throws -> Response = { request, context in
                let scope = try SyncQuery(of: request).scope
                let access = try await authorize(scope, request, context)
                return try await self.blob(
                    context.parameters.get("hash") ?? "", in: scope, access: access, to: request)
            }
            let head: @Sendable (Request, Context) async throws -> Response = { request, context in
                let scope = try SyncQuery(of: request).scope
                let access = try await authorize(scope, request, context)
                return .found(
                    try await self.findBlob(context.parameters.get("hash") ?? "", in: scope, access: access))
            }
            let put: @Sendable (Request, Context) async throws -> Response = { request, context in
                let scope = try SyncQuery(of: request).scope
                let access = try await authorize(scope, request, context)
                let upload = try request.upload(of: context.parameters.get("hash") ?? "", to: scope)
                let receipt = try await self.receive(
                    upload, access: access, request.body.map { Array(buffer: $0) })
                return .received(receipt, of: upload.hash)
            }
            routes.on(
                RouterPath("\(BlobAddress.folder)/:hash"), methods: [(.get, get), (.head, head), (.put, put)])
        }

        /// The whole of a blob, or the range that is asked for, in pieces: none is read before its reader has taken
        /// the one before.
        private func blob(
            _ hash: String, in scope: Scope, access: Access, to request: Request
        ) async throws -> Response {
            let blob = try await self.blob(hash, in: scope, access: access)
            var headers = HTTPFields(blob: blob)
            let tag = EntityTag(text: "\"\(hash)\"")
            if tag.isNamed(in: request.headers[.ifNoneMatch]) {
                headers[.contentType] = nil
                return Response(status: .notModified, headers: headers)
            }
            let range = ByteRange(
                request.headers[.range], unless: request.headers[.ifRange].map { $0 != tag.text } ?? false,
                of: blob.size)
            let bytes: Range<Int64>
            switch range {
            case .whole: bytes = 0..<blob.size
            case .some(let some):
                bytes = some
                headers[.contentRange] = "bytes \(some.lowerBound)-\(some.upperBound - 1)/\(blob.size)"
            case .unsatisfiable:
                headers[.contentRange] = "bytes */\(blob.size)"
                (headers[.contentType], headers[.cacheControl], headers[.eTag]) = (nil, nil, nil)
                return Response(status: .rangeNotSatisfiable, headers: headers)
            }
            let transfer = try beginTransfer(of: access)
            let body = ResponseBody(contentLength: bytes.count) { writer in
                defer { withExtendedLifetime(transfer) {} }
                var offset = bytes.lowerBound
                while offset < bytes.upperBound {
                    let piece = try await self.bytes(
                        of: blob, in: scope, from: offset, limit: bytes.upperBound - offset)
                    offset += Int64(piece.count)
                    try await writer.write(ByteBuffer(bytes: piece))
                }
                try await writer.finish(nil)
            }
            return Response(status: range == .whole ? .ok : .partialContent, headers: headers, body: body)
        }
    }

    extension Request {
        /// An upload as the headers announce it.
        fileprivate func upload(of hash: String, to scope: Scope) throws(Problem) -> BlobUpload {
            switch headers[.contentEncoding]?.lowercased() {
            case nil, "", "identity": break
            default: throw Problem(.unsupportedEncoding, "A blob's bytes travel as they are, without Content-Encoding.")
            }
            let announced = headers[.contentLength].flatMap { Int64($0) }
            guard let text = headers[.contentRange] else {
                guard let announced else {
                    throw Problem(.malformedRequest, "A blob needs a Content-Length, or else a Content-Range.")
                }
                return BlobUpload(hash: hash, scope: scope, start: nil, length: announced, size: announced)
            }
            guard let range = ContentRange(text) else {
                throw Problem(.malformedRequest, "In `Content-Range`: `bytes FIRST-LAST/SIZE` was expected.")
            }
            guard announced ?? range.length == range.length else {
                throw Problem(.malformedRequest, "In `Content-Range`: the body has another length.")
            }
            return BlobUpload(
                hash: hash, scope: scope, start: range.first, length: range.length, size: range.size)
        }
    }

    extension Response {
        fileprivate static func found(_ finding: SyncServer.BlobFinding) -> Response {
            switch finding {
            case .whole(let blob):
                var headers = HTTPFields(blob: blob)
                headers[.contentLength] = String(blob.size)
                return Response(status: .ok, headers: headers)
            case .missing(let kept):
                var headers: HTTPFields = [.contentType: Problem.contentType]
                headers[.uploadOffset] = kept.map { String($0) }
                return Response(status: .notFound, headers: headers)
            }
        }

        fileprivate static func received(_ receipt: BlobReceipt, of hash: String) -> Response {
            switch receipt {
            case .created: Response(status: .created, headers: [.eTag: "\"\(hash)\""])
            case .present: Response(status: .ok, headers: [.eTag: "\"\(hash)\""])
            case .part(let kept): Response(status: .accepted, headers: [.uploadOffset: String(kept)])
            }
        }
    }

    extension HTTPFields {
        /// The bytes of an address never change; who may read them may.
        fileprivate init(blob: StoredBlob) {
            self = [
                .contentType: "application/octet-stream", .eTag: "\"\(blob.hash)\"", .acceptRanges: "bytes",
                .cacheControl: "private, max-age=31536000, immutable", .vary: "Authorization",
                .xContentTypeOptions: "nosniff",
            ]
        }
    }

    extension HTTPField.Name {
        static let uploadOffset = Self(BlobAddress.offsetHeader) ?? .accept
    }
#endif
