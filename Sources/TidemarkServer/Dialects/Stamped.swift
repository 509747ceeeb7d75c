import TidemarkCore
package import TidemarkWire

extension SyncServer {
    /// `POST /sync/stamped`: the exchange of devices that have two stamps (D1–D3).
    ///
    /// An item wins if it was edited later than the record, by the clocks of their devices, each believed between its
    /// last sync and now. The others get the winner back, whenever that was written.
    ///
    /// - Parameters:
    ///   - size: bytes of the body; `body` gives them when their turn has come.
    ///   - caller: who asks, for the turns.
    package func stamped(
        _ size: Int, of body: @escaping @Sendable () throws -> [UInt8], in scope: Scope, for caller: String,
        access: Access
    ) async throws -> [UInt8] {
        try access.require(.read, in: scope)
        return try await inTurn(size, for: caller) {
            let limit = limits.operations
            let request = try await offload(size) {
                let bytes = try body()
                return try Self.understood { () throws(JSONError) in try bytes.stampedRequest(itemLimit: limit) }
            }
            return try await exchange(request, in: scope, access: access)
        }
    }

    private func exchange(_ request: StampedRequest, in scope: Scope, access: Access) async throws -> [UInt8] {
        if !request.items.isEmpty { try access.require(.readWrite, in: scope) }
        let limit = try pageLimit(request.limit)
        // A request that will be refused for its stamp must not have applied anything.
        let known = try await readScope(scope, for: access.principal) {
            try $0.boundary(of: request.clientStamp, began: request.began, now: self.configuration.moment()).position
        }
        var outcome = StampedOutcome()
        while outcome.taken < request.items.count {
            let (before, moment) = (outcome, configuration.moment())
            let (after, head) = try await withoutGrants { grants in
                try await writeScope(scope, for: access.principal) { writer in
                    let superseded = writer.state.superseded
                    let head = writer.state.head
                    try self.drainCapture(writer, scope, limit: Self.capturedBeforePush, at: moment)
                    var push = StampedPush(
                        self, writer, request, before, knowing: known, in: scope, access, at: moment)
                    try writer.checkingReferences(of: access, grants: grants) { try push.take() }
                    try self.drainCapture(
                        writer, scope,
                        limit: Self.capturedBeforePush + 2 * (push.outcome.taken - before.taken), at: moment)
                    try self.boundWindow(writer, since: superseded)
                    return (push.outcome, writer.state.head > head ? writer.state.head : nil)
                }
            }
            outcome = after
            if let head { tell(scope, head) }
        }
        let (done, withheld, byteBudget) = (outcome, withheld(from: access), limits.pageBytes)
        return try await readScope(scope, for: access.principal) { reader in
            var page = StampedPage(
                reader: reader, rows: RowSplicer(limit: limit, byteBudget: byteBudget), withheld: withheld)
            let start = try reader.boundary(
                of: request.clientStamp, began: request.began, now: self.configuration.moment())
            return try page.write(request, done, from: start) { self.spelling(of: $0, in: reader.state) }
        }
    }
}

extension [UInt8] {
    fileprivate func stampedRequest(itemLimit limit: Int) throws(JSONError) -> StampedRequest {
        try withUnsafeBytes { bytes in
            Result { () throws(JSONError) in try StampedRequest(from: bytes, itemLimit: limit) }
        }.get()
    }
}

/// Tells of a request's items what became of them so far.
private struct StampedOutcome: Sendable {
    struct Refusal: Sendable {
        var item: Int
        var code: String
        var detail: String
    }

    var taken = 0
    /// Versions written exactly as the device has them.
    var verbatim: Set<Version> = []
    /// Places of items that the server's record stands against.
    var lost: [Int] = []
    var refused: [Refusal] = []
}

/// Takes items inside one transaction, as many as one push may.
private struct StampedPush {
    /// No device has such a name.
    private static let client = "stamped"

    let server: SyncServer
    let writer: any ScopeWriter
    let request: StampedRequest
    let moment: Int64
    /// When the device was in sync last; 0 where that is not known.
    let lastSync: Int64
    /// The device has the scope's rows as of this version.
    let known: Version
    var outcome: StampedOutcome
    var push: Push

