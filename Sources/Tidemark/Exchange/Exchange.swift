import GRDB
import TidemarkCore
import TidemarkWire

/// A round trip of one scope: the request, and the conditions that must still hold when the answer comes.
struct Exchange: Sendable {
    var scope: Scope
    /// Whether a page is asked for too; not while the scope is being filled.
    var isPull: Bool
    var since: String?
    var acknowledged: [String: Int64]
    /// The operations that are sent: an answer with a verdict on any other one is another request's.
    var keys: Set<OperationKey>
    /// The operation that is sent alone, or the group, and its size; empty where the request can be made smaller.
    var onlyKeys: [OperationKey]
    var onlyBytes: Int
    /// The operations that were sealed in runs of the first capture.
    private var seeds: [OperationKey: SealedSeed]
    /// The operations that are sent by entity, with their bytes.
    var traffic: [String: SyncMeasures.Traffic] = [:]
    /// Marks behind those that turned out to be no edits, where nothing is sent.
    var marksLeft: Int
    /// Whether there is more to send than the request takes.
    var isFull: Bool
    /// The history that the scope is in.
    var epoch: String?
    /// The last operation's place in the outbox.
    var lastOperation: Int64?
    /// What the request tells of this device, where that is something new.
    var report: DeviceReport?
    /// Records to be asked for by name first.
    var refetch: [RefetchQueue.Record]
    var lane: String
    var schema: SyncSchema
    var declarations: Declarations
    private(set) var request: TransportRequest
    private var body: Body

    /// A request's body in two parts: what it asks, and the operations, which may be sealed before that is known.
    private struct Body: Sendable {
        let device: DeviceReport?
        let pageLimit: Int
        let takesDifferences: Bool
        /// How far verdicts are applied in each lane, and the operations; empty once the request is written.
        var operations: [UInt8]
    }

    /// Seals what is pending and writes the request. Runs inside a write transaction, so that what is sent is durable
    /// before it leaves.
    ///
    /// - Parameter behind: the last operation of a request that is under way, behind which this one goes.
    init(
        _ db: Database, record: ScopeRecord, isPull: Bool, lane: String, schema: SyncSchema, declarations: Declarations,
        pageLimit: Int, takesDifferences: Bool, operationLimit: Int, behind: Int64? = nil, telling: Telling, now: Int64
    ) throws {
        let scope = record.scope
        try schema.check(db, scope)
        // A lane that is not in the file is drawn anew: another engine on this file may have told the server all about
        // it and taken it off the list, and its numbers must never be used again.
        let lane = try Outbox.hasLane(db, lane) ? lane : randomHex(bytes: 16)
        let sealing = OutboxBatcher(
            db: db, schema: schema, scope: record, declarations: declarations, lane: lane, now: now,
            operationLimit: operationLimit, behind: behind)
        let entries = try sealing.batch()
        // A commit that changes nothing syncs nothing: keys that an earlier transaction gave out are safe now too.
        if let first = entries.first { try Outbox.noteSending(db, first, now: now) }
        self.scope = scope
        self.isPull = isPull
        self.lane = lane
        self.schema = schema
        self.declarations = declarations
        since = record.checkpoint
        let later = try entries.last.map { try Outbox.lanes(db, scope, ofOpenBehind: $0.id) } ?? []
        // Operations that stand behind these ones may still name numbers that are done with (W34).
        acknowledged = try Outbox.acknowledgements(db, scope: scope).filter { !later.contains($0.key) }
        keys = Set(entries.map(\.key))
        seeds = entries.reduce(into: [:]) { $0[$1.key] = $1.seed }
        let isOne = entries.count == 1 || entries.first?.group != nil && Set(entries.map(\.group)).count == 1
        onlyKeys = isOne ? entries.map(\.key) : []
        onlyBytes = isOne ? entries.reduce(0) { $0 + $1.members.count } : 0
        // A snapshot brings the records that it fills, so none is asked for by name meanwhile.
        refetch = record.bootstrap != nil ? [] : try Self.refetch(db, scope, declarations)
        marksLeft = entries.isEmpty ? try Pending.marks(db, schema, scope) : 0
        report = try telling.report(
            db, schema, scope, beside: entries, now: Dependencies.current.uptime, time: now)
        isFull = try !entries.isEmpty && (!later.isEmpty || Pending.isMarked(db, schema, scope))
        epoch = record.epoch
        lastOperation = entries.last?.id
        var writer = JSONWriter(capacity: entries.reduce(64) { $0 + $1.members.count + 80 })
        traffic = Self.write(acknowledged, entries, to: &writer)
        body = Body(
            device: report, pageLimit: pageLimit, takesDifferences: takesDifferences, operations: writer.bytes)
        request = TransportRequest(
            method: "POST", path: isPull ? "/sync" : "/sync/push",
            headers: TransportRequest.headers(clientID: schema.clientID))
        if behind == nil { write() }
    }

