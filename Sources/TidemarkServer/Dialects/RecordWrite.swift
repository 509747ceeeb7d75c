import TidemarkCore
package import TidemarkWire

/// A write of one record by a caller without lanes.
package struct RecordWrite: Sendable {
    package enum Kind: Sendable {
        /// The record is this, and nothing else: fields that are not named become NULL.
        case replace(DataObject)
        /// These fields are set.
        case change(DataObject)
        case delete
    }

    package var scope: Scope
    package var entity: String
    package var record: RecordID
    package var kind: Kind
    package var spelling: RecordSpelling
    package var condition = WriteCondition()
    /// The `Idempotency-Key`: a second request with the same key gets the first answer, and has no second effect.
    package var key: String?

    package init(_ kind: Kind, _ record: RecordID, of entity: String, in scope: Scope, as spelling: RecordSpelling) {
        self.kind = kind
        self.record = record
        self.entity = entity
        self.scope = scope
        self.spelling = spelling
    }
}

/// How the record has to be for a write (RFC 9110, 13.1).
package struct WriteCondition: Hashable, Sendable {
    /// The tags of one header, without quotes.
    package enum Tags: Hashable, Sendable {
        case any
        case these([String])
    }

    package var match: Tags?
    package var noneMatch: Tags?

    package init() {}

    var isEmpty: Bool { match == nil && noneMatch == nil }

    /// - Parameter tag: the record's; `nil` where there is none.
    func holds(for tag: String?) -> Bool {
        if let match, !match.names(tag) { return false }
        return noneMatch.map { !$0.names(tag) } ?? true
    }
}

extension WriteCondition.Tags {
    /// - Parameter tag: a record's; `nil` where there is none.
    package func names(_ tag: String?) -> Bool {
        guard let tag else { return false }
        return switch self {
        case .any: true
        case .these(let tags): tags.contains(tag)
        }
    }
}

/// The outcome of a write.
package struct WrittenRecord: Hashable, Sendable {
    /// The record as it stands; `nil` where it is gone, or where the caller may not read it.
    package var record: PlainRecord?
    package var isNew = false
    /// Whether this is the answer to an earlier request with the same key.
    package var isReplayed = false
}

extension SyncServer {
    /// `PUT`, `PATCH` and `DELETE` of `/rest/{entity}/{id}`: one operation, under all that holds for a device's.
    ///
    /// - Parameters:
    ///   - size: bytes of the body; `body` gives them when their turn has come.
    ///   - caller: who asks, for the turns.
    ///   - read: makes the write of the body.
    package func write(
        _ size: Int, of body: @escaping @Sendable () throws -> [UInt8], for caller: String, access: Access,
        _ read: @escaping @Sendable (UnsafeRawBufferPointer) throws -> RecordWrite
    ) async throws -> WrittenRecord {
        try await inTurn(size, for: caller) {
            let write = try await offload(size) {
                do { return try body().withUnsafeBytes { try read($0) } } catch let error as JSONError {
                    throw Problem(error)
                }
            }
            return try await self.write(write, access: access)
        }
    }

    /// Refuses a caller who may not write before the body is read.
    package func requireWritable(_ scope: Scope, _ access: Access) throws { try access.require(.readWrite, in: scope) }

    /// Refuses a caller who may not read before the body is read.
    package func requireReadable(_ scope: Scope, _ access: Access) throws { try access.require(.read, in: scope) }

    /// The same of one entity.
    package func requireReadable(_ entity: String, in scope: Scope, _ access: Access) throws {
        try access.require(.read, in: scope)
        try requireReadable(entity, access)
    }

    /// Throws a problem for a write that is refused, which then has applied nothing and used no key.
    package func write(_ write: RecordWrite, access: Access) async throws -> WrittenRecord {
        try access.require(.readWrite, in: write.scope)
        guard Identifier.isEntity(write.entity) else {
            throw Problem(.invalidIdentifier, "The entity's name is not of the allowed form.")
        }
        let moment = configuration.moment()
        let (written, head) = try await withoutGrants { grants in
            try await writeScope(write.scope, for: access.principal) { writer in
                let superseded = writer.state.superseded
                try self.drainCapture(writer, write.scope, limit: Self.capturedBeforePush, at: moment)
                let head = writer.state.head
                var attempt = WriteAttempt(self, writer, write, access, at: moment)
                var written = try writer.checkingReferences(of: access, grants: grants) { try attempt.take() }
                // The record's own table may have changed it: its changes are in the same answer.
                try self.drainCapture(writer, write.scope, limit: Self.capturedBeforePush + 2, at: moment)
                if !written.isReplayed { written.record = try attempt.present() }
                try self.boundWindow(writer, since: superseded)
                return (written, writer.state.head > head ? writer.state.head : nil)
            }
        }
        if let head { tell(write.scope, head) }
        return written
    }
}

