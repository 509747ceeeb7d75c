extension RecordMachine {
    /// Whether the event can happen in this state. One that cannot came late or twice, and changes nothing.
    package func accepts(_ event: Event) -> Bool {
        switch event {
        // Some triggers may still stand where others are gone, so that edits come all the same.
        case .edited, .reverted: !place.isLeaving
        case .deleted: place.isInTable
        case .decided: decision.hasConflict
        case .refusalForgotten: decision.hasRefusal || block == .unsendable
        case .sealed(let sealed): maySeal(sealed)
        case .dropped: local == .clean && inFlight == .none && (queue != .idle || block != .none)
        case .blocked(let reason): mayBlock(reason)
        case .released: block != .none
        case .forbidden: queue == .queued && inFlight == .none
        // Edits of tables that send nothing are never blocked.
        case .pruned:
            base == .present && local == .deleted && queue == .queued && inFlight == .none && block == .none
        case .assumed: base == .absent && local == .edited && queue == .queued && inFlight == .none && block == .none
        case .putOff: queue == .queued && block == .none
        case .resumed: queue == .deferred
        // The record's marks are the other scope's until it has moved in.
        case .movedIn: local == .clean && queue == .idle && inFlight == .none && !place.isInTable
        case .movedOut:
            local == .edited && queue == .queued && inFlight == .none && !place.isLeaving && capture == .watched
        case .arrival: place == .leaving
        case .departureSealed: inFlight == .none && (place == .left || place == .abandoned)
        case .verdict(let verdict, _): mayEnd(verdict)
        // No answer is applied before unseen writes were held against the server's rows.
        case .row, .tombstone, .missing: access == .followed && identity == .given && capture != .unseen
        case .matched: local == .edited
        case .versionNoted, .caughtUp, .refetchNeeded, .refetched: access == .followed
        case .conflictFound: true
        case .refused: place == .table
        case .accepted: place == .quarantined || place == .doubled
        case .named: identity == .temporary
        case .accessLost, .scopeLeft: mayGo
        case .followed: access != .followed
        case .orphaned: local != .clean || inFlight != .none || base == .seeded || place.isLeaving
        case .orphanTaken: orphan == .orphaned
        case .seedBack:
            access == .followed && base == .absent && local == .clean && inFlight == .none && block == .none
                && !place.isLeaving && capture == .watched
        case .historyLost: access == .followed
        case .replayed: access == .followed
        case .captureLost: capture != .lost
        case .wroteUnseen, .deletedUnseen: capture == .lost
        case .captureFound: capture == .lost
        case .unseen: access == .followed && queue == .idle && !place.isLeaving
        case .compared: capture == .unseen && !place.isLeaving
        }
    }

    /// One operation of a record is in flight at a time; only replays are more.
    private func maySeal(_ sealed: Sealed) -> Bool {
        guard queue == .queued, inFlight == .none, access == .followed, !place.isLeaving else { return false }
        switch sealed {
        case .write: return local == .edited || local == .clean && (base == .seeded || base == .deleted)
        case .part: return local == .edited || base == .seeded
        case .delete: return local == .deleted
        }
    }

    private func mayBlock(_ reason: Block) -> Bool {
        guard queue == .queued, inFlight == .none, local != .clean || base == .seeded else { return false }
        return switch reason {
        case .none: false
        case .rejectedParent, .awaitingID, .unsendable: true
        case .unconfirmed: block == .none && capture == .watched
        case .displaced: block == .none && access == .unfollowed && place == .quarantined
        }
    }

    private func mayEnd(_ verdict: Verdict) -> Bool {
        guard inFlight != .none, capture != .unseen else { return false }
        return switch verdict {
        case .taken, .rejected, .conflict, .outcomeUnknown: true
        case .deferredWrite: inFlight.isWrite
        case .deferredDelete: !inFlight.isWrite
        }
    }

    /// A scope goes when its edits are orphaned. A row that is on this device only and cannot travel stays.
    private var mayGo: Bool {
        access == .followed && queue == .idle && inFlight == .none && !place.isLeaving && base != .seeded
            && (local == .clean || block == .unsendable && base == .absent)
    }
}