    init(
        _ server: SyncServer, _ writer: any ScopeWriter, _ request: StampedRequest, _ outcome: StampedOutcome,
        knowing known: Version, in scope: Scope, _ access: Access, at moment: Int64
    ) {
        self.server = server
        self.writer = writer
        self.request = request
        self.outcome = outcome
        self.moment = moment
        self.known = known
        lastSync = writer.believed(request.clientStamp, now: moment)
        push = Push(
            server: server, writer: writer, request: ExchangeRequest(scope: scope, clientID: Self.client),
            access: access, moment: moment)
        push.hasStamps = true
    }

    mutating func take() throws {
        let first = outcome.taken
        while outcome.taken < request.items.count {
            // At least one item is always taken, so that every device gets on.
            if outcome.taken > first, push.cost.isSpent { break }
            try take(request.items[outcome.taken], at: outcome.taken)
            outcome.taken += 1
        }
        try push.storeTallies()
        try push.storeGrowth()
    }

    private mutating func take(_ item: StampedRequest.Item, at place: Int) throws {
        let entity = server.spelling(of: item.entity, in: writer.state)
        let current = try writer.newest(entity: entity, record: item.record)
        let stamp = believed(item.stamp)
        if let current, push.declaration(of: entity)?.kind == .state, stamp <= EditStamp(of: current) {
            outcome.lost.append(place)
            return
        }
        var operation = Operation(item.data == nil ? .delete : .upsert, entity: entity, id: item.record)
        operation.fields = item.data ?? .empty
        operation.editedAt = stamp.text
        operation.syncedAt = lastSync
        // The stamps have decided already: it edits the record as it stands. Where a person decides, it has to ask.
        if let current, current.payload != nil, let declaration = push.declaration(of: entity),
            declaration.kind == .state, declaration.conflict != .manual
        {
            operation.baseVersion = current.version
        }
        if item.data == nil, current?.payload != nil, push.declaration(of: entity)?.conflict == .manual {
            outcome.lost.append(place)
            return
        }
        let (verdict, isVerbatim) = try push.applyWithinQuota(operation, lane: push.name(Self.client))
        switch verdict.status {
        case .applied, .merged, .outcomeUnknown:
            if isVerbatim, try hasAll(of: current, item), let version = verdict.version {
                outcome.verbatim.insert(version)
            }
        case .conflict: outcome.lost.append(place)
        case .rejected, .deferred:
            outcome.refused.append(
                .init(
                    item: place, code: verdict.refusal?.code ?? RejectionCode.unsupportedOperation,
                    detail: verdict.refusal?.detail ?? "The item has to wait."))
            // The device is told of the record in the item's place too, so that it need not go on with a state that
            // nobody else has.
            if current != nil { outcome.lost.append(place) }
        }
    }

    /// Whether the device has the whole record as it stands now: of one that others have written since, it has only
    /// what it sent.
    private func hasAll(of current: StoredRecord?, _ item: StampedRequest.Item) throws -> Bool {
        guard let current, let sent = item.data, current.version > known,
            !outcome.verbatim.contains(current.version)
        else { return true }
        // The device edits a record that it has not heard is deleted: it may have fields that went with it.
        guard let payload = current.payload else { return false }
        let names = Set(sent.fields.map { Identifier.folded(sent.name($0)) })
        let stored = try DataObject(stored: payload)
        return stored.fields.allSatisfy { names.contains(Identifier.folded(stored.name($0))) }
    }

    /// The time of an edit, above the device's last sync and not above now (D2). An edit since the last sync is later
    /// than all that the device had seen by then, whatever its clock says.
    private func believed(_ stamp: Int64) -> EditStamp {
        let last = min(lastSync, writer.state.lastTime)
        return EditStamp(milliseconds: min(max(stamp, last + 1), max(moment, last + 1)))
    }
}

extension EditStamp {
    /// When a record was edited last, or deleted; where nobody has said so, when it was written.
    fileprivate init(of stored: StoredRecord) {
        let last = stored.payload == nil ? LastState(stored: stored.fieldVersions) : nil
        let stamp =
            last?.deletedAt ?? FieldVersions(stored: stored.fieldVersions, rowVersion: stored.version).newestStamp
        self = stamp == .zero ? EditStamp(milliseconds: stored.time) : stamp
    }
}

/// The answer as it grows: records that stand against items, then what has changed since the stamp, in its order.
private struct StampedPage {
    private struct Name: Hashable {
        var entity: EntityKey
        var record: [UInt8]
    }

