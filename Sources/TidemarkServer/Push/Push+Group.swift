import TidemarkCore
import TidemarkWire

// MARK: - Groups: all or none

extension Push {
    /// Takes a request's operations: all together where their tables take them so, and else one after the other.
    static func takingAll(
        _ request: ExchangeRequest, of access: Access, writer: any ScopeWriter, server: SyncServer, at moment: Int64
    ) throws -> Push {
        func taken() throws -> Push {
            var push = Push(server: server, writer: writer, request: request, access: access, moment: moment)
            try push.takeAll()
            return push
        }
        guard let tables = writer as? any TableScopeWriter else { return try taken() }
        let records = request.operations.compactMap { sealed in
            sealed.operation.id.map { (entity: sealed.operation.entity, id: $0) }
        }
        return try tables.together(records, taken)
    }

    /// The request's operations in their order, as far as its cost allows; those of one group follow one another and
    /// are taken together.
    mutating func takeAll() throws {
        var rest = request.operations[...]
        while let first = rest.first {
            // At least one operation or group is always taken, so that every device gets on.
            if rest.startIndex > 0, cost.isSpent { break }
            guard let group = first.operation.group else {
                try take(first)
                rest = rest.dropFirst()
                continue
            }
            let members = rest.prefix { $0.operation.group == group && $0.key.lane == first.key.lane }
            try take(group: Array(members))
            rest = rest.dropFirst(members.count)
        }
        result.left = rest
        try storeTallies()
        try storeGrowth()
        result.head = writer.state.head
    }

    private mutating func take(group members: [ExchangeRequest.SealedOperation]) throws {
        guard let first = members.first else { return }
        let height = try height(of: first.key.lane)
        let replayed = members.prefix { $0.key.number <= height }
        for sealed in replayed { try replay(sealed) }
        let fresh = members.dropFirst(replayed.count)
        guard replayed.isEmpty else {
            return try refuse(fresh, "The operations of a group come in one request, one behind the other.", after: nil)
        }
        struct Failed: Error {
            var index: Int
            var verdict: Verdict
        }
        let (writer, head, before, heights, chains) = (writer, writer.state.head, result, heights, chains)
        let (tallies, growth) = (tallies, growth)
        do {
            try writer.attempt {
                for (index, sealed) in fresh.enumerated() {
                    guard let verdict = try take(sealed), verdict.isFailure else { continue }
                    throw Failed(index: index, verdict: verdict)
                }
            }
        } catch var failed as Failed {
            (result, self.heights, self.chains) = (before, heights, chains)
            (self.tallies, self.growth) = (tallies, growth)
            // A row that the group itself had written is gone again, and so is an id that it had got.
            if let version = failed.verdict.record?.version, version > head { failed.verdict.record = nil }
            failed.verdict.id = try knownID(of: members[failed.index].operation)
            failed.verdict = told(failed.verdict).verdict
            let blocker = members[failed.index].key.number
            for (index, sealed) in fresh.enumerated() {
                try checkNext(sealed.key, above: try self.height(of: sealed.key.lane))
                try answer(sealed, index == failed.index ? failed.verdict : failed.verdict.ofOthers(blocker))
            }
        }
    }

    private mutating func refuse(
        _ members: ArraySlice<ExchangeRequest.SealedOperation>, _ detail: String, after: Int64?
    ) throws {
        for sealed in members {
            try checkNext(sealed.key, above: try height(of: sealed.key.lane))
            try answer(sealed, .groupFailed(detail, after: after))
        }
    }
}

extension Verdict {
    fileprivate var isFailure: Bool {
        switch status {
        case .conflict, .rejected, .deferred: true
        case .applied, .merged, .outcomeUnknown: false
        }
    }

    fileprivate static func groupFailed(_ detail: String, after: Int64?) -> Verdict {
        var verdict = Verdict(
            .rejected,
            refusal: Refusal(
                code: RejectionCode.groupFailed, detail: detail,
                hint: "Nothing of the group was done; mend the operation at fault and do it again."))
        verdict.after = after
        return verdict
    }

    /// The verdict for the other operations of a group whose operation `blocker` has this one: they are put off with
    /// it, or refused with it.
    fileprivate func ofOthers(_ blocker: Int64) -> Verdict {
        guard status == .deferred else {
            return .groupFailed("Operation \(blocker) of the same group was not taken.", after: blocker)
        }
        var verdict = Verdict(.deferred)
        verdict.after = after ?? blocker
        return verdict
    }
}
