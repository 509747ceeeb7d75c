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
            known = try query.number("known") ?? 0
        }
    }

    extension SyncServer {
        /// `GET snapshot`.
        func snapshotPage(_ query: SyncQuery, access: Access, to request: Request) async throws -> Response {
            var wanted = try SnapshotQuery(query, of: request)
            wanted.entity = try query.text("entity")
            wanted.fields = try query.text("fields")
            if try query.text("shared") == "true", let address = try await sharedAddress(wanted, access: access) {
                return .json(address, to: request)
            }
            return .page(try await snapshot(wanted, access: access), to: request)
        }

        /// `GET changes`, in the order of the log or, with `order=priority`, as a scan in key order.
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
        /// A page that may be kept by its reader, and by nobody else, since another token may not have its scope; or by
        /// whoever likes to, where its address needs no token.
        static func page(_ page: SnapshotPage, to request: Request) -> Response {
            switch page.lifetime {
            case .none: .json(page.body, to: request)
            case .untilWritten: .tagged(page.body, "private, no-cache", to: request)
            case .window(let seconds): .tagged(page.body, "private, max-age=\(seconds)", to: request)
            case .shared(let seconds):
                // No cache may give an expired page out, not even where this server cannot be reached.
                .tagged(
                    page.body, "public, max-age=\(seconds), must-revalidate, immutable", vary: "Accept-Encoding",
                    to: request)
            }
        }

        /// A JSON body with a strong tag, or 304 where the caller has it.
        static func tagged(
            _ body: [UInt8], _ cacheControl: String, vary: String = "Accept-Encoding, Authorization",
            to request: Request
        ) -> Response {
            let coding = ContentCoding(of: body, accepting: request.headers[.acceptEncoding])
            let tag = EntityTag(of: body, as: coding)
            let headers: HTTPFields = [.eTag: tag.text, .cacheControl: cacheControl, .vary: vary]
            if tag.isNamed(in: request.headers[.ifNoneMatch]) {
                return Response(status: .notModified, headers: headers)
            }
            var response = Response.json(body, to: request)
            for field in headers { response.headers[field.name] = field.value }
            return response
        }
    }

    extension HTTPField.Name {
        static let tidemarkClient = Self(ProtocolVersion.clientHeader) ?? .accept
    }
#endif
