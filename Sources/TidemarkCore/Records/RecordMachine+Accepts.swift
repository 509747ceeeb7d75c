extension RecordMachine {
    /// Whether the event can happen in this state. One that cannot came late or twice, and changes nothing.
    package func accepts(_ event: Event) -> Bool {
        switch event {
        case .edited, .reverted: capture != .lost && !place.isLeaving
        case .deleted: capture != .lost && place.isInTable
        case .decided: decision.hasConflict
        case .refusalForgotten: decision.hasRefusal || block == .unsendable
        case .sealed(let sealed): maySeal(sealed)
        case .dropped: local == .clean && inFlight == .none && (queue != .idle || block != .none)
        case .blocked: queue == .queued && inFlight == .none && (local != .clean || base == .seeded)
        case .released: block != .none
        case .forbidden: queue == .queued && inFlight == .none
        case .putOff: queue == .queued
        case .resumed: queue == .deferred
        case .movedIn: local == .clean && inFlight == .none && !place.isInTable
        case .movedOut: local == .edited && inFlight == .none && !place.isLeaving && capture != .unseen
        case .arrival: place == .leaving
        case .departureSealed: inFlight == .none && (place == .left || place == .abandoned)
        case .verdict: inFlight != .none
        case .row, .tombstone, .missing: access == .followed && identity == .given
        case .matched: local != .clean
        case .versionNoted, .caughtUp, .refetchNeeded, .refetched: access == .followed
        case .conflictFound: true
        case .refused: place == .table
        case .accepted: place == .quarantined || place == .doubled
        case .named: identity == .temporary
        case .accessLost, .scopeLeft: mayGo
        case .followed: access != .followed
        case .orphaned: local != .clean || inFlight != .none || base == .seeded || place.isLeaving
        case .orphanTaken: orphan == .orphaned
        case .historyLost: access == .followed
        case .replayed: access == .followed
        case .captureLost: capture != .lost
        case .wroteUnseen, .deletedUnseen: capture == .lost
        case .captureFound: capture == .lost
        case .unseen: access == .followed && queue == .idle && inFlight == .none && !place.isLeaving
        case .compared: capture == .unseen && !place.isLeaving
        }
    }

    /// One operation of a record is in flight at a time; only replays are more.
    private func maySeal(_ sealed: Sealed) -> Bool {
        guard queue == .queued, inFlight == .none, access == .followed, !place.isLeaving else { return false }
        switch sealed {
        case .write: return local == .edited || base == .seeded || base == .deleted
        case .part: return local == .edited || base == .seeded
        case .delete: return local == .deleted
        }
    }

    /// A scope goes when its edits are orphaned. A row that is on this device only and cannot travel stays.
    private var mayGo: Bool {
        access == .followed && inFlight == .none && !place.isLeaving && base != .seeded
            && (local == .clean || block == .unsendable && base == .absent)
    }
}
