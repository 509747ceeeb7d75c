import TidemarkCore
import TidemarkWire

// MARK: - Snapshot pages that shared caches may keep (F4, W91)

extension SyncServer {
    /// Rows on a shared page, whatever `limit` says: pages of different sizes would be different pages.
    private static let sharedRows = 2000
    /// Bytes of a scope's rows from which on its pages are shared: asking for the address of a smaller one costs as
    /// much as the page.
    private static let leastSharedBytes: Int64 = 64 << 10
    /// The name under which all readers of shared pages take turns at the store, as one caller. No token needs it as
    /// its `sub`.
    private static let sharedReader = "\0shared pages"

    /// Whether snapshot pages have addresses that need no token.
    package var sharesPages: Bool { sharedHandles != nil }

    /// The answer that names the address of a page of a snapshot. `nil` where the page is to be given itself: where
    /// pages are not shared, are not worth it, or would not be what this very caller is to see.
    ///
    /// - Throws: what ``snapshot(_:access:)`` throws.
    package func sharedAddress(_ query: SnapshotQuery, access: Access) async throws -> [UInt8]? {
        try access.require(.read, in: query.scope)
        guard let sharedHandles, hasCommonView(access), !query.isPartial, query.since == nil, !query.isDelta,
            query.cursor == nil || query.token != nil
        else { return nil }
        _ = try pageLimit(query.limit)
        let device = try access.device(query.client)
        let remembered = access.remembered(device)
        let (key, declarations, now) = (store.tokenKey, declarations, configuration.moment())
        let limit = min(Self.sharedRows, limits.maximumPage)
        let (page, news) = try await readScope(query.scope, for: access.principal) {
            reader -> (SharedPage?, DeviceNews?) in
            let history = reader.state.history
            guard reader.state.size.weight >= Self.leastSharedBytes else { return (nil, nil) }
            var handle = try Self.handle(
                query, LostHistory(reader, of: device), key: key, history, scan: query.scan(declarations))
            if query.token == nil {
                handle = sharedHandles.withLock { $0.handle(handle, of: query.scope, in: history, at: now) }
            }
            let place = try query.place(in: handle, key: key)
            guard handle.isExact(in: history), handle.base == 0, query.token != nil || query.known <= handle.horizon
            else { return (nil, nil) }
            let expires = sharedHandles.withLock { $0.expiry(at: now) }
            let page = SharedPage(scope: query.scope, handle: handle, cursor: place, limit: limit, expires: expires)
            return (page, try self.news(of: remembered, at: nil, reader))
        }
        guard let page else { return nil }
        await note(news, of: remembered, in: query.scope)
        var writer = JSONWriter(capacity: 1024)
        writer.raw("{\"scope\":")
        writer.string(page.scope.name)
        writer.member("snapshotToken", page.handle.token(scope: page.scope, key: key))
        writer.member("address", PageAddress.prefix + page.token(key: key))
        writer.raw("}")
        return writer.bytes
    }

    /// The page at such an address, the same bytes as with a token.
    ///
    /// - Throws: 404 for an address that this server did not give out, or gives out no more; 410 `page_expired` for one
    ///   that does not hold any more or whose rows are not kept any more; 429 where too many ask for one scope's pages.
    package func sharedPage(at token: String) async throws -> SnapshotPage {
        guard let sharedHandles, let page = SharedPage(token: token, key: store.tokenKey) else {
            throw Problem(.notFound, "There is no page at this address.")
        }
        func rest() throws(Problem) -> Int64 {
            let now = configuration.moment()
            guard let rest = sharedHandles.withLock({ $0.rest(until: page.expires, at: now) }) else {
                throw Problem(.pageExpired, "The page's address has expired.")
            }
            return rest
        }
        _ = try rest()
        try countSharedPage(of: page.scope)
        let query = SnapshotQuery(sharedOf: page.scope)
        let (key, declarations, withheld) = (store.tokenKey, declarations, withheld(from: .none))
        let rows = RowSplicer(limit: page.limit, byteBudget: limits.pageBytes)
        let body = try await readScope(page.scope, for: Self.sharedReader) { reader -> [UInt8]? in
            do throws(Problem) { try page.handle.check(in: reader.state.history) } catch { return nil }
            var scan = KeyScan(reader: reader, handle: page.handle, withheld: withheld, rows: rows)
            guard scan.isExact, page.handle.scan == query.scan(declarations) else { return nil }
            return try scan.page(for: query, from: page.cursor, order: declarations, key: key)
        }
        guard let body else { throw Problem(.pageExpired, "The page's rows are not kept any more.") }
        return SnapshotPage(body: body, lifetime: .shared(try rest() / 1000))
    }

    /// Whether a caller sees the same as all readers of a scope. An access that hides or shows other things has to be
    /// told apart here: such a caller gets pages of his own.
    private func hasCommonView(_ access: Access) -> Bool { withheld(from: access) == withheld(from: .none) }
}
