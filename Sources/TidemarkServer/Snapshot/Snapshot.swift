import TidemarkCore
package import TidemarkWire

/// Which page of a scan in key order is wanted.
package struct SnapshotQuery: Hashable, Sendable {
    package var scope: Scope
    /// The scan to go on with, and the place in it; both `nil` where one begins.
    package var token: String?
    package var cursor: String?
    /// The checkpoint from which a delta goes; `nil` for a snapshot.
    package var since: String?
    /// Whether the scan to go on with is a delta.
    package var isDelta = false
    package var limit: Int64?
    /// The only entity wanted.
    package var entity: String?
    /// Names of the only fields wanted, `a,b`.
    package var fields: String?
    /// How the device names itself, where it does.
    package var client: String?
    /// Whether the page is asked for by its address.
    private var isShared = false
    /// The newest version that the reader knows of, 0 for none: nobody is shown what is older than what he has.
    package var known: Version = 0

    package init(of scope: Scope) { self.scope = scope }

    /// A page that is asked for by its address.
    init(sharedOf scope: Scope) {
        self.scope = scope
        isShared = true
    }

    /// Whether it begins a snapshot of the whole scope. A page at a token or an address has the same bytes for ever, so
    /// only this one counts.
    fileprivate var isFirstOfWhole: Bool { !isShared && token == nil && since == nil && !isPartial }

    /// A scan through a part of the scope, which leaves its reader where it was.
    var isPartial: Bool { entity != nil || fields != nil }
}

/// A page of a scan in key order.
package struct SnapshotPage: Sendable {
    /// How long an address gives the same bytes.
    package enum Lifetime: Hashable, Sendable {
        /// As long as the window holds the scan, in seconds.
        case window(Int64)
        /// Until somebody writes: the first page, whose address names no scan.
        case untilWritten
        /// For whoever knows the address, as long as it holds, in seconds.
        case shared(Int64)
        /// Not at all: the scan has outlived the window.
        case none
    }

    package var body: [UInt8]
    package var lifetime: Lifetime

    package init(body: [UInt8], lifetime: Lifetime) {
        self.body = body
        self.lifetime = lifetime
    }
}

extension SyncServer {
    /// `GET /sync/snapshot`, and the same scan as a delta with `order=priority` (A5, A15, A18): the scope as of one
    /// version, in pages, critical entities first, each in key order. What is written meanwhile never shows in it.
    package func snapshot(_ query: SnapshotQuery, access: Access) async throws -> SnapshotPage {
        try access.require(.read, in: query.scope)
        let limit = try pageLimit(query.limit)
        let fields = try query.fields.map { text throws(Problem) in try FieldSelection(text) }
        let device = try access.device(query.client)
        let remembered = access.remembered(device)
        guard query.entity.map(Identifier.isEntity) ?? true else {
            throw Problem(.invalidIdentifier, "In `entity`: a name that is not of the allowed form.")
        }
        guard query.cursor == nil || query.token != nil else {
            throw Problem(.malformedRequest, "In `snapshotToken`: a required member is missing.")
        }
        let (key, byteBudget, declarations) = (store.tokenKey, limits.pageBytes, declarations)
        let withheld = withheld(from: access)
        let window = configuration.window.wholeSeconds
        let (page, news) = try await readScope(query.scope, for: access.principal) { reader in
            let handle = try Self.handle(
                query, LostHistory(reader, of: device), key: key, reader.state.history,
                scan: query.scan(declarations))
            let place = try query.place(in: handle, key: key)
            var scan = KeyScan(
                reader: reader, handle: handle, withheld: withheld,
                rows: RowSplicer(limit: limit, byteBudget: byteBudget))
            scan.rows.fields = fields
            let body = try scan.page(for: query, from: place, order: declarations, key: key)
            let lifetime: SnapshotPage.Lifetime = query.token == nil ? .untilWritten : .window(window)
            let page = SnapshotPage(body: body, lifetime: scan.isExact ? lifetime : .none)
            return (page, try self.news(of: remembered, at: nil, reader))
        }
        await note(news, of: remembered, in: query.scope)
        return page
    }

    static func handle(
        _ query: SnapshotQuery, _ lost: LostHistory, key: [UInt8], _ history: ScopeHistory, scan: Int64
    ) throws -> SnapshotHandle {
        guard let token = query.token else {
            let base = try query.since.map {
                try lost.resume(try Checkpoint(token: $0, scope: query.scope, key: key)).complete
            }
            return SnapshotHandle(
                epoch: history.epoch(of: history.head), horizon: history.head, base: base ?? 0, scan: scan)
        }
        guard let handle = SnapshotHandle(token: token, scope: query.scope, key: key) else {
            throw Problem(.invalidCheckpoint, "`snapshotToken` is not one of scope \(query.scope).")
        }
        do throws(Problem) { try handle.check(in: history) } catch { throw try lost.told(error) }
        guard handle.scan == scan, handle.base == 0 || query.isDelta || query.since != nil else {
            throw Problem(
                .snapshotExpired,
                "The scan began with other entities, fields or changes, or entities were declared in another order.")
        }
        return handle
    }
}

