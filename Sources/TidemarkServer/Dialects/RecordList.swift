import TidemarkCore
package import TidemarkWire

/// Which records of an entity a caller without a client wants.
package struct RecordQuery: Hashable, Sendable {
    package var scope: Scope
    package var entity: String
    package var spelling: RecordSpelling
    package var filters: [RecordFilter] = []
    /// The records that the caller holds already.
    package var delta: DeltaHeader?
    package var limit: Int64?
    /// Where the page before has ended.
    package var cursor: String?

    package init(of entity: String, in scope: Scope, as spelling: RecordSpelling) {
        self.entity = entity
        self.scope = scope
        self.spelling = spelling
    }
}

/// A page of records.
package struct RecordPage: Hashable, Sendable {
    /// A JSON array.
    package var body: [UInt8]
    /// Where the next page begins; `nil` behind the last.
    package var cursor: String?
    /// The ids to drop, as a header; `nil` where nobody asked.
    package var deleted: String?
    /// The time to give in the next `x-apiomat-delta`, in milliseconds since 1970.
    package var stamp: Int64
}

/// A record as it is, and its entity tag.
package struct PlainRecord: Hashable, Sendable {
    package var body: [UInt8]
    /// Without quotes.
    package var tag: String
}

extension SyncServer {
    /// `GET /rest/{entity}`: records in the order of their ids, or what has changed since a time.
    package func list(_ query: RecordQuery, access: Access) async throws -> RecordPage {
        try access.require(.read, in: query.scope)
        try requireReadable(query.entity, access)
        guard query.filters.count <= Limits.filters else {
            throw Problem(.limitOutOfRange, "\(query.filters.count) filters; one request may have \(Limits.filters).")
        }
        let limit = try pageLimit(query.limit)
        let (key, byteBudget, now) = (store.tokenKey, limits.pageBytes, configuration.moment())
        return try await readScope(query.scope, for: access.principal) { reader in
            var query = query
            query.entity = self.spelling(of: query.entity, in: reader.state)
            let place = try query.cursor.map { text in
                guard let place = ListPlace(token: text, query, key: key) else {
                    throw Problem(.invalidCheckpoint, "`cursor` is not one of this list.")
                }
                return place
            }
            var list = RecordList(reader: reader, query: query, limit: limit, byteBudget: byteBudget)
            let next = try list.fill(from: place, now: now)
            return RecordPage(
                body: list.finish(), cursor: next?.token(query, key: key), deleted: list.deleted?.header,
                stamp: list.stamp)
        }
    }

    /// `GET /rest/{entity}/{id}`: one record; `nil` where there is none (any more).
    package func record(
        _ record: RecordID, of entity: String, in scope: Scope, as spelling: RecordSpelling, access: Access
    ) async throws -> PlainRecord? {
        try access.require(.read, in: scope)
        try requireReadable(entity, access)
        return try await readScope(scope, for: access.principal) { reader in
            let entity = self.spelling(of: entity, in: reader.state)
            guard let stored = try reader.newest(entity: entity, record: record) else { return nil }
            return try PlainRecord(stored, record, spelling, reader.state.history)
        }
    }

    /// Entities that are only pushed can be read by the operator's own programs alone, and a strict server has no
    /// entities that are not declared.
    func requireReadable(_ entity: String, _ access: Access) throws(Problem) {
        guard Identifier.isEntity(entity) else {
            throw Problem(.invalidIdentifier, "The entity's name is not of the allowed form.")
        }
        guard declaration(of: entity) != nil, !withheld(from: access).contains(entity) else {
            throw Problem(.notFound, "There are no records of \(entity) for this caller.")
        }
    }
}

extension PlainRecord {
    /// `nil` for a tombstone.
    init?(
        _ stored: StoredRecord, _ record: RecordID, _ spelling: RecordSpelling, _ history: ScopeHistory
    ) throws {
        guard let payload = stored.payload else { return nil }
        body = spelling.bytes(record, at: stored.time, try DataObject(stored: payload))
        tag = Self.tag(of: stored.version, history)
    }

    /// The version, and the opening of the store that wrote it: a store that has lost history gives versions again.
    static func tag(of version: Version, _ history: ScopeHistory) -> String {
        "\(version)-\(String(UInt64(bitPattern: history.epoch(of: version).id), radix: 36))"
    }
}

/// Where a list goes on, bound to what is listed.
private enum ListPlace: Hashable {
    /// The list goes on behind this record; the scan began at this time.
    case record(RecordID, begun: Int64)
    /// The list goes on behind this time. `began`: the caller had nothing when the scan began, at that time.
    case time(Int64, began: Int64?)

    private static let marks: (record: Int64, time: Int64) = (1, 2)

    func token(_ query: RecordQuery, key: [UInt8]) -> String {
        var writer = ByteWriter()
        writer.run(Self.fingerprint(query))
        switch self {
        case .record(let record, let begun):
            writer.integer(Self.marks.record)
            writer.integer(begun)
            writer.run(record.text.utf8)
        case .time(let time, let began):
            writer.integer(Self.marks.time)
            writer.integer(time)
            writer.integer(began ?? -1)
        }
        return SealedToken.seal(writer.bytes, .cursor, scope: query.scope, key: key)
    }

    init?(token: String, _ query: RecordQuery, key: [UInt8]) {
        guard var reader = SealedToken.open(token, .cursor, scope: query.scope, key: key),
            reader.run().map({ $0.elementsEqual(Self.fingerprint(query)) }) == true, let mark = reader.integer(),
            let time = reader.integer()
        else { return nil }
        if mark == Self.marks.record, let text = reader.run(),
            let record = RecordID(String(decoding: text, as: UTF8.self)), reader.isAtEnd
        {
            self = .record(record, begun: time)
        } else if mark == Self.marks.time, let began = reader.integer(), reader.isAtEnd {
            self = .time(time, began: began < 0 ? nil : began)
        } else {
            return nil
        }
    }