/// A write of one record, inside its transaction.
private struct WriteAttempt {
    /// No device has so short a name.
    private static let client = "rest"
    /// Seconds after which a write that had no room may be tried again.
    private static let retryAfter = 30
    private static let undecided = Problem(
        .conflict, "The record has other values, and a person decides between them.")

    let server: SyncServer
    let writer: any ScopeWriter
    let write: RecordWrite
    let entity: String
    let moment: Int64
    let isWithheld: Bool
    var push: Push

    init(_ server: SyncServer, _ writer: any ScopeWriter, _ write: RecordWrite, _ access: Access, at moment: Int64) {
        self.server = server
        self.writer = writer
        self.write = write
        self.moment = moment
        entity = server.spelling(of: write.entity, in: writer.state)
        isWithheld =
            server.declaration(of: write.entity) == nil || server.withheld(from: access).contains(write.entity)
        push = Push(
            server: server, writer: writer,
            request: ExchangeRequest(scope: write.scope, clientID: Self.client), access: access, moment: moment)
    }

    mutating func take() throws -> WrittenRecord {
        let lane = write.key.map { push.name(Self.lane(of: $0)) }
        if let lane, let first = try firstAnswer(lane) { return first }
        let current = try writer.newest(entity: entity, record: write.record)
        try check(current)
        let operation = try operation(on: current)
        let (verdict, _) = try push.applyWithinQuota(operation, lane: lane ?? push.name(Self.client))
        try refuse(verdict)
        try push.storeTallies()
        try push.storeGrowth()
        let isNew = current?.payload == nil && operation.kind != .delete && !isWithheld
        if let lane { try store(verdict, isNew: isNew, lane) }
        return WrittenRecord(isNew: isNew)
    }

    /// The record as the caller may see it.
    func present(at version: Version? = nil) throws -> PlainRecord? {
        guard !isWithheld, let newest = try writer.newest(entity: entity, record: write.record) else { return nil }
        var shown = newest
        // The record of the first answer is shown as long as the window keeps it.
        if let version, version < newest.version,
            let before = try writer.row(entity: entity, record: write.record, at: version), before.version == version
        {
            shown = before
        }
        return try PlainRecord(shown, write.record, write.spelling, writer.state.history)
    }

    private func check(_ current: StoredRecord?) throws {
        if !write.condition.isEmpty {
            guard !isWithheld else {
                throw Problem(.notFound, "Records of \(entity) are for the operator's own programs.")
            }
            let live = current.flatMap { $0.payload == nil ? nil : $0.version }
            let tag = live.map { PlainRecord.tag(of: $0, writer.state.history) }
            guard write.condition.holds(for: tag) else {
                throw try told(Problem(.preconditionFailed, "The record is not as the request asks for it."))
            }
        }
        if case .change = write.kind, isWithheld || current?.payload == nil {
            throw Problem(.notFound, "There is no such record; PUT makes one.")
        }
    }

    /// A problem with the record as it stands.
    private func told(_ problem: Problem) throws -> Problem {
        let record = try present()
        var problem = problem
        (problem.record, problem.recordTag) = (record?.body, record?.tag)
        return problem
    }

    private func operation(on current: StoredRecord?) throws -> Operation {
        let declaration = push.declaration(of: entity)
        var operation: Operation
        switch write.kind {
        case .delete: operation = Operation(.delete, entity: entity, id: write.record)
        case .change(let fields):
            operation = Operation(.upsert, entity: entity, id: write.record)
            operation.fields = fields
        case .replace(let fields):
            operation = Operation(.upsert, entity: entity, id: write.record)
            operation.fields = try declaration?.kind == .events ? fields : whole(fields, over: current, declaration)
        }
        // It edits the record as it stands. Where a person decides, one who has not said that he saw it has not; who
        // may not see it decides nothing.
        let hasSeen = declaration?.conflict != .manual || isWithheld || write.condition.match != nil
        if !hasSeen, operation.kind == .delete, current?.payload != nil { throw try told(Self.undecided) }
        let isPut = if case .replace = write.kind { true } else { false }
        if current?.payload != nil, hasSeen, declaration?.kind != .events || !isPut {
            operation.baseVersion = current?.version
        }
        return operation
    }

