import TidemarkCore
package import TidemarkWire

/// A page of a walk in key order.
package struct SnapshotPage: Sendable {
    package var body: [UInt8]
    /// Whether the same address gives the same bytes as long as the window holds the pin.
    package var isImmutable: Bool
}

extension SyncServer {
    /// `GET /sync/snapshot`, and the same walk as a delta with `order=priority` (A5, A15, A18): the scope as of one
    /// version, in pages, critical entities first, each in key order. What is written meanwhile never shows in it.
    package func snapshot(
        of scope: Scope, token: String?, cursor: String?, since: String? = nil, limit: Int64?, access: Access
    ) async throws -> SnapshotPage {
        try access.require(.read, in: scope)
        let limit = try pageLimit(limit)
        let (key, byteBudget, declarations) = (store.tokenKey, limits.pageBytes, declarations)
        let withheld = withheld(from: access)
        return try await store.read(scope) { reader in
            let history = reader.state.history
            let pin = try Self.pin(token, since: since, scope, key: key, history: history, order: declarations.order)
            let place = try cursor.map { text in
                guard let cursor = Cursor(token: text, in: pin, scope: scope, key: key) else {
                    throw Problem(.invalidCheckpoint, "`pageCursor` is not one of this walk.")
                }
                return cursor
            }
            var walk = KeyWalk(reader: reader, pin: pin, isExact: pin.horizon >= history.sweepFloor)
            walk.withheld = withheld
            walk.rows = RowSplicer(limit: limit, byteBudget: byteBudget)
            return try walk.page(of: scope, from: place, order: declarations, key: key)
        }
    }

    private static func pin(
        _ token: String?, since: String?, _ scope: Scope, key: [UInt8], history: ScopeHistory, order: Int64
    ) throws -> Pin {
        guard let token else {
            let base = try since.map { try Checkpoint(token: $0, scope: scope, key: key).resumed(in: history).complete }
            return Pin(
                incarnation: history.incarnation(of: history.head), horizon: history.head, base: base ?? 0, order: order
            )
        }
        guard let pin = Pin(token: token, scope: scope, key: key) else {
            throw Problem(.invalidCheckpoint, "`snapshotToken` is not one of scope \(scope).")
        }
        guard pin.order == order, pin.isServable(in: history) else {
            throw Problem(.snapshotExpired, "The walk can no longer be continued.")
        }
        return pin
    }
}

/// Walks a scope's records in key order, entity by entity.
private struct KeyWalk {
    let reader: any ScopeReader
    let pin: Pin
    let isExact: Bool
    var withheld = EntityNames()
    var rows = RowSplicer(limit: 1, byteBudget: 1)
    private var last: Cursor?

    init(reader: any ScopeReader, pin: Pin, isExact: Bool) {
        self.reader = reader
        self.pin = pin
        self.isExact = isExact
    }

    mutating func page(
        of scope: Scope, from place: Cursor?, order: Declarations, key: [UInt8]
    ) throws -> SnapshotPage {
        rows.writer.raw("{\"scope\":")
        rows.writer.string(scope.name)
        rows.writer.member("epoch", pin.checkpoint.epoch)
        rows.writer.raw(",\"changes\":[")
        for entity in order.sorted(try reader.entities()) where !rows.isFull {
            if withheld.contains(entity) { continue }
            if let place, order.precedes(entity, place.entity) { continue }
            try visit(entity, after: place.flatMap { $0.entity == entity ? $0.record : nil })
        }
        rows.writer.raw("]")
        rows.writer.member("snapshotToken", pin.token(scope: scope, key: key))
        rows.writer.memberName("pageCursor")
        if rows.isFull, let last {
            rows.writer.string(last.token(in: pin, scope: scope, key: key))
        } else {
            rows.writer.raw("null")
        }
        rows.writer.memberName("hasMore")
        rows.writer.bool(rows.isFull)
        rows.writer.memberName("consistent")
        rows.writer.bool(isExact)
        if !rows.isFull { rows.writer.member("nextSince", pin.checkpoint.token(scope: scope, key: key)) }
        rows.writer.member("head", pin.horizon)
        rows.writer.raw("}")
        return SnapshotPage(body: rows.writer.bytes, isImmutable: isExact)
    }

    private mutating func visit(_ entity: String, after record: RecordID?) throws {
        // Taken out while the store's closure fills it: a second reference would copy the page so far.
        var rows = RowSplicer(limit: 0, byteBudget: 0)
        swap(&rows, &self.rows)
        defer { self.rows = rows }
        var last = self.last
        defer { self.last = last }
        try reader.records(
            of: entity, above: pin.base, at: isExact ? pin.horizon : nil, after: record
        ) { change in
            guard rows.hasRoom(for: change) else { return false }
            rows.append(change)
            // Ids were checked when they came in, so what the store gives back is one.
            last = RecordID(String(decoding: change.record, as: UTF8.self)).map { Cursor(entity: entity, record: $0) }
            return true
        }
    }
}

extension Declarations {
    /// A number that changes with the order of entities.
    fileprivate var order: Int64 {
        let text = entities.map { "\($0.priority) \($0.name)" }.joined(separator: "\n")
        return SHA256.digest(Array(text.utf8)).prefix(7).reduce(0) { $0 << 8 | Int64($1) }
    }

    private func priority(_ entity: String) -> Int { self[entity]?.priority ?? EntityDeclaration(entity).priority }

    fileprivate func precedes(_ left: String, _ right: String) -> Bool {
        (priority(left), left) < (priority(right), right)
    }

    fileprivate func sorted(_ names: [String]) -> [String] { names.sorted(by: precedes) }
}