    /// The entity and the kind of scan, not what is looked for: a caller who changes that gets what he asked for.
    private static func fingerprint(_ query: RecordQuery) -> [UInt8] {
        let kind = if case .since = query.delta { "since" } else { "list" }
        return Array(SHA256.digest(Array("\(kind)\0".utf8) + EntityKey(query.entity).bytes).prefix(8))
    }
}

/// A page of a list as it grows.
private struct RecordList {
    let reader: any ScopeReader
    let query: RecordQuery
    let byteBudget: Int
    var rows: RowSplicer
    var deleted: DeletedHeader?
    private(set) var stamp: Int64

    init(reader: any ScopeReader, query: RecordQuery, limit: Int, byteBudget: Int) {
        self.reader = reader
        self.query = query
        self.byteBudget = byteBudget
        rows = RowSplicer(limit: limit, byteBudget: byteBudget)
        rows.writer.raw("[")
        stamp = reader.state.lastTime
        if query.delta != nil { deleted = DeletedHeader() }
    }

    mutating func finish() -> [UInt8] {
        rows.writer.raw("]")
        return rows.writer.bytes
    }

    /// Fills the page, and answers where the next one begins; `nil` behind the last.
    mutating func fill(from place: ListPlace?, now: Int64) throws -> ListPlace? {
        switch (query.delta, place) {
        case (.since(let time)?, nil): return try fill(since: time, began: nil, now: now)
        case (.since?, .time(let time, let began)?): return try fill(since: time, began: began, now: now)
        case (.held(let held)?, nil):
            try listGone(held)
            return try fill(after: nil, holding: held)
        case (.held(let held)?, .record(let record, let begun)?):
            stamp = begun
            return try fill(after: record, holding: held)
        case (nil, nil): return try fill(after: nil, holding: [:])
        case (nil, .record(let record, let begun)?):
            stamp = begun
            return try fill(after: record, holding: [:])
        case (.since?, .record?), (.held?, .time?), (nil, .time?):
            throw Problem(.invalidCheckpoint, "`cursor` is not one of this list.")
        }
    }

    // MARK: In the order of ids

    /// Lists the held records that are not in the list: deleted, never here, or not matched by the filters any more.
    /// Held records are read where there are filters, as many bytes of them as a page may have.
    private mutating func listGone(_ held: [[UInt8]: Int64]) throws {
        var read = 0
        for id in held.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            var isThere = false
            if let record = RecordID(String(decoding: id, as: UTF8.self)) {
                try reader.newest(entity: query.entity, record: record) { change in
                    guard change.kind != .delete else { return }
                    read += query.filters.isEmpty ? 0 : change.payload.count
                    isThere =
                        query.filters.isEmpty
                        || data(of: change).map { query.filters.matches(change.record, $0) } ?? false
                }
            }
            guard read <= byteBudget else {
                throw Problem(
                    .headerTooLarge, "The records that `\(DeltaHeader.name)` names hold more than \(byteBudget) bytes.")
            }
            if !isThere { _ = deleted?.append(id) }
        }
    }

    private mutating func fill(after record: RecordID?, holding held: [[UInt8]: Int64]) throws -> ListPlace? {
        // Taken out while the store's closure fills it: a second reference would copy the page so far.
        var rows = RowSplicer(limit: 0, byteBudget: 0)
        swap(&rows, &self.rows)
        defer { self.rows = rows }
        var last = record
        try reader.records(of: query.entity, above: 0, at: nil, after: record) { change in
            if held[Array(change.record)] == change.time {
                guard rows.passOver(change) else { return false }
            } else if let data = data(of: change), query.filters.matches(change.record, data) {
                guard rows.hasRoom(for: change) else { return false }
                append(change, data, to: &rows)
            } else {
                guard rows.passOver(change) else { return false }
            }
            last = RecordID(String(decoding: change.record, as: UTF8.self))
            return true
        }
        return rows.isFull ? last.map { .record($0, begun: stamp) } : nil
    }

    // MARK: In the order of times

    private mutating func fill(since time: Int64, began: Int64?, now: Int64) throws -> ListPlace? {
        let start = try reader.boundary(of: time, began: began, now: now)
        var rows = RowSplicer(limit: 0, byteBudget: 0)
        swap(&rows, &self.rows)
        defer { self.rows = rows }
        var gone = DeletedHeader()
        var last = start.time
        let entity = Array(query.entity.utf8)
        try reader.changes(
            after: start.position, through: reader.state.head, tombstonesAfter: start.tombstonesAfter
        ) { change in
            if change.kind == .idmap || !Identifier.isSameName(change.entity, entity) {
                guard rows.passOver(change) else { return false }
            } else if change.kind != .delete, let data = data(of: change),
                query.filters.matches(change.record, data)
            {
                guard rows.hasRoom(for: change) else { return false }
                append(change, data, to: &rows)
            } else {
                guard rows.passOver(change),
                    gone.append(change.record, within: Limits.deletedHeaderBytes)
                else {
                    rows.end()
                    return false
                }
            }
            last = change.time
            return true
        }
        deleted = gone
        guard rows.isFull else { return nil }
        stamp = last
        return .time(last, began: start.began)
    }

    private func data(of change: BorrowedChange) -> DataObject? { try? DataObject(stored: Array(change.payload)) }

    private func append(_ change: BorrowedChange, _ data: DataObject, to rows: inout RowSplicer) {
        rows.separate()
        query.spelling.write(change.record, at: change.time, data, to: &rows.writer)
    }
}
