import TidemarkWire

extension ObjectStore {
    /// Brings the cache's collection up to date. A delta that the server cannot tell in one form is asked for in the
    /// next simpler one: the map, the time, the complete list.
    func refresh(_ query: ObjectQuery, _ strategy: DeltaSyncStrategy, in cache: ObjectCache) async throws {
        var delta = try await self.delta(query, strategy, in: cache)
        while true {
            do {
                return try await scan(query, delta, in: cache)
            } catch let error as ObjectStoreError where delta != .nothing {
                switch (error.code, delta) {
                case (.headerTooLarge, .held): delta = try await self.delta(query, .collectionBased, in: cache)
                case (.checkpointExpired, _): delta = .nothing
                default: throw error
                }
            }
        }
    }

    private func delta(
        _ query: ObjectQuery, _ strategy: DeltaSyncStrategy, in cache: ObjectCache
    ) async throws -> Delta {
        if strategy == .none { return .nothing }
        if strategy == .objectBased, let map = try await cache.map(query, limit: limits.deltaHeaderBytes) {
            return .held(map)
        }
        return try await cache.stamp(query).map { .since($0) } ?? .nothing
    }

    private func scan(_ query: ObjectQuery, _ delta: Delta, in cache: ObjectCache) async throws {
        try await pages(of: query, delta) { page, place in
            try await cache.take(page, of: query, delta, place)
        }
    }

    /// The complete list, of which nothing is kept.
    func list(_ query: ObjectQuery) async throws -> [StoredObject] {
        var objects: [StoredObject] = []
        try await pages(of: query, .nothing) { page, _ in objects += page.objects }
        return objects
    }

    private func pages(
        of query: ObjectQuery, _ delta: Delta, _ use: (ObjectPage, PagePlace) async throws -> Void
    ) async throws {
        var (cursor, begun): (String?, Int64?) = (nil, nil)
        for number in 0..<limits.pages {
            let page = try await page(of: query, delta, cursor)
            // Times of one history only grow: the server has been put back, and cannot name what it has lost.
            if case .since(let time) = delta, page.stamp < time {
                throw ObjectStoreError.expired("The server's newest time lies before the one that it gave.")
            }
            begun = begun ?? page.stamp
            let place = PagePlace(isFirst: number == 0, isLast: page.cursor == nil, begun: begun ?? page.stamp)
            try await use(page, place)
            guard page.cursor != nil else { return }
            cursor = page.cursor
        }
        throw ObjectStoreError(
            .limitExceeded, "The list has more than \(limits.pages) pages.",
            hint: "Ask for a part of it by a filter, or raise `ObjectLimits.pages`.")
    }

    private func page(of query: ObjectQuery, _ delta: Delta, _ cursor: String?) async throws -> ObjectPage {
        var request = request(Self.path(query.name))
        request.query += query.items + [.init("limit", String(limits.pageObjects))]
        if let cursor { request.query.append(.init("cursor", cursor)) }
        if let header = delta.header { request.headers[DialectHeader.delta] = header }
        let response = try await send(request)
        guard response.status == 200 else { throw ObjectStoreError(response) }
        return try ObjectPage(response, isDelta: delta != .nothing)
    }

    /// `nil` where the server says, in its own words, that there is no such object.
    func load(_ name: String, _ id: RecordID) async throws -> StoredObject? {
        let response = try await send(request(Self.path(name) + "/" + PercentEncoding.encoded(id.text)))
        let problem = response.body.withUnsafeBytes { Problem(from: $0) }
        if response.status == 404, problem?.code == .notFound { return nil }
        guard response.status == 200 else { throw ObjectStoreError(response) }
        do throws(JSONError) {
            let object = try StoredObject(document: response.body)
            guard object.id == id else { throw JSONError(.invalidIdentifier, at: 0) }
            return object
        } catch {
            throw ObjectStoreError.unusable("The object is not what this server sends: \(error.reason.rawValue).")
        }
    }

    // MARK: Requests

    private static func path(_ name: String) -> String { "/rest/" + PercentEncoding.encoded(name) }

    private func request(_ path: String) -> TransportRequest {
        TransportRequest(path: path, query: scope.map { [.init("scope", $0.name)] } ?? [])
    }
}

extension ObjectStore: ObjectRequester {}

/// A sender of requests, within its limits.
protocol ObjectRequester: Sendable {
    var limits: ObjectLimits { get }
    var transport: any Transport { get }
}

extension ObjectRequester {
    func send(_ request: TransportRequest) async throws -> TransportResponse {
        let response: TransportResponse
        do { response = try await transport.send(request) } catch {
            // A cancelled request fails in the transport's own way.
            try Task.checkCancellation()
            throw ObjectStoreError(
                .networkUnavailable, "No answer came from the server.", hint: "Try again when there is a network.")
        }
        guard response.body.count <= limits.answerBytes else {
            throw ObjectStoreError(
                .limitExceeded, "An answer has more than \(limits.answerBytes) bytes.",
                hint: "Lower `ObjectLimits.pageObjects`, or raise `answerBytes`.")
        }
        return response
    }
}
