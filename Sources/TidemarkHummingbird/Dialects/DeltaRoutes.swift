#if Server
    import HTTPTypes
    import Hummingbird
    import TidemarkServer
    import TidemarkWire

    /// `/{entity}/delta`, `/{entity}/events` and `/sync/stamped`.
    extension DialectHost {
        func delta(_ request: Request, _ context: Context) async throws -> Response {
            let target = try await rootTarget(request, context)
            var query = CursorQuery(of: target.path, in: target.scope)
            query.limit = try target.query.number("limit")
            // `null` is what such a client has before its first page.
            if let cursor = try target.query.only("cursor"), !cursor.isEmpty, cursor != "null" {
                query.cursor = cursor
            }
            query.client = request.headers[.tidemarkClient]
            let page = try await server.delta(query, access: target.access)
            var response = Response.json(page.body, to: request)
            response.headers[.tidemarkCheckpoint] = page.checkpoint
            return response
        }

        func events(_ request: Request, _ context: Context) async throws -> Response {
            let target = try await rootTarget(request, context)
            try server.requireReadable(target.path.entity, in: target.scope, target.access)
            return try await server.events(
                of: [target.scope], named: target.path.event, request, context, authorize: authorize)
        }

        func stamped(_ request: Request, _ context: Context) async throws -> Response {
            let caller = try await caller(request, context)
            let scope = try await scope(try PlainQuery(of: request), nil, request, context)
            let access = try await authorize(scope, request, context)
            try server.countRequest(of: access.principal)
            try server.requireReadable(scope, access)
            let answer = try await request.withSyncBody(
                of: caller, within: bodies, limit: server.limits.bodyBytes
            ) { body in
                try await server.stamped(
                    body.size, of: { try body.inflated() }, in: scope, for: caller, access: access)
            }
            return .json(answer, to: request)
        }
    }
#endif