    /// The fields with NULL for each that the record has beside them, but for those that are the server's, and those
    /// that the caller cannot name.
    private func whole(
        _ fields: DataObject, over current: StoredRecord?, _ declaration: EntityDeclaration?
    ) throws -> DataObject {
        guard let payload = current?.payload else { return fields }
        let data = try DataObject(stored: payload)
        let named = Set(fields.fields.map { Identifier.folded(fields.name($0)) })
        var builder = DataObject.Builder(capacity: fields.bytes.count)
        for field in data.fields where !named.contains(Identifier.folded(data.name(field))) {
            let name = data.nameString(field)
            guard push.access.isService || declaration?.isServerField(name) != true,
                write.spelling.shows(data.name(field))
            else { continue }
            builder.append(name, .null)
        }
        return builder.isEmpty ? fields : fields.overlaid(with: builder.finish())
    }

    private func refuse(_ verdict: Verdict) throws {
        switch verdict.status {
        case .applied, .merged, .outcomeUnknown: return
        case .conflict:
            throw try told(Self.undecided)
        case .deferred:
            var problem = Problem(.unavailable, verdict.refusal?.detail ?? "The write has to wait.")
            problem.retryAfter = Self.retryAfter
            throw problem
        case .rejected:
            var problem = Problem(.operationRejected, verdict.refusal?.detail ?? "The write was refused.")
            problem.rejection = verdict.refusal?.code
            throw problem
        }
    }

    // MARK: The same key again

    private static func lane(of key: String) -> String {
        SHA256.digest(Array(key.utf8)).prefix(16).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
            .joined()
    }

    private static let newMark = Array(",\"new\":true".utf8)

    private func store(_ verdict: Verdict, isNew: Bool, _ lane: LaneName) throws {
        // The record itself is not kept with it: it would count for no quota.
        let members = Verdict(verdict.status, version: verdict.version).members() + (isNew ? Self.newMark : [])
        try writer.store(
            StoredVerdict(
                digest: digest, members: members, version: verdict.version, baseNumber: nil, tookEffect: true),
            lane, 1, at: moment)
    }

    private func firstAnswer(_ lane: LaneName) throws -> WrittenRecord? {
        guard try writer.lane(lane) > 0 else { return nil }
        // Its answer may be forgotten; that there was one is not. Nothing tells then whether this is the same request.
        let stored = try writer.verdict(lane, 1)
        guard let stored, stored.digest == digest else {
            let detail =
                stored == nil
                ? "This Idempotency-Key was used long ago." : "This Idempotency-Key was used for another request."
            var problem = Problem(.operationRejected, detail)
            problem.rejection = RejectionCode.operationMismatch
            throw problem
        }
        let isNew = stored.members.suffix(Self.newMark.count) == Self.newMark[...]
        let isDelete = if case .delete = write.kind { true } else { false }
        return WrittenRecord(
            record: isDelete ? nil : try present(at: stored.version), isNew: isNew, isReplayed: true)
    }

    /// The digest by which two requests are the same.
    private var digest: [UInt8] {
        let (kind, fields): (String, DataObject) =
            switch write.kind {
            case .replace(let fields): ("replace", fields)
            case .change(let fields): ("change", fields)
            case .delete: ("delete", .empty)
            }
        let condition = "\(write.condition.match.text)\n\(write.condition.noneMatch.text)"
        let text = "\(kind)\n\(EntityKey(entity).text)\n\(write.record.text)\n\(condition)\n"
        return SHA256.digest(Array(text.utf8) + fields.sorted().bytes)
    }
}

extension WriteCondition.Tags? {
    fileprivate var text: String {
        switch self {
        case nil: ""
        case .any: "*"
        case .these(let tags): tags.joined(separator: ",")
        }
    }
}
