#if Server
    import HTTPTypes
    import Hummingbird
    import NIOCore
    import TidemarkServer
    import TidemarkWire

    /// `/rest/{entity}` and `/rest/{entity}/{id}`.
    extension DialectHost {
        private static var listMembers: Set<String> { ["scope", "limit", "cursor"] }

        func list(_ request: Request, _ context: Context) async throws -> Response {
            let target = try await target(request, context)
            let spelling = RecordSpelling(target.path, time: .milliseconds)
            var query = RecordQuery(of: target.path.entity, in: target.scope, as: spelling)
            query.filters = target.query.members.filter { !Self.listMembers.contains($0.name) }
                .map { RecordFilter($0.name, $0.value, spelling) }
            query.limit = try target.query.number("limit")
            query.cursor = try target.query.only("cursor")
            query.delta = try request.headers[.delta].map { text throws(Problem) in
                try DeltaHeader(text, limit: server.limits.deltaHeaderBytes)
            }
            let page = try await server.list(query, access: target.access)
            var response =
                query.delta == nil
                ? Response.page(SnapshotPage(body: page.body, lifetime: .untilWritten), to: request)
                : .json(page.body, to: request)
            response.headers[.tidemarkStamp] = String(page.stamp)
            response.headers[.deltaDeleted] = page.deleted
            response.headers[.link] = page.cursor.map {
                "<\(request.uri.path)?\(target.query.replacing("cursor", with: $0))>; rel=\"next\""
            }
            return response
        }

        func record(_ request: Request, _ context: Context) async throws -> Response {
            let target = try await target(request, context)
            let found = try await server.record(
                try Self.record(context), of: target.path.entity, in: target.scope,
                as: RecordSpelling(target.path, time: .milliseconds), access: target.access)
            let match = try WriteCondition.Tags(request.headers[.ifMatch], .ifMatch)
            if let match, !match.names(found?.tag) {
                var problem = Problem(.preconditionFailed, "The record is not as the request asks for it.")
                (problem.record, problem.recordTag) = (found?.body, found?.tag)
                throw problem
            }
            guard let record = found else { throw Problem(.notFound, "There is no such record.") }
            var response = Response.json(record, to: request)
            let tag = response.headers[.eTag] ?? ""
            if EntityTag(text: tag).isNamed(in: request.headers[.ifNoneMatch]) {
                response.headers[.contentType] = nil
                response = Response(status: .notModified, headers: response.headers)
            }
            return response
        }

        func write(
            _ request: Request, _ context: Context, _ kind: @escaping @Sendable (DataObject) -> RecordWrite.Kind
        ) async throws -> Response {
            let target = try await target(request, context)
            let record = try Self.record(context)
            let spelling = RecordSpelling(target.path, time: .milliseconds)
            // The server reads no body of a caller who may not write.
            try server.requireWritable(target.scope, target.access)
            let caller = try await caller(request, context)
            let written = try await request.withSyncBody(
                of: caller, within: bodies, limit: server.limits.bodyBytes, or: "application/merge-patch+json"
            ) { body in
                try await server.write(
                    body.size, of: { try body.inflated() }, for: caller, access: target.access
                ) { bytes in
                    let fields = try spelling.fields(of: bytes, record: record)
                    return try self.write(kind(fields), record, target, spelling, request)
                }
            }
            return Self.response(written, record, target.path, to: request)
        }

        func delete(_ request: Request, _ context: Context) async throws -> Response {
            let target = try await target(request, context)
            let spelling = RecordSpelling(target.path, time: .milliseconds)
            let write = try write(.delete, try Self.record(context), target, spelling, request)
            let written = try await server.write(write, access: target.access)
            var response = Response(status: .noContent)
            if written.isReplayed { response.headers[.idempotencyReplayed] = "true" }
            return response
        }

        private static func record(_ context: Context) throws(Problem) -> RecordID {
            guard let record = RecordID(try PercentEncoding.decoded(path: context.parameters.get("id") ?? "")) else {
                throw Problem(.invalidIdentifier, "The record's id is not of the allowed form.")
            }
            return record
        }

        private func write(
            _ kind: RecordWrite.Kind, _ record: RecordID, _ target: Target, _ spelling: RecordSpelling,
            _ request: Request
        ) throws(Problem) -> RecordWrite {
            var write = RecordWrite(kind, record, of: target.path.entity, in: target.scope, as: spelling)
            write.condition.match = try WriteCondition.Tags(request.headers[.ifMatch], .ifMatch)
            write.condition.noneMatch = try WriteCondition.Tags(request.headers[.ifNoneMatch], .ifNoneMatch)
            write.key = request.headers[.idempotencyKey]
            if let count = write.key?.utf8.count, !(1...Limits.idempotencyKeyBytes).contains(count) {
                throw Problem(
                    .invalidIdentifier,
                    "In `Idempotency-Key`: \(count) bytes where \(Limits.idempotencyKeyBytes) are taken.")
            }
            return write
        }

        private static func response(
            _ written: WrittenRecord, _ record: RecordID, _ path: EntityPath, to request: Request
        ) -> Response {
            var response: Response
            if let shown = written.record {
                response = .json(shown, to: request)
            } else {
                var writer = JSONWriter(capacity: 64)
                writer.raw("{")
                writer.string(path.id)
                writer.raw(":")
                writer.string(record.text)
                writer.raw("}")
                response = .json(writer.bytes, to: request)
            }
            response.headers[.cacheControl] = nil
            if written.isNew { response.status = .created }
            if written.isReplayed { response.headers[.idempotencyReplayed] = "true" }
            return response
        }
    }

    extension Response {
        /// A record with its tag. Its compressed form has other bytes, and so another tag.
        fileprivate static func json(_ record: PlainRecord, to request: Request) -> Response {
            var response = Response.json(record.body, to: request)
            let coding = ContentCoding(of: record.body, accepting: request.headers[.acceptEncoding])
            response.headers[.eTag] = "\"\(record.tag)\(coding.tagMark)\""
            response.headers[.cacheControl] = "private, no-cache"
            response.headers[.vary] = "Accept-Encoding, Authorization"
            return response
        }
    }

    extension WriteCondition.Tags {
        /// Reads a header; `nil` where there is none. The tag of any form of a record means the record.
        fileprivate init?(_ header: String?, _ name: HTTPField.Name) throws(Problem) {
            guard let header else { return nil }
            guard let list = EntityTagList(header) else {
                throw Problem(.malformedRequest, "In `\(name)`: `*`, or tags in quotes, were expected.")
            }
            guard case .these(let items) = list else {
                self = .any
                return
            }
            // A weak tag never matches for If-Match, and as a strong one for If-None-Match (RFC 9110, 13.1).
            let tags = items.filter { !$0.isWeak || name == .ifNoneMatch }
                .map { ContentCoding.unmarked($0.tag) }
            self = .these(tags)
        }
    }
#endif