    let reader: any ScopeReader
    var rows: RowSplicer
    let withheld: WithheldEntities
    private var told: Set<Name> = []
    /// The time up to which everything is told.
    private var stamp: Int64 = 0

    init(reader: any ScopeReader, rows: RowSplicer, withheld: WithheldEntities) {
        self.reader = reader
        self.rows = rows
        self.withheld = withheld
        stamp = reader.state.lastTime
    }

    mutating func write(
        _ request: StampedRequest, _ outcome: StampedOutcome, from start: TimeBoundary,
        spelling: (String) -> String
    ) throws -> [UInt8] {
        var outcome = outcome
        rows.writer.raw("{\"items\":[")
        for place in outcome.lost {
            let item = request.items[place]
            guard try !tell(spelling(item.entity), item.record) else { continue }
            // The stamp stays where it is, however old the record.
            outcome.refused.removeAll { $0.item == place }
            outcome.refused.append(
                .init(item: place, code: RejectionCode.pageFull, detail: "The answer is full. Send the item again."))
        }
        try scan(request, outcome, from: start)
        rows.writer.raw("],\"refused\":[")
        for (index, refusal) in outcome.refused.enumerated() {
            if index > 0 { rows.writer.raw(",") }
            rows.writer.raw("{\"entity\":")
            rows.writer.string(request.items[refusal.item].entity)
            rows.writer.member("id", request.items[refusal.item].record.text)
            rows.writer.member("code", refusal.code)
            rows.writer.member("detail", refusal.detail)
            rows.writer.raw("}")
        }
        rows.writer.raw("],\"hasMore\":")
        rows.writer.bool(rows.isFull)
        rows.writer.member("clientStamp", stamp)
        if rows.isFull, let began = start.began { rows.writer.member("began", began) }
        rows.writer.raw("}")
        return rows.writer.bytes
    }

    /// Tells a record by its name, unless there is no room for it.
    private mutating func tell(_ entity: String, _ record: RecordID) throws -> Bool {
        guard !withheld.contains(entity) else { return true }
        let name = Name(entity: EntityKey(entity), record: Array(record.text.utf8))
        guard !told.contains(name) else { return true }
        // Taken out while the store's closure fills it: a second reference would copy the page so far.
        var rows = RowSplicer(limit: 0, byteBudget: 0)
        swap(&rows, &self.rows)
        defer { self.rows = rows }
        var isTold = true
        try reader.newest(entity: entity, record: record) { change in
            isTold = !rows.isFull && rows.hasRoom(for: change)
            if isTold { Self.write(change, to: &rows) }
        }
        if isTold { told.insert(name) }
        return isTold
    }

    private mutating func scan(_ request: StampedRequest, _ outcome: StampedOutcome, from start: TimeBoundary) throws {
        guard !rows.isFull else {
            stamp = min(stamp, start.time)
            return
        }
        var rows = RowSplicer(limit: 0, byteBudget: 0)
        swap(&rows, &self.rows)
        defer { self.rows = rows }
        var last = start.time
        try reader.changes(
            after: start.position, through: reader.state.head, tombstonesAfter: start.tombstonesAfter
        ) { change in
            if change.kind == .idmap || withheld.containsEntity(of: change) || outcome.verbatim.contains(change.version)
                || isTold(change)
            {
                guard rows.passOver(change) else { return false }
            } else {
                guard rows.hasRoom(for: change) else { return false }
                Self.write(change, to: &rows)
            }
            last = change.time
            return true
        }
        if rows.isFull { stamp = min(stamp, last) }
    }

    private func isTold(_ change: BorrowedChange) -> Bool {
        guard !told.isEmpty else { return false }
        let entity = EntityKey(String(decoding: change.entity, as: UTF8.self))
        return told.contains(Name(entity: entity, record: Array(change.record)))
    }

    private static func write(_ change: BorrowedChange, to rows: inout RowSplicer) {
        rows.separate()
        rows.writer.raw("{\"entity\":")
        rows.writer.string(utf8: change.entity)
        rows.writer.raw(",\"id\":")
        rows.writer.string(utf8: change.record)
        if change.kind == .delete {
            rows.writer.raw(",\"deleted\":true}")
        } else {
            rows.writer.raw(",\"data\":")
            rows.writer.raw(change.payload)
            rows.writer.raw("}")
        }
    }
}
