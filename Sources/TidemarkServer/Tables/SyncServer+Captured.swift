import TidemarkCore
import TidemarkWire

extension SyncServer {
    /// Scopes that are looked at between two questions for more of them.
    private static let capturedScopes = 64
    /// Scopes whose changes are taken over side by side.
    private static let capturedTogether = 8
    /// Transactions that one scope gets before the others have their turn.
    private static let capturedRounds = 20
    /// Changes of other programs that a push takes over before its own, so that it meets records as they stand.
    static let capturedBeforePush = 100

    /// Takes over what other programs write to the operator's own tables, until the task is cancelled; what fails is
    /// tried again. Returns at once where the store has no such tables.
    ///
    /// - Throws: `CancellationError` when cancelled.
    public func captureContinuously() async throws {
        guard store is any TableStore else { return }
        while true {
            let count = (try? await drainCapture()) ?? 0
            // Nodes that share a store should not ask in step.
            let pause = configuration.captureInterval * Double.random(in: 0.75...1.25)
            try await Task.sleep(for: count > 0 ? pause / 10 : pause)
        }
    }

    /// Brings what other programs have written to the operator's own tables into the log, once. Returns how many of
    /// their writes that were.
    ///
    /// - Throws: the first error of the store; the other scopes have had their turn all the same.
    @discardableResult
    public func drainCapture() async throws -> Int {
        guard let store = store as? any TableStore else { return 0 }
        var count = 0
        var failure: (any Error)?
        var last: Scope?
        while true {
            let scopes = try await store.capturedScopes(after: last, limit: Self.capturedScopes)
            var rest = scopes[...]
            while !rest.isEmpty {
                try Task.checkCancellation()
                let some = rest.prefix(Self.capturedTogether)
                rest = rest.dropFirst(some.count)
                await withTaskGroup(of: Result<Int, any Error>.self) { group in
                    for scope in some { group.addTask { await self.drainCapture(in: scope) } }
                    for await result in group {
                        switch result {
                        case .success(let taken): count += taken
                        case .failure(let error): failure = failure ?? error
                        }
                    }
                }
            }
            last = scopes.last
            guard scopes.count == Self.capturedScopes else { break }
        }
        if let failure { throw failure }
        return count
    }

    private func drainCapture(in scope: Scope) async -> Result<Int, any Error> {
        let limit = configuration.captureLimit
        var count = 0
        do {
            try await markErased(behindParentOf: scope)
            for _ in 0..<Self.capturedRounds {
                let moment = configuration.moment()
                let (taken, head) = try await store.write(scope) { writer in
                    let superseded = writer.state.superseded
                    let taken = try self.drainCapture(writer, scope, limit: limit, at: moment)
                    try self.boundWindow(writer, since: superseded)
                    return (taken, writer.state.head)
                }
                if taken > 0 { tell(scope, head) }
                count += taken
                if taken < limit { break }
            }
            return .success(count)
        } catch { return .failure(error) }
    }

    /// A sub-scope that was declared after its scope was erased is erased too: what is written for it is let go of.
    private func markErased(behindParentOf scope: Scope) async throws {
        guard scope.subscope != nil, try await store.read(scope.parent, { $0.state.erasedAt }) != nil else { return }
        let moment = configuration.moment()
        try await store.write(scope) { try $0.markErased(at: moment) }
    }

    /// Takes over at most `limit` writes of others as the scope's writer.
    @discardableResult
    func drainCapture(_ writer: any ScopeWriter, _ scope: Scope, limit: Int, at moment: Int64) throws -> Int {
        guard let tables = writer as? any TableScopeWriter else { return 0 }
        // Notes of what programs go on writing for a scope that is erased are let go of, unread.
        guard writer.state.erasedAt == nil else {
            return try tables.drainCapture(limit: limit, recordBytes: limits.recordBytes) { _ in }
        }
        return try tables.drainCapture(limit: limit, recordBytes: limits.recordBytes) { captured in
            guard let refusal = try take(captured, scope, writer, at: moment) else { return }
            // It stands in the table whatever is said here: the operator has to know that devices do not see it.
            let lane = LaneName(principal: "", client: "", lane: "")
            try writer.keep(
                StoredRejection(
                    scope: scope, entity: captured.entity, record: captured.key,
                    isDelete: captured.fields == nil && captured.unsendable == nil, fields: nil, lane: lane, number: 0,
                    code: refusal.code, detail: refusal.detail, time: moment),
                limit: configuration.rejectionLimit)
        }
    }

    /// Puts a record into the log as its table has it; answers why not where it cannot travel.
    private func take(
        _ captured: CapturedRecord, _ scope: Scope, _ writer: any ScopeWriter, at moment: Int64
    ) throws -> Verdict.Refusal? {
        guard let record = RecordID(captured.key) else {
            return Verdict.Refusal(
                code: RejectionCode.unsendableValue, detail: "The row's key cannot be a record's id.",
                hint: "A key takes up to \(Identifier.recordLimit) bytes, without control characters.")
        }
        let entity = spelling(of: captured.entity, in: writer.state)
        let declaration = declarations.entity(entity)
        if captured.fields != nil,
            let refusal = misplacement(of: Operation(.upsert, entity: entity, id: record), in: scope)
        {
            return refusal
        }
        let existing = try writer.newest(entity: entity, record: record)
        let records = RecordWriter(writer: writer, declaration: declaration, limits: limits)
        if let reason = captured.unsendable {
            guard declaration.kind == .state || existing == nil && captured.isNew else { return nil }
            return refusal(for: reason)
        }
        guard let bytes = captured.fields else {
            guard existing?.payload != nil, declaration.kind == .state else { return nil }
            var operation = Operation(.delete, entity: entity, id: record)
            operation.baseVersion = existing?.version
            operation.isMove = captured.isElsewhere
            return try write(operation, record, records, at: moment)
        }
        // Most rows that devices have written stand in the log as they are in the table.
        if existing?.payload == bytes { return nil }
        if declaration.kind == .events {
            guard existing == nil, captured.isNew else { return nil }
            if let refusal = records.tooLarge(try DataObject(stored: bytes))?.refusal { return refusal }
            _ = try writer.append(
                NewRow(entity: entity, record: record, kind: .event, payload: bytes), at: moment)
            return nil
        }
        var operation = Operation(.upsert, entity: entity, id: record)
        operation.fields = try DataObject(stored: bytes)
        if existing?.payload != nil { operation.baseVersion = existing?.version }
        return try write(operation, record, records, at: moment)
    }

    private func refusal(for reason: CapturedRecord.Unsendable) -> Verdict.Refusal {
        switch reason {
        case .tooLarge:
            Verdict.Refusal(
                code: RejectionCode.recordTooLarge, detail: "The row takes more than \(limits.recordBytes) bytes.",
                hint: "Keep large content apart from the record.")
        case .value(let column):
            Verdict.Refusal(
                code: RejectionCode.unsendableValue, detail: "The column \(column) holds NaN, which no device holds.",
                hint: "Write NULL or a number there.")
        }
    }

    /// Writes a captured change without asking the operator's rules: the table has it already, and no rule can undo it.
    private func write(
        _ operation: Operation, _ record: RecordID, _ records: RecordWriter, at moment: Int64
    ) throws -> Verdict.Refusal? {
        try records.apply(operation, to: record, isService: true, seen: [], at: moment).verdict.refusal
    }
}