/// Scans a scope's records in key order, entity by entity.
struct KeyScan {
    private let reader: any ScopeReader
    private let handle: SnapshotHandle
    /// Whether rows come as they were then, and not as they are now.
    let isExact: Bool
    private let withheld: WithheldEntities
    var rows: RowSplicer
    private var last: Cursor?

    init(reader: any ScopeReader, handle: SnapshotHandle, withheld: WithheldEntities, rows: RowSplicer) {
        self.reader = reader
        self.handle = handle
        self.withheld = withheld
        self.rows = rows
        isExact = handle.isExact(in: reader.state.history)
    }

    mutating func page(
        for query: SnapshotQuery, from place: Cursor?, order: Declarations, key: [UInt8]
    ) throws -> [UInt8] {
        let scope = query.scope
        rows.writer.raw("{\"scope\":")
        rows.writer.string(scope.name)
        if let since = query.since { rows.writer.member("since", since) }
        rows.writer.member("epoch", handle.epoch.text)
        rows.writer.raw(",\"changes\":[")
        for entity in order.sorted(reader.state.entities.all) where !rows.isFull {
            if withheld.contains(entity) || query.entity.map({ !Identifier.isSameName($0, entity) }) ?? false {
                continue
            }
            if let place, order.precedes(entity, place.entity) { continue }
            let isCut = place.map { Identifier.isSameName($0.entity, entity) } ?? false
            try visit(entity, after: isCut ? place?.record : nil)
        }
        rows.writer.raw("]")
        rows.writer.member("snapshotToken", handle.token(scope: scope, key: key))
        rows.writer.memberName("pageCursor")
        if rows.isFull, let last {
            rows.writer.string(last.token(in: handle, scope: scope, key: key))
        } else {
            rows.writer.raw("null")
        }
        rows.writer.memberName("hasMore")
        rows.writer.bool(rows.isFull)
        rows.writer.memberName("consistent")
        rows.writer.bool(isExact)
        if !rows.isFull, !query.isPartial {
            rows.writer.member("nextSince", handle.checkpoint.token(scope: scope, key: key))
        }
        rows.writer.member("head", handle.horizon)
        if query.isFirstOfWhole, let records = try count() { rows.writer.member("records", records) }
        rows.writer.raw("}")
        return rows.writer.bytes
    }

    /// The number of records of state that the whole scan brings, by the digests that belong to the head that it begins
    /// at (W94); `nil` where one cannot be read.
    private func count() throws -> Int64? {
        var sum: Int64 = 0
        for entity in reader.state.entities.all where !withheld.contains(entity) {
            guard let bytes = try reader.digest(of: entity) else { continue }
            guard let digest = try? EntityDigest(kept: bytes) else { return nil }
            sum += digest.count
        }
        return sum
    }

    private mutating func visit(_ entity: String, after record: RecordID?) throws {
        // Taken out while the store's closure fills it: a second reference would copy the page so far.
        var rows = RowSplicer(limit: 0, byteBudget: 0)
        swap(&rows, &self.rows)
        defer { self.rows = rows }
        var last = self.last
        defer { self.last = last }
        try reader.records(
            of: entity, above: handle.base, at: isExact ? handle.horizon : nil, after: record
        ) { change in
            guard rows.hasRoom(for: change) else { return false }
            rows.append(change)
            // Ids were checked when they came in, so what the store returns is one.
            last = RecordID(String(decoding: change.record, as: UTF8.self)).map { Cursor(entity: entity, record: $0) }
            return true
        }
    }
}

extension SnapshotQuery {
    /// The record of a scan behind which the page begins.
    func place(in handle: SnapshotHandle, key: [UInt8]) throws(Problem) -> Cursor? {
        guard let text = cursor else { return nil }
        guard let place = Cursor(token: text, in: handle, scope: scope, key: key) else {
            throw Problem(.invalidCheckpoint, "`pageCursor` is not one of this scan.")
        }
        return place
    }

    /// A number that changes with the order of entities, and with what is wanted of them.
    func scan(_ declarations: Declarations) -> Int64 {
        let order = declarations.entities.map { "\($0.priority) \($0.name)" }
        let text = ([entity?.lowercased() ?? "", fields ?? ""] + order).joined(separator: "\n")
        return SHA256.digest(Array(text.utf8)).prefix(7).reduce(0) { $0 << 8 | Int64($1) }
    }
}

extension Declarations {
    private func priority(_ entity: String) -> Int { self[entity]?.priority ?? EntityDeclaration(entity).priority }

    fileprivate func precedes(_ left: String, _ right: String) -> Bool {
        let (first, second) = (priority(left), priority(right))
        return first == second ? left.utf8.lexicographicallyPrecedes(right.utf8) : first < second
    }

    fileprivate func sorted(_ names: [String]) -> [String] { names.sorted(by: precedes) }
}
