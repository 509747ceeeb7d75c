import TidemarkCore
import TidemarkWire

/// The outcome of a request's operations.
struct PushResult: Sendable {
    /// The verdicts as elements of a JSON array.
    var results: [UInt8] = []
    /// Versions written exactly as the device asked: it need not be told of them.
    var verbatim: Set<Version> = []
    /// The versions among them that are edits: a device that begins anew may not have the rest of the record.
    var edits: Set<Version> = []
    /// The name of the history that the verdicts are of; `nil` where there was nothing to do.
    var epoch: String?
    /// The scope's newest version behind them; `nil` where nothing was written.
    var head: Version?
    /// The oldest version that a verdict of this request names; the device holds rows from there on, if any.
    var oldest: Version?
    /// Operations that were not taken, because the request had come to its end: they have no verdict.
    var left: ArraySlice<ExchangeRequest.SealedOperation> = []

    /// Whether a verdict with a record, or with what others wrote, is among the results.
    fileprivate(set) var hasLarge = false

    mutating func note(_ version: Version?) { oldest = [oldest, version].compactMap { $0 }.min() }

    /// Bytes of a verdict that is told whole in any case: without a record, it is hardly ever larger.
    fileprivate static let smallVerdict = 2 << 10

    /// Whether a verdict of so many bytes is told whole. The first large one is, so that a device gets on.
    fileprivate func hasRoom(for bytes: Int, of budget: Int) -> Bool {
        bytes <= Self.smallVerdict || !hasLarge || results.count + bytes <= budget
    }
}

extension SyncServer {
    /// - Parameter grants: what the caller may read of other scopes, as far as his rows may refer to them.
    func push(
        _ request: ExchangeRequest, since checkpoint: Checkpoint?, access: Access, grants: [Scope: Bool]
    ) async throws -> PushResult {
        guard !request.operations.isEmpty || !request.acked.isEmpty else { return PushResult() }
        let moment = configuration.moment()
        let device = DeviceName(principal: access.principal, client: request.clientID)
        return try await writeScope(request.scope, for: access.principal) { writer in
            try LostHistory(writer, of: device).check(request, since: checkpoint)
            let superseded = writer.state.superseded
            try self.drainCapture(writer, request.scope, limit: Self.capturedBeforePush, at: moment)
            var push = try writer.checkingReferences(of: access, grants: grants) {
                try Push.takingAll(request, of: access, writer: writer, server: self, at: moment)
            }
            // Changes that the tables made of the push are in the log with it, and in the same answer: up to two notes
            // of the table's for each row.
            try self.drainCapture(
                writer, request.scope, limit: Self.capturedBeforePush + 2 * request.operations.count, at: moment)
            try push.acknowledge()
            try self.boundWindow(writer, since: superseded)
            let remembered = access.remembered(device)
            let news = try self.news(
                of: remembered, at: checkpoint?.retained, naming: push.result.oldest, telling: request.report, writer)
            try self.note(news, of: remembered, writer)
            push.result.epoch = writer.state.history.epoch(of: writer.state.head).text
            return push.result
        }
    }
}

/// The operations of one request, one after the other, inside one transaction.
struct Push {
    let server: SyncServer
    let writer: any ScopeWriter
    let request: ExchangeRequest
    let access: Access
    let moment: Int64
    let cost: Cost
    var result = PushResult()
    var heights: [String: Int64] = [:]
    /// Which operations of this request took effect.
    var effects: [OperationKey: Bool] = [:]
    /// Links of chains of earlier operations, as far as they were asked for.
    var chains: [OperationKey: ChainLink] = [:]
    /// The user's recent deletes of entities that have a brake, as far as they were asked for.
    var tallies: [EntityKey: DeleteTally] = [:]
    /// Whether conflicts of the caller's edits are resolved by their stamps, whatever is declared (D3); where a person
    /// decides, that stays so.
    var hasStamps = false
    /// The user's recent growth of the scope, where it counts and was asked for.
    var growth: GrowthTally?

    init(server: SyncServer, writer: any ScopeWriter, request: ExchangeRequest, access: Access, moment: Int64) {
        self.server = server
        self.writer = writer
        self.request = request
        self.access = access
        self.moment = moment
        let (large, small) = (server.largeWork, server.smallWork)
        cost = Cost(server.limits, uptime: server.configuration.uptime, delaysOthers: writer.delaysOthers) {
            writer.othersWait || large.hasWaiting || small.hasWaiting
        }
    }

