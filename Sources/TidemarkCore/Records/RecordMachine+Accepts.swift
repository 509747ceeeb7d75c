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
        // A row of the first capture is an operation, whatever became of it.
        case .dropped: local == .clean && inFlight == .none && queue != .idle && block == .none && base != .seeded
        case .blocked(let reason): mayBlock(reason)
        // No other record releases an edit that no server would take.
        case .released: block != .none && block != .unsendable
        case .forbidden: isLookedAt
        case .pruned: isLookedAt && local == .deleted && (base == .present || base == .seeded)
        case .assumed: isLookedAt && (base == .seeded && local != .deleted || base == .absent && local == .edited)
        // Only what has its verdict is put off.
        case .putOff: queue == .queued && block == .none && capture != .unseen
        case .resumed: queue == .deferred
        // The record's marks are the other scope's until it has moved in.
        case .movedIn:
            access == .followed && local == .clean && queue == .idle && inFlight == .none && !place.isInTable
        // A row of the first capture is sent first where it stood.
        case .movedOut:
            isLookedAt && local == .edited && base != .seeded && !place.isLeaving && capture == .watched
        case .arrival: place == .leaving
        case .departureSealed: inFlight == .none && (place == .left || place == .abandoned)
        case .verdict(let verdict, _): mayEnd(verdict)
        // No answer is applied before unseen writes were held against the server's rows.
        case .row, .tombstone: access == .followed && identity == .given && capture != .unseen
        case .matched: local == .edited
        case .versionNoted, .caughtUp, .refetchNeeded, .refetched: access == .followed
        case .conflictFound: true
        case .refused: place == .table
        case .accepted: place == .quarantined || place == .doubled
        case .named: identity == .temporary
        case .accessLost, .scopeLeft: mayGo
        case .followed: access != .followed
        // A scope that goes is one that this file knows, and a displaced edit's is none of them.
        case .orphaned:
            block != .displaced
                && (local != .clean || inFlight != .none || base == .seeded || place.isLeaving || capture == .unseen)
        case .orphanTaken: orphan == .orphaned
        case .seedBack:
            access == .followed && base == .absent && local == .clean && inFlight == .none && block == .none
                && !place.isLeaving && capture == .watched
        case .historyLost: access == .followed
        case .replayed(let change): mayReplay(change)
        case .captureLost: capture != .lost
        case .wroteUnseen, .deletedUnseen: capture == .lost
        case .captureFound: capture == .lost
        case .unseen(let unseen): mayFind(unseen)
        case .compared(let compared):
            // The server was never known to have a row of the first capture, so there is no delete of it.
            capture == .unseen && !place.isLeaving && (compared != .seeded || base == .absent && local != .deleted)
        }
    }

    /// Whether the outbox batcher looks at edits that nothing blocks. What a block was about is asked anew before:
    /// the edit is released, or what was refused here is forgotten.
    private var isLookedAt: Bool { access == .followed && isNext }
    private var isNext: Bool { queue == .queued && inFlight == .none && block == .none }

    /// One operation of a record is in flight at a time; only replays are more. An engine goes on asking for a scope
    /// whose access was lost, and sends along what was made for it meanwhile.
    private func maySeal(_ sealed: Sealed) -> Bool {
        guard access != .unfollowed, isNext, !place.isLeaving else { return false }
        switch sealed {
        case .write: return local == .edited || local == .clean && (base == .seeded || base == .deleted)
        case .part: return local == .edited || base == .seeded
        case .delete: return local == .deleted
        }
    }

    private func mayBlock(_ reason: Block) -> Bool {
        guard queue == .queued, inFlight == .none, block == .none, local != .clean || base == .seeded else {
            return false
        }
        return switch reason {
        case .none: false
        case .rejectedParent, .awaitingID, .unsendable: access != .unfollowed
        case .unconfirmed: capture == .watched
        case .displaced: access == .unfollowed && place == .quarantined
        }
    }

    private func mayEnd(_ verdict: Verdict) -> Bool {
        // A server that takes anything has granted access again.
        guard access == .followed, inFlight != .none, capture != .unseen else { return false }
        return switch verdict {
        case .taken, .rejected, .outcomeUnknown: true
        // Only what sets fields meets other fields.
        case .conflict: inFlight.isWrite
        // Nothing of the record is sealed while an edit of it is put off.
        case .deferredWrite: inFlight.isWrite && queue != .deferred
        // Nothing waits for the place of what was deleted.
        case .deferredDelete: !inFlight.isWrite && queue != .deferred && place != .doubled
        }
    }

    /// An operation without a verdict is the record's last, and stays that when what was lost before it is replayed.
    private func mayReplay(_ change: Change) -> Bool {
        guard access == .followed else { return false }
        return switch inFlight {
        case .none: true
        case .write: change == .write
        case .delete: change == .delete
        case .replayedWrite: change == .write || place != .leavingSealed
        case .replayedDelete: change == .delete
        }
    }

    /// Whether the scan of a table can find such a write. Of a record with edits it compares the row that these were
    /// made on: that of one that was deleted elsewhere is the device's own, and the server was never known to have one
    /// of the first capture. Where a table has changed its rule, the device does not know any more what the server has,
    /// so that only new rows are found.
    private func mayFind(_ unseen: Unseen) -> Bool {
        guard access == .followed, queue == .idle, !place.isLeaving, base == .absent || base == .present else {
            return false
        }
        return switch unseen {
        case .insert, .seed: local == .clean
        // Where the row is gone, an edit of it is found to be a delete.
        case .update: capture == .lost && local != .deleted
        case .delete: capture == .lost && local == .clean
        }
    }

    /// A scope goes when its edits are orphaned. A row that is on this device only and cannot travel stays.
    private var mayGo: Bool {
        access == .followed && queue == .idle && inFlight == .none && !place.isLeaving && base != .seeded
            && capture != .unseen
            && (local == .clean || block == .unsendable && base == .absent)
    }
}
