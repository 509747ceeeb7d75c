#if Server
    import HTTPTypes
    import Hummingbird
    import TidemarkServer
    import TidemarkWire

    extension SnapshotQuery {
        init(_ query: SyncQuery, of request: Request) throws(Problem) {
            self.init(of: query.scope)
            token = try query.text("snapshotToken")
            cursor = try query.text("pageCursor")
            limit = try query.number("limit")
            client = request.headers[.tidemarkClient]
        }
    }

    extension SyncServer {
        /// `GET snapshot`.
        func snapshotPage(_ query: SyncQuery, access: Access, to request: Request) async throws -> Response {
            var wanted = try SnapshotQuery(query, of: request)
            wanted.entity = try query.text("entity")
            wanted.fields = try query.text("fields")
            return .page(try await snapshot(wanted, access: access), to: request)
        }

        /// `GET changes`, in the order of the log or, with `order=priority`, as a walk in key order.
        func changesPage(_ query: SyncQuery, access: Access, to request: Request) async throws -> Response {
            switch try query.text("order") {
            case nil, "log":
                let body = try await changes(
                    in: query.scope, since: try query.text("since"), limit: try query.number("limit"),
                    takes: try query.differences(), access: access,
                    client: request.headers[.tidemarkClient])
                return .json(body, to: request)
            case "priority":
                var wanted = try SnapshotQuery(query, of: request)
                wanted.since = try query.text("since")
                wanted.entity = try query.text("entity")
                wanted.isDelta = true
                return .page(try await snapshot(wanted, access: access), to: request)
            default: throw Problem(.malformedRequest, "In `order`: `log` or `priority` was expected.")
            }
        }
    }

    extension Response {
        /// A page that may be kept by its reader, and by nobody else: another token may not have its scope.
        static func page(_ page: SnapshotPage, to request: Request) -> Response {
            let cacheControl: String
            switch page.lifetime {
            case .none: return .json(page.body, to: request)
            case .untilWritten: cacheControl = "private, no-cache"
            case .window(let seconds): cacheControl = "private, max-age=\(seconds)"
            }
            let coding = ContentCoding(of: page.body, accepting: request.headers[.acceptEncoding])
            let tag = EntityTag(of: page.body, as: coding)
            let headers: HTTPFields = [
                .eTag: tag.text, .cacheControl: cacheControl, .vary: "Accept-Encoding, Authorization",
            ]
            if tag.isNamed(in: request.headers[.ifNoneMatch]) {
                return Response(status: .notModified, headers: headers)
            }
            var response = Response.json(page.body, to: request)
            for field in headers { response.headers[field.name] = field.value }
            return response
        }
    }

    extension HTTPField.Name {
        static let tidemarkClient = Self(ProtocolVersion.clientHeader) ?? .accept
    }
#endif