    func name(_ lane: String) -> LaneName {
        LaneName(principal: access.principal, client: request.clientID, lane: lane)
    }

    /// Takes one operation; `nil` for a replay, which only gets its first answer again.
    @discardableResult
    mutating func take(_ sealed: ExchangeRequest.SealedOperation) throws -> Verdict? {
        let key = sealed.key
        let height = try height(of: key.lane)
        if key.number <= height {
            try replay(sealed)
            return nil
        }
        try checkNext(key, above: height)
        let (verdict, isVerbatim) = try applyWithinQuota(sealed.operation, lane: name(key.lane))
        let isWhole = try answer(sealed, verdict)
        if isVerbatim, isWhole, let version = verdict.version {
            result.verbatim.insert(version)
            if sealed.operation.editsKnown { result.edits.insert(version) }
        }
        return verdict
    }

    mutating func height(of lane: String) throws -> Int64 {
        if let known = heights[lane] { return known }
        let height = try writer.lane(name(lane))
        heights[lane] = height
        return height
    }

    func checkNext(_ key: OperationKey, above height: Int64) throws {
        guard key.number != height + 1 else { return }
        var problem = Problem(.operationGap, "Operation \(key.number) came, \(height + 1) is the next of its lane.")
        problem.lane = key.lane
        problem.expected = height + 1
        throw problem
    }

    /// The verdict for the device, or, where the answer is full, one without what makes it large. The device then
    /// fetches the record by its name; an edit that it has to decide about it sends again, and hears then.
    func told(_ verdict: Verdict) -> (verdict: Verdict, members: [UInt8], isWhole: Bool) {
        let members = verdict.members()
        guard verdict.status != .rejected, !result.hasRoom(for: members.count, of: server.limits.resultBytes) else {
            return (verdict, members, true)
        }
        let short = short(of: verdict, id: verdict.id)
        return (short, short.members(), false)
    }

    /// A verdict without the record. Values that it overwrote or lost are still told, as far as there is any room.
    private func short(of verdict: Verdict, id: RecordID?) -> Verdict {
        var short = Verdict(short: verdict.tookEffect, version: verdict.version, id: id)
        guard verdict.tookEffect else { return short }
        (short.overwrites, short.losses) = (verdict.overwrites, verdict.losses)
        (short.revived, short.theirsAt) = (verdict.revived, verdict.theirsAt)
        let hasRoom = result.results.count + short.members().count <= 2 * server.limits.resultBytes
        return hasRoom ? short : Verdict(short: true, version: verdict.version, id: id)
    }

    /// An entity's declaration, with the server's fields that only the store knows of.
    func declaration(of entity: String) -> EntityDeclaration? {
        var declaration = server.declaration(of: entity)
        declaration?.serverFields += writer.serverFields(of: entity)
        if hasStamps, declaration?.conflict != .manual { declaration?.conflict = .lastEditWins }
        return declaration
    }

    /// A refused operation as the operator may still apply it: without the fields that its author may not write.
    private func writable(_ operation: Operation) -> Operation {
        guard !access.isService, let declaration = declaration(of: operation.entity) else { return operation }
        guard !declaration.serverFields.isEmpty else { return operation }
        var operation = operation
        let fields = operation.fields
        operation.fields = fields.filter { !declaration.isServerField(fields.nameString($0)) }
        return operation
    }

    /// Stores a verdict and answers it: whatever it says, the number is used up. Returns whether it is told whole.
    @discardableResult
    mutating func answer(_ sealed: ExchangeRequest.SealedOperation, _ verdict: Verdict) throws -> Bool {
        let (_, members, isWhole) = told(verdict)
        cost.write(members.count)
        // A patch that cannot be made whole is sent again by itself: nobody has to decide anything.
        if verdict.status == .rejected, let refusal = verdict.refusal, refusal.code != RejectionCode.patchBaseUnknown {
            cost.write(sealed.operation.fields.bytes.count)
            try writer.keep(
                StoredRejection(
                    writable(sealed.operation), refusal, scope: request.scope, lane: name(sealed.key.lane),
                    number: sealed.key.number, time: moment),
                limit: server.configuration.rejectionLimit)
        }
        try writer.store(
            StoredVerdict(
                digest: SHA256.digest(sealed.operation.canonicalBytes()), members: members, version: verdict.version,
                baseNumber: sealed.operation.baseNumber, tookEffect: verdict.tookEffect),
            name(sealed.key.lane), sealed.key.number, at: moment)
        heights[sealed.key.lane] = sealed.key.number
        effects[sealed.key] = verdict.tookEffect
        result.note(verdict.version ?? verdict.record?.version)
        append(sealed.key, members, isReplayed: false)
        return isWhole
    }

