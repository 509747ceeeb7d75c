package import TidemarkWire

/// A reader's place in a scope's log (Protocol.md), which an opaque `since` carries to the server.
package struct Checkpoint: Hashable, Sendable {
    /// The history that the versions below are of.
    package var epoch: Epoch
    /// Pages are applied up to here.
    package var position: Version
    /// The end of the scan in progress; equal to `position` between scans.
    package var horizon: Version
    /// The last version at which the reader's state was whole.
    package var complete: Version
    /// The first horizon of a scan from the beginning, while that scan lasts.
    package var origin: Version?

    package init(epoch: Epoch, position: Version, horizon: Version, complete: Version, origin: Version?) {
        self.epoch = epoch
        self.position = position
        self.horizon = horizon
        self.complete = complete
        self.origin = origin
    }

    /// The state of a reader that has nothing, or nothing but rows of its own that it wrote at `oldest` or later: one
    /// of them may have been deleted since, so tombstones from there on are of use to it.
    package static func beginning(of scope: ScopeHistory, holding oldest: Version? = nil) -> Checkpoint {
        Checkpoint(
            epoch: scope.epoch(of: scope.head), position: 0, horizon: scope.head, complete: 0,
            origin: min(scope.head, oldest.map { max($0 - 1, 0) } ?? .max))
    }

    package var isScanning: Bool { position < horizon }

    /// Tombstones at or below this version are of no use to the reader.
    package var tombstonesAfter: Version { origin ?? 0 }

    /// The version that is held against the retention floor.
    package var retained: Version { origin ?? complete }
}

extension Checkpoint {
    /// Takes up a scan where this checkpoint left it, or begins the next one; refuses a checkpoint whose history is
    /// not this scope's (T19), or whose tombstones are gone.
    package func resumed(in scope: ScopeHistory) throws(Problem) -> Checkpoint {
        try checkHistory(in: scope)
        if retained < scope.retentionFloor {
            throw expired(.retention, "Deletions up to version \(scope.retentionFloor) are no longer kept.", in: scope)
        }
        var next = self
        if isScanning {
            // A horizon that has left the window cannot be served exactly any more; the scan goes on to a new one and
            // keeps the old `complete`, so that a slow reader finishes instead of starting over.
            if horizon < scope.sweepFloor { next.horizon = scope.head }
        } else {
            next.horizon = scope.head
        }
        next.epoch = scope.epoch(of: next.horizon)
        return next
    }

    /// The checkpoint after a page: at `position`, or at the end of the scan.
    package func advanced(to position: Version?) -> Checkpoint {
        var next = self
        if let position {
            next.position = position
        } else {
            next.position = horizon
            next.complete = horizon
            next.origin = nil
        }
        return next
    }

    private func checkHistory(in scope: ScopeHistory) throws(Problem) {
        let top = max(horizon, complete)
        guard top > 0 else { return }
        guard let index = scope.incarnations.firstIndex(where: { $0.id == epoch.id }) else {
            throw expired(.epoch, "The store's history is not the one that this checkpoint was issued for.", in: scope)
        }
        let end = scope.end(of: index)
        guard top <= end else {
            let isLast = index == scope.incarnations.endIndex - 1
            throw expired(
                isLast ? .ahead : .epoch, "The checkpoint names version \(top); this history went only to \(end).",
                in: scope)
        }
    }

    private func expired(_ reason: Problem.Reason, _ detail: String, in scope: ScopeHistory) -> Problem {
        scope.expired(reason, detail, survived: scope.shared(with: epoch))
    }
}

extension ScopeHistory {
    /// A 410, with what its reader needs to find its way back.
    package func expired(_ reason: Problem.Reason, _ detail: String, survived: Version) -> Problem {
        var problem = Problem(.checkpointExpired, detail)
        problem.reason = reason
        problem.epoch = epoch(of: head).text
        problem.survived = survived
        return problem
    }
}

// MARK: - As a token

extension Checkpoint {
    private static let format: Int64 = 1

    /// An opaque text: the numbers above, bound to the scope and to the server's key.
    package func token(scope: Scope, key: [UInt8]) -> String {
        var writer = ByteWriter()
        for number in [Self.format, position, horizon, complete, origin ?? -1] { writer.integer(number) }
        epoch.write(to: &writer)
        return SealedToken.seal(writer.bytes, .checkpoint, scope: scope, key: key)
    }

    package init(token: String, scope: Scope, key: [UInt8]) throws(Problem) {
        guard var reader = SealedToken.open(token, .checkpoint, scope: scope, key: key),
            reader.integer() == Self.format, let position = reader.integer(), let horizon = reader.integer(),
            let complete = reader.integer(), let origin = reader.integer(), let epoch = Epoch(from: &reader),
            reader.isAtEnd, 0 <= position, position <= horizon, 0 <= complete, complete <= horizon
        else { throw Problem(.invalidCheckpoint, "`since` is not a checkpoint of scope \(scope).") }
        self.init(
            epoch: epoch, position: position, horizon: horizon, complete: complete, origin: origin < 0 ? nil : origin)
    }
}
