import TidemarkCore
import TidemarkWire

// MARK: - How large a scope may become (I14)

/// The operation would make its scope larger than it may be.
private struct QuotaExceeded: Error {
    var detail: String
}

extension Push {
    /// Takes an operation, or puts it off where the scope has no room for what it adds. Deletes and edits that make a
    /// record no larger pass, and so do the server's own programs.
    mutating func applyWithinQuota(
        _ operation: Operation, lane: LaneName
    ) throws -> (Verdict, isVerbatim: Bool) {
        guard !access.isService else { return try apply(operation, lane: lane) }
        let (before, isNew) = (writer.state.size, writer.state.head == 0)
        guard !isNew || server.mayOpenScope(access.principal) else {
            let detail = "One user may begin \(server.limits.scopesPerPrincipal) scopes within a day here."
            return try apply(operation, lane: lane, within: ScopeSize(), of: before, telling: detail)
        }
        let room = try room(in: before)
        // Far from the end, one operation cannot come to it.
        let isAmple = room.rows >= Self.ampleRows && room.bytes >= 4 * Int64(server.limits.recordBytes)
        let answer =
            try isAmple ? apply(operation, lane: lane) : apply(operation, lane: lane, within: room, of: before)
        let added = writer.state.size - before
        growth?.add(rows: added.rows, bytes: added.bytes)
        if isNew, writer.state.head > 0 { server.openedScope(access.principal) }
        return answer
    }

    /// Undoes the operation where it was too much.
    private mutating func apply(
        _ operation: Operation, lane: LaneName, within room: ScopeSize, of before: ScopeSize,
        telling detail: String? = nil
    ) throws -> (Verdict, isVerbatim: Bool) {
        let (tallies, chains) = (tallies, chains)
        let (verbatim, edits) = (result.verbatim, result.edits)
        do {
            return try writer.attempt {
                let answer = try apply(operation, lane: lane)
                var added = writer.state.size - before
                // A delete makes room in the end; one of a record that was never here is a row like any.
                if operation.kind == .delete { added.bytes = 0 }
                try check(added, room)
                return answer
            }
        } catch let error as QuotaExceeded {
            (self.tallies, self.chains) = (tallies, chains)
            (result.verbatim, result.edits) = (verbatim, edits)
            let refusal = Verdict.Refusal(
                code: RejectionCode.quotaExceeded, detail: detail ?? error.detail,
                hint: "It is sent again by itself. Make room by deleting or shortening, or ask the operator for more.")
            return (Verdict(.deferred, refusal: refusal), false)
        }
    }

    /// More rows than one operation adds: the record's and the one that tells its id.
    private static let ampleRows: Int64 = 4

    /// How much this user may still add. Behind half of a scope's quota one user gets a quarter of it within a day, so
    /// that he leaves room for those who share the scope with him.
    private mutating func room(in size: ScopeSize) throws -> ScopeSize {
        let quota = ScopeSize(rows: Int64(server.limits.scopeRows), bytes: Int64(server.limits.scopeBytes))
        var room = quota - size
        guard size.rows > quota.rows / 2 || size.bytes > quota.bytes / 2 else { return room }
        let growth = try growth ?? GrowthTally(stored: writer.tally(by: access.principal, of: "") ?? [], at: moment)
        self.growth = growth
        if size.rows > quota.rows / 2 { room.rows = min(room.rows, quota.rows / 4 - growth.rows) }
        if size.bytes > quota.bytes / 2 { room.bytes = min(room.bytes, quota.bytes / 4 - growth.bytes) }
        return room
    }

    private func check(_ added: ScopeSize, _ room: ScopeSize) throws {
        let limits = server.limits
        if added.rows > 0, added.rows > room.rows {
            throw QuotaExceeded(detail: "The scope may have \(limits.scopeRows) rows, and one user a part of them.")
        }
        if added.bytes > 0, added.bytes > room.bytes {
            throw QuotaExceeded(detail: "The scope may have \(limits.scopeBytes) bytes, and one user a part of them.")
        }
    }

    /// Written once, however much was added.
    func storeGrowth() throws {
        guard let growth, growth.hasChanged else { return }
        try writer.store(tally: growth.stored, by: access.principal, of: "", at: moment)
    }
}