    /// The same key again: the first answer again, however late, and no second effect (B9).
    mutating func replay(_ sealed: ExchangeRequest.SealedOperation) throws {
        let key = sealed.key
        guard let stored = try writer.verdict(name(key.lane), key.number) else {
            // Its version is forgotten: it may have been any.
            result.note(1)
            var verdict = Verdict(.outcomeUnknown)
            verdict.id = try knownID(of: sealed.operation)
            append(key, verdict.members(), isReplayed: true)
            return
        }
        guard stored.digest == SHA256.digest(sealed.operation.canonicalBytes()) else {
            let refusal = Verdict.Refusal(
                code: RejectionCode.operationMismatch, detail: "This key was used before with another payload.",
                hint: "Seal the edit again under a new number.")
            append(key, Verdict(.rejected, refusal: refusal).members(), isReplayed: false)
            return
        }
        // A verdict without a version may stand before others that wrote something and are not in this request.
        result.note(stored.version ?? 1)
        guard result.hasRoom(for: stored.members.count, of: server.limits.resultBytes) else {
            let short = short(of: try Verdict(members: stored.members), id: try knownID(of: sealed.operation))
            return append(key, short.members(), isReplayed: true)
        }
        append(key, stored.members, isReplayed: true)
    }

    private mutating func append(_ key: OperationKey, _ members: [UInt8], isReplayed: Bool) {
        var writer = JSONWriter(capacity: members.count + 80)
        if !result.results.isEmpty { writer.raw(",") }
        writer.raw("{\"lane\":")
        writer.string(key.lane)
        writer.member("number", key.number)
        writer.raw(",")
        writer.raw(members)
        if isReplayed { writer.raw(",\"replayed\":true") }
        writer.raw("}")
        result.results += writer.bytes
        if members.count > PushResult.smallVerdict { result.hasLarge = true }
    }

    /// Acknowledged verdicts are dropped after the operations, which may still have named them; those that were not
    /// taken still will.
    func acknowledge() throws {
        var named: [String: Int64] = [:]
        for sealed in result.left {
            for number in sealed.operation.needs + [sealed.operation.baseNumber].compactMap({ $0 }) {
                named[sealed.key.lane] = min(named[sealed.key.lane] ?? .max, number)
            }
        }
        for (lane, number) in request.acked.sorted(by: { $0.key < $1.key }) {
            try writer.forgetVerdicts(name(lane), through: min(number, (named[lane] ?? .max) - 1))
        }
    }
}

// MARK: - One operation

extension Push {
    mutating func apply(_ sent: Operation, lane: LaneName) throws -> (Verdict, isVerbatim: Bool) {
        if sent.kind == .void { return (Verdict(.applied), false) }
        let operation = server.spelled(sent, in: writer.state)
        // The operation was not lost after all: its lane is not known any more, but its effect is.
        if let original = operation.original, writer.state.history.contains(original) {
            var verdict = Verdict(.outcomeUnknown)
            verdict.id = try knownID(of: operation)
            return (verdict, false)
        }
        guard let declaration = declaration(of: operation.entity) else {
            return refused(
                RejectionCode.entityUnknown, "Entity \(operation.entity) is not declared on this server.",
                "Declare it in tidemark.yaml, or leave the table out of the device's list.")
        }
        guard server.hasRoom(for: operation.entity, in: writer.state) else {
            return refused(
                RejectionCode.entityUnknown,
                "The scope has records of \(server.limits.entities) entities, as many as it may.",
                "Declare the entity in tidemark.yaml.")
        }
        if let refusal = server.misplacement(of: operation, in: request.scope) ?? refusal(of: operation, declaration) {
            return (Verdict(.rejected, refusal: refusal), false)
        }
        var seen: Set<Version> = []
        if let base = operation.baseNumber {
            guard let chain = try versions(ofChain: base, lane) else {
                var verdict = Verdict(.deferred)
                verdict.after = base
                return (verdict, false)
            }
            seen = chain
        }
        if let missing = try missing(of: operation.needs, lane) {
            var verdict = Verdict(.deferred)
            verdict.after = missing
            return (verdict, false)
        }
        return try identify(operation, declaration, seen: seen)
    }

