import TidemarkCore
import TidemarkWire

// MARK: - Temporary ids

extension Push {
    private func temporaryName(_ entity: String, _ id: RecordID) -> TemporaryName {
        TemporaryName(
            principal: access.principal, client: request.clientID, entity: EntityKey(entity).text, id: id)
    }

    /// The id that an operation's record got, where its device knows it by another.
    func knownID(of operation: Operation) throws -> RecordID? {
        try operation.tempID.flatMap { try writer.id(for: temporaryName(operation.entity, $0)) }
    }

    /// Puts canonical ids in the place of temporary ones, the operation's own among them, and writes it. An operation
    /// that names a record which is not here yet waits for it: a temporary id never reaches another device.
    mutating func identify(
        _ operation: Operation, _ declaration: EntityDeclaration, seen: Set<Version>
    ) throws -> (Verdict, isVerbatim: Bool) {
        let resolution = try Resolution(operation, limit: Limits.temporaryPlaces, stopsAtMissing: true) {
            entity, temporary in
            cost.lookUp()
            return try writer.id(for: temporaryName(entity, temporary))
        }
        guard !resolution.isTooMany else {
            return refused(
                RejectionCode.tooManyReferences,
                "More than \(Limits.temporaryPlaces) places of the record hold temporary ids.",
                "Spread what the document lists over several records.")
        }
        guard resolution.missing == nil else { return (Verdict(.deferred), false) }
        var resolved = resolution.operation
        guard let temporary = operation.tempID else {
            guard let record = resolved.id else { return (Verdict(.deferred), false) }
            if let refusal = try unassigned(resolved, record, declaration) { return refusal }
            var (verdict, isVerbatim) = try write(resolved, record, declaration, seen: seen)
            if record != operation.id { verdict.id = record }
            return (verdict, isVerbatim)
        }
        let hasTable = (writer as? any TableScopeWriter)?.hasTable(of: declaration.name) ?? false
        guard declaration.ids == .server, declaration.kind == .state, TemporaryShape.matches(temporary.text), !hasTable
        else {
            return refused(
                RejectionCode.temporaryIDRefused, "Records of \(declaration.name) take no such temporary id.",
                "Declare the entity with `ids: server`, and make temporary ids with the client's helper.")
        }
        guard let record = try knownID(of: operation) else {
            return try insert(resolved, under: temporary, declaration, seen: seen)
        }
        // The insert was made here before, and somebody deleted the record since: it does not come back (I6).
        if resolved.isInsert, resolved.original == nil, try isGone(operation.entity, record) {
            resolved.baseVersion = 0
        }
        var (verdict, isVerbatim) = try write(resolved, record, declaration, seen: seen)
        verdict.id = record
        return (verdict, isVerbatim)
    }

    /// Whether the record of an id was deleted here, also where no tombstone is left. A record that got its id in
    /// another scope has never been here: it moves.
    private func isGone(_ entity: String, _ record: RecordID) throws -> Bool {
        if let row = try writer.newest(entity: entity, record: record) { return row.payload == nil }
        return try writer.assignment(of: record, entity: EntityKey(entity).text) == .here
    }

    /// Where the server assigns ids, a device brings none of its own making: another device might have made the same.
    /// An id that a server may have given is taken, be it of a record that moves here or of one that was lost. Only
    /// what the id looks like counts: the answer tells nothing of other scopes.
    private func unassigned(
        _ operation: Operation, _ record: RecordID, _ declaration: EntityDeclaration
    ) throws -> (Verdict, isVerbatim: Bool)? {
        guard declaration.ids == .server, !access.isService, operation.kind == .upsert, operation.baseVersion == nil,
            operation.original == nil, !AssignedID.matches(record.text),
            try writer.newest(entity: operation.entity, record: record) == nil
        else { return nil }
        return refused(
            RejectionCode.idNotAssigned, "The ids of \(declaration.name) are assigned by the server.",
            "Insert new records under a temporary id.")
    }

    /// The first operation under a temporary id: an insert gets an id; anything else comes too late or too early.
    private mutating func insert(
        _ operation: Operation, under temporary: RecordID, _ declaration: EntityDeclaration, seen: Set<Version>
    ) throws -> (Verdict, isVerbatim: Bool) {
        guard operation.kind == .upsert, operation.baseVersion == nil else {
            // The record is not here, so there is nothing to delete; an edit waits for its insert.
            return (Verdict(operation.kind == .delete ? .applied : .deferred), false)
        }
        struct NotTaken: Error { var verdict: Verdict }
        let (writer, moment) = (writer, moment)
        let name = temporaryName(operation.entity, temporary)
        guard let record = try Assignment(writer: writer, entity: operation.entity).id(for: name) else {
            return (Verdict(.deferred), false)
        }
        var operation = operation
        // It was replayed here after a loss, without its temporary id, and somebody deleted it since: a copy of
        // the file does not make it anew (I6).
        if operation.original == nil, let row = try writer.newest(entity: operation.entity, record: record),
            row.payload == nil
        {
            operation.baseVersion = 0
        }
        do {
            let (answer, announced) = try writer.attempt {
                try writer.store(record, for: name, at: moment)
                let announced = try Assignment(writer: writer, entity: operation.entity)
                    .announce(record, for: name, at: moment)
                var (verdict, isVerbatim) = try write(operation, record, declaration, seen: seen)
                guard verdict.tookEffect else { throw NotTaken(verdict: verdict) }
                verdict.id = record
                return ((verdict, isVerbatim), announced)
            }
            // The verdict says it already.
            result.verbatim.insert(announced)
            return answer
        } catch let refusal as NotTaken { return (refusal.verdict, false) }
    }
}