    /// The records to be asked for by name. The server hands out nothing of a table that is only pushed: its records
    /// stay as they are.
    private static func refetch(
        _ db: Database, _ scope: Scope, _ declarations: Declarations
    ) throws -> [RefetchQueue.Record] {
        let noted = try RefetchQueue.all(db, scope, limit: RecordFetch.requestLimit)
        let pushed = Set(noted.map(\.entity)).filter { declarations.entity($0).direction == .push }
        guard !pushed.isEmpty else { return noted }
        for entity in pushed { try RefetchQueue.remove(db, scope, entity) }
        return try refetch(db, scope, declarations)
    }

    /// Writes the request's body.
    private mutating func write() {
        request.body = written
        body.operations = []
    }

    private var written: [UInt8] {
        var writer = JSONWriter(capacity: body.operations.count + 512)
        writer.raw("{\"protocolVersion\":1,\"scope\":")
        writer.string(scope.name)
        writer.member("clientId", schema.clientID)
        if isPull {
            if let since { writer.member("since", since) }
            writer.member("limit", Int64(body.pageLimit))
            if body.takesDifferences { writer.raw(",\"patches\":true,\"partial\":true") }
        }
        if let report = body.device {
            writer.memberName("device")
            report.append(to: &writer)
        }
        writer.raw(body.operations)
        return writer.bytes
    }

    /// Whether the page's history is the one that the scope was in, or began with.
    func isSameHistory(_ page: Answer.Page) -> Bool {
        guard let epoch, let named = page.epoch, named != epoch else { return true }
        return Epoch(text: epoch)?.isBeforeAll == true
    }

    /// The same, going on from a page that is not applied yet.
    func following(_ page: Answer.Page) -> Exchange {
        var next = self
        next.since = page.nextSince
        next.epoch = page.epoch ?? epoch
        next.write()
        return next
    }

    /// The question for a page alone.
    func withoutOperations(pageLimit: Int) -> Exchange {
        var next = self
        (next.keys, next.onlyKeys, next.onlyBytes, next.seeds) = ([], [], 0, [:])
        (next.marksLeft, next.isFull, next.lastOperation, next.report, next.refetch) = (0, false, nil, nil, [])
        var writer = JSONWriter(capacity: 64)
        next.traffic = Self.write(acknowledged, [], to: &writer)
        next.body = Body(
            device: nil, pageLimit: pageLimit, takesDifferences: body.takesDifferences, operations: writer.bytes)
        return next
    }

    /// How far verdicts are applied in each lane, and the operations: the request's last two members.
    private static func write(
        _ acknowledged: [String: Int64], _ entries: [OutboxEntry], to writer: inout JSONWriter
    ) -> [String: SyncMeasures.Traffic] {
        var traffic: [String: SyncMeasures.Traffic] = [:]
        writer.raw(",\"acked\":{")
        for (index, lane) in acknowledged.sorted(by: { $0.key < $1.key }).enumerated() {
            if index > 0 { writer.raw(",") }
            writer.string(lane.key)
            writer.raw(":")
            writer.integer(lane.value)
        }
        writer.raw("},\"operations\":[")
        for (index, entry) in entries.enumerated() {
            if index > 0 { writer.raw(",") }
            let start = writer.bytes.count
            entry.append(to: &writer)
            traffic[entry.entity, default: .init()] += .init(sent: 1, bytesSent: writer.bytes.count - start)
        }
        writer.raw("]}")
        return traffic
    }

    /// Reads an answer to its end; anything but our own JSON is refused before it comes near the database.
    func answer(_ response: TransportResponse) throws -> Answer {
        try response.checkType(scope: scope)
        let answer = try Answer(body: response.body)
        // Asked with a page's limit, so an answer without one has been cut or belongs to something else.
        guard isPull == (answer.page != nil) else { throw JSONError(.missingMember, at: response.body.count) }
        // A page leaves out what its own request has brought: with another one's verdicts it would lack that here.
        guard answer.results.allSatisfy({ keys.contains($0.key) }) else {
            throw SyncError(
                .answerUnusable, "The answer belongs to another request.", hint: "It is asked for again.", scope: scope)
        }
        return answer
    }

    /// Answers an operation that no request can carry, in the server's place.
    func answered(_ refusal: Verdict.Refusal, now: Int64) throws -> ApplyTransaction {
        var writer = JSONWriter(capacity: 256)
        writer.raw("{\"results\":[")
        for (index, key) in onlyKeys.enumerated() {
            writer.raw(index == 0 ? "{\"lane\":" : ",{\"lane\":")
            writer.string(key.lane)
            writer.member("number", key.number)
            writer.raw(",")
            writer.raw(Verdict(.rejected, refusal: refusal).members())
            writer.raw("}")
        }
        writer.raw("]}")
        var transaction = transaction(try Answer(body: writer.bytes), now: now)
        // The server has not taken this request, and so has not heard what it acknowledged.
        transaction.acknowledged = [:]
        return transaction
    }

    func transaction(_ answer: Answer, now: Int64) -> ApplyTransaction {
        ApplyTransaction(
            answer: answer, scope: scope, since: since, acknowledged: acknowledged, lane: lane, schema: schema,
            declarations: declarations, now: now, seeds: seeds)
    }
}