    /// Brings an operation that names its record into the log and, where it has one, into its own table.
    mutating func write(
        _ operation: Operation, _ record: RecordID, _ declaration: EntityDeclaration, seen: Set<Version>
    ) throws -> (Verdict, isVerbatim: Bool) {
        do { return try writeRow(operation, record, declaration, seen: seen) } catch let refusal as RowRefusal {
            return refused(refusal.code, refusal.detail, refusal.hint)
        }
    }

    /// Brings an operation that names its record into the log; the row's own table may refuse it (`RowRefusal`).
    mutating func writeRow(
        _ operation: Operation, _ record: RecordID, _ declaration: EntityDeclaration, seen: Set<Version>
    ) throws -> (Verdict, isVerbatim: Bool) {
        let caller = EntityRule.Caller(
            principal: access.principal, client: request.clientID, isService: access.isService)
        let ruling = server.ruling(on: operation.entity, in: request.scope, by: caller)
        if declaration.kind == .events {
            var event = operation
            if !access.isService { event.fields = event.fields.leavingOutNull(declaration.serverFields) }
            return try appendEvent(event, record: record, declaration: declaration, ruling: ruling)
        }
        let patched = PatchedOperation(reader: writer, declaration: declaration, seen: seen)
        guard let operation = operation.kind == .patch ? try patched.whole(operation, of: record) : operation else {
            return refused(
                RejectionCode.patchBaseUnknown, "The text that the patch was made from is not known here.",
                "Send the field whole.")
        }
        if let refusal = try brake(operation, record, declaration) {
            return (Verdict(.rejected, refusal: refusal), false)
        }
        let head = writer.state.head
        let applied = try RecordWriter(
            writer: writer, declaration: declaration, limits: server.limits, ruling: ruling, cost: cost
        ).apply(operation, to: record, isService: access.isService, seen: seen, at: moment)
        if applied.verdict.status == .applied, writer.state.head > head { try count(operation, declaration) }
        let isWithheld = declaration.direction == .push && !access.isService
        return (isWithheld ? applied.verdict.withholdingOthers() : applied.verdict, applied.isVerbatim)
    }

    private func refusal(of operation: Operation, _ declaration: EntityDeclaration) -> Verdict.Refusal? {
        if declaration.direction == .pull, !access.isService {
            return Verdict.Refusal(
                code: RejectionCode.directionForbidden, detail: "\(declaration.name) travels from the server only.",
                hint: "Declare the table pull-only on the device too.")
        }
        let isEvent = declaration.kind == .events
        let fits =
            isEvent
            ? operation.kind == .event || operation.kind == .upsert && operation.baseVersion == nil
            : operation.kind != .event
        return fits
            ? declaration.refusal(ofAttachmentsIn: operation.fields)
            : Verdict.Refusal(
                code: RejectionCode.kindMismatch,
                detail:
                    "\(declaration.name) holds \(isEvent ? "events, which are only appended" : "records, not events").",
                hint: "Check how the entity is declared.")
    }

    func refused(_ code: String, _ detail: String, _ hint: String) -> (Verdict, isVerbatim: Bool) {
        (Verdict(.rejected, refusal: Verdict.Refusal(code: code, detail: detail, hint: hint)), false)
    }
}

extension Operation {
    /// Whether it sets fields of a record that its device knew, and leaves the others as they are.
    fileprivate var editsKnown: Bool { setsFields && (baseVersion != nil || baseNumber != nil) }
}

extension Verdict {
    /// A short verdict of an operation, where there is no room for more: that it is done with, and at which version, or
    /// that it waits.
    fileprivate init(short tookEffect: Bool, version: Version?, id: RecordID?) {
        self.init(tookEffect ? .outcomeUnknown : .deferred, version: tookEffect ? version : nil)
        self.id = id
    }
}
