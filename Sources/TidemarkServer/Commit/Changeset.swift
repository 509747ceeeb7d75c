import TidemarkCore
public import TidemarkWire

/// Edits that the server's own program makes, committed together or not at all.
public struct Changeset: Sendable {
    var operations: [Operation] = []

    /// Inserts a record, or sets some fields of it; fields that are not named stay as they are.
    public mutating func upsert(_ entity: String, id: RecordID, _ fields: [String: Value]) {
        var operation = Operation(.upsert, entity: entity, id: id)
        var builder = DataObject.Builder()
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { builder.append(name, value) }
        operation.fields = builder.finish()
        operations.append(operation)
    }

    /// Deletes a record; one that is not there stays absent. In a scope where its entity's records do not lie any more
    /// (`subscope` of its declaration) the record counts as moved.
    public mutating func delete(_ entity: String, id: RecordID) {
        operations.append(Operation(.delete, entity: entity, id: id))
    }
}

extension SyncServer {
    /// Writes through the same door as the devices, as one transaction, and returns the scope's new head.
    ///
    /// The caller counts as a service: server-authoritative fields are taken (E4). `build` runs once, before anything
    /// else, on the caller's isolation.
    ///
    /// - Throws: ``CommitError`` where an entity is unknown to a strict server, a record would be too large, an event
    ///   is changed, an attachment is no `BlobReference`, the entity is declared to be in another sub-scope, the record
    ///   is refused by a rule that includes commits or by an attached table, or the scope was erased; then nothing is
    ///   written. Errors of the store pass through.
    @discardableResult
    public nonisolated(nonsending) func commit(
        to scope: Scope, _ build: (inout Changeset) -> Void
    ) async throws -> Version {
        var changeset = Changeset()
        build(&changeset)
        let operations = changeset.operations
        let moment = configuration.moment()
        let head: Version
        do {
            head = try await writeScope(scope) { writer in
                let superseded = writer.state.superseded
                for operation in operations {
                    do { try self.commit(operation, to: scope, writer, at: moment) } catch let refusal as RowRefusal {
                        throw CommitError(code: refusal.code, detail: refusal.detail)
                    }
                }
                try self.boundWindow(writer, since: superseded)
                return writer.state.head
            }
        } catch let problem as Problem {
            throw CommitError(code: problem.code.rawValue, detail: problem.detail)
        }
        tell(scope, head)
        return head
    }

    private func commit(
        _ made: Operation, to scope: Scope, _ writer: any ScopeWriter, at moment: Int64
    ) throws {
        var operation = spelled(made, in: writer.state)
        guard let record = operation.id else { return }
        guard Identifier.isEntity(operation.entity), let declaration = declaration(of: operation.entity) else {
            throw CommitError(
                code: RejectionCode.entityUnknown, detail: "Entity \(operation.entity.printable) is not declared.")
        }
        if let refusal = misplacement(of: operation, in: scope) {
            // Records from before their entity got a sub-scope can be taken away. Each lives on where it belongs now,
            // so the records that refer to it stay.
            guard operation.kind == .delete else {
                throw CommitError(code: refusal.code, detail: refusal.detail)
            }
            operation.isMove = true
        }
        if let refusal = declaration.refusal(ofAttachmentsIn: operation.fields) {
            throw CommitError(code: refusal.code, detail: refusal.detail)
        }
        let caller = EntityRule.Caller(principal: "", client: "", isService: true)
        let ruling = ruling(on: operation.entity, in: scope, by: caller, isCommit: true)
        if declaration.kind == .events {
            if case .refused(let refusal) = ruling?.judge(
                operation, record, current: nil, declaration: declaration, seen: [], at: moment)
            {
                throw CommitError(code: refusal.code, detail: refusal.detail)
            }
            guard operation.kind == .upsert, try writer.newest(entity: operation.entity, record: record) == nil else {
                throw CommitError(
                    code: RejectionCode.kindMismatch,
                    detail: "\(operation.entity) holds events, which are only appended, each under an id of its own.")
            }
            guard operation.fields.bytes.count <= limits.recordBytes else {
                throw CommitError(
                    code: RejectionCode.recordTooLarge, detail: "An event may take \(limits.recordBytes) bytes.")
            }
            _ = try writer.append(
                NewRow(entity: operation.entity, record: record, kind: .event, payload: operation.fields.bytes),
                at: moment)
            return
        }
        // It edits the record as it stands: there is nobody whose edit it has not seen.
        let existing = try writer.newest(entity: operation.entity, record: record)
        if existing?.payload != nil { operation.baseVersion = existing?.version }
        let (verdict, _) = try RecordWriter(
            writer: writer, declaration: declaration, limits: limits, ruling: ruling
        ).apply(operation, to: record, isService: true, seen: [], at: moment)
        if let refusal = verdict.refusal { throw CommitError(code: refusal.code, detail: refusal.detail) }
    }
}

/// Why a changeset of the server's own program was not taken.
public struct CommitError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The code where the scope was erased.
    public static let scopeErased = ProblemCode.scopeErased.rawValue
    /// The code where the store keeps nothing of what was asked for.
    public static let notFound = ProblemCode.notFound.rawValue

    /// A code of the protocol's rejection list (`RejectionCode`) or of an ``EntityRule``, ``scopeErased``, ``notFound``
    /// or `internal_error`.
    public var code: String
    /// The error's context, without row data.
    public var detail: String

    /// Makes an error from its parts, for tests.
    public init(code: String, detail: String) {
        self.code = code
        self.detail = detail
    }

    /// The code and the detail in one line, for a log.
    public var description: String { "\(code): \(detail)".printable }
}
