import TidemarkCore
package import TidemarkWire

/// Which page of an entity's changes is wanted by a cursor (E1).
package struct CursorQuery: Hashable, Sendable {
    package var scope: Scope
    package var entity: String
    package var spelling: RecordSpelling
    /// The member that says when a record was deleted, and the one that names it.
    package var deletedAt: String
    package var cursor: String?
    package var limit: Int64?
    /// How the device names itself, where it does.
    package var client: String?

    package init(of path: EntityPath, in scope: Scope) {
        self.scope = scope
        entity = path.entity
        spelling = RecordSpelling(path, time: .date)
        deletedAt = path.deletedAt
    }
}

/// A page of changes, and the cursor behind it, which stands in the body only where more is there already.
package struct CursorPage: Hashable, Sendable {
    package var body: [UInt8]
    package var checkpoint: String
}

extension SyncServer {
    /// `GET /{entity}/delta`: the scan of ``changes(in:since:limit:takes:access:client:)``, of one entity.
    ///
    /// Versions and times grow together, strictly, so the place in the log is the (updated at, id) of the last record:
    /// no two have the same time.
    package func delta(_ query: CursorQuery, access: Access) async throws -> CursorPage {
        try access.require(.read, in: query.scope)
        try requireReadable(query.entity, access)
        let limit = try pageLimit(query.limit)
        let device = try access.device(query.client)
        let (key, byteBudget) = (store.tokenKey, limits.pageBytes)
        let (page, news) = try await readScope(query.scope, for: access.principal) { reader in
            var query = query
            query.entity = self.spelling(of: query.entity, in: reader.state)
            let history = reader.state.history
            let scan =
                try query.cursor.map { text in
                    try LostHistory(reader, of: device).resume(try Self.checkpoint(text, query, key: key))
                    // A caller that begins anew may have stored the `null` of its last page, and is told every deletion
                    // too.
                } ?? .beginning(of: history, holding: reader.state.retentionFloor + 1)
            var delta = CursorDelta(
                query: query, rows: RowSplicer(limit: limit, byteBudget: byteBudget),
                tombstones: JSONWriter(capacity: 256))
            let position = try delta.fill(from: scan, reader)
            let next = Self.cursor(scan.advanced(to: position), query, key: key)
            let page = CursorPage(body: delta.body(next: position == nil ? nil : next), checkpoint: next)
            return (page, try self.news(of: device, at: query.cursor == nil ? nil : scan.retained, reader))
        }
        await note(news, of: device, in: query.scope)
        return page
    }

    /// A checkpoint, bound to the entity too: under another one it would pass over what its reader does not have.
    private static func cursor(_ checkpoint: Checkpoint, _ query: CursorQuery, key: [UInt8]) -> String {
        var writer = ByteWriter()
        writer.run(fingerprint(query))
        writer.run(checkpoint.token(scope: query.scope, key: key).utf8)
        return SealedToken.seal(writer.bytes, .cursor, scope: query.scope, key: key)
    }

    private static func checkpoint(_ text: String, _ query: CursorQuery, key: [UInt8]) throws(Problem) -> Checkpoint {
        guard var reader = SealedToken.open(text, .cursor, scope: query.scope, key: key),
            reader.run().map({ $0.elementsEqual(fingerprint(query)) }) == true, let token = reader.run(), reader.isAtEnd
        else { throw Problem(.invalidCheckpoint, "`cursor` is not one of this entity in scope \(query.scope).") }
        return try Checkpoint(token: String(decoding: token, as: UTF8.self), scope: query.scope, key: key)
    }

    private static func fingerprint(_ query: CursorQuery) -> [UInt8] {
        Array(SHA256.digest(Array("delta\0".utf8) + EntityKey(query.entity).bytes).prefix(8))
    }
}

/// A page as it grows.
private struct CursorDelta {
    let query: CursorQuery
    var rows: RowSplicer
    var tombstones: JSONWriter

    /// Answers the version up to which the page goes, where it does not go to the end.
    mutating func fill(from scan: Checkpoint, _ reader: any ScopeReader) throws -> Version? {
        // Taken out while the store's closure fills it: a second reference would copy the page so far.
        var rows = RowSplicer(limit: 0, byteBudget: 0)
        swap(&rows, &self.rows)
        defer { self.rows = rows }
        var tombstones = tombstones
        defer { self.tombstones = tombstones }
        let entity = Array(query.entity.utf8)
        var position: Version?
        rows.writer.raw("{\"upserts\":[")
        try reader.changes(
            after: scan.position, through: scan.horizon, tombstonesAfter: scan.tombstonesAfter
        ) { change in
            if change.kind == .idmap || !Identifier.isSameName(change.entity, entity) {
                guard rows.passOver(change) else { return false }
            } else {
                guard rows.hasRoom(for: change) else { return false }
                if change.kind == .delete {
                    write(change, to: &tombstones)
                } else if let data = try? DataObject(stored: Array(change.payload)) {
                    rows.separate()
                    query.spelling.write(change.record, at: change.time, data, to: &rows.writer)
                }
            }
            position = change.version
            return true
        }
        return rows.isFull ? position : nil
    }

    private func write(_ change: BorrowedChange, to writer: inout JSONWriter) {
        if !writer.bytes.isEmpty { writer.raw(",") }
        writer.raw("{")
        writer.string(query.spelling.idName)
        writer.raw(":")
        writer.string(utf8: change.record)
        writer.raw(",")
        writer.string(query.deletedAt)
        writer.raw(":")
        Timestamp.write(milliseconds: change.time, to: &writer)
        writer.raw("}")
    }

    mutating func body(next: String?) -> [UInt8] {
        rows.writer.raw("],\"tombstones\":[")
        rows.writer.raw(tombstones.bytes)
        rows.writer.raw("],\"nextCursor\":")
        if let next { rows.writer.string(next) } else { rows.writer.raw("null") }
        rows.writer.raw("}")
        return rows.writer.bytes
    }
}
