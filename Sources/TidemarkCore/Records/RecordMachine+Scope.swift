extension RecordMachine {
    /// Whose id the record has.
    package enum Identity: RecordRegion {
        /// The one that it has everywhere.
        case given
        /// One of this device's making, until the server has assigned another.
        case temporary

        package func next(_ event: Event) -> (Self, [Effect]) {
            switch event {
            case .named: return (.given, self == .temporary ? [.rename] : [])
            case .edited, .reverted, .deleted, .decided, .refusalForgotten, .sealed, .dropped, .blocked, .released,
                .forbidden, .pruned, .assumed, .seedBack, .putOff, .resumed, .movedIn, .movedOut, .arrival,
                .departureSealed, .verdict, .row,
                .tombstone,
                .matched, .versionNoted, .caughtUp, .refetchNeeded, .refetched, .conflictFound, .refused,
                .accepted, .accessLost, .scopeLeft, .followed, .orphaned, .orphanTaken, .historyLost, .replayed,
                .captureLost, .wroteUnseen, .deletedUnseen, .captureFound, .unseen, .compared:
                return (self, [])
            }
        }
    }

    /// How what is known of the record relates to the scope's checkpoint.
    package enum Knowledge: RecordRegion {
        /// The row stands at or below the checkpoint.
        case covered
        /// Its version is above the checkpoint, and remembered.
        case ahead
        /// The known row may be outdated: the client asks the server for the record by name.
        case refetch

        package func next(_ event: Event) -> (Self, [Effect]) {
            switch event {
            case .versionNoted:
                switch self {
                case .covered, .ahead: return (.ahead, [.noteVersion])
                case .refetch: return (self, [.noteVersion])
                }
            case .caughtUp:
                switch self {
                case .ahead, .covered: return (.covered, [.forgetVersion])
                case .refetch: return (self, [.forgetVersion])
                }
            case .refetchNeeded: return (.refetch, [.refetch])
            case .refetched:
                switch self {
                case .refetch: return (.covered, [])
                case .covered, .ahead: return (self, [])
                }
            case .historyLost:
                switch self {
                case .ahead: return (.covered, [.forgetVersion])
                case .covered, .refetch: return (self, [])
                }
            case .accessLost, .scopeLeft: return (.covered, [.forgetVersion])
            case .edited, .reverted, .deleted, .decided, .refusalForgotten, .sealed, .dropped, .blocked, .released,
                .forbidden, .pruned, .assumed, .seedBack, .putOff, .resumed, .movedIn, .movedOut, .arrival,
                .departureSealed, .verdict, .row,
                .tombstone,
                .matched, .conflictFound, .refused, .accepted, .named, .followed, .orphaned, .orphanTaken,
                .replayed, .captureLost, .wroteUnseen, .deletedUnseen, .captureFound, .unseen, .compared:
                return (self, [])
            }
        }
    }

    /// Whether the device follows the scope, and may.
    package enum Access: RecordRegion {
        /// An engine on this file syncs it.
        case followed
        /// The server took the access away.
        case lost
        /// No engine on this file follows the scope: the app left it, or the record names one that nobody asked for.
        case unfollowed

        package func next(_ event: Event) -> (Self, [Effect]) {
            switch event {
            case .accessLost: return (.lost, [.removeScope])
            case .scopeLeft: return (.unfollowed, [.removeScope])
            case .followed: return (.followed, self == .followed ? [] : [.fillScope])
            case .edited, .reverted, .deleted, .decided, .refusalForgotten, .sealed, .dropped, .blocked, .released,
                .forbidden, .pruned, .assumed, .seedBack, .putOff, .resumed, .movedIn, .movedOut, .arrival,
                .departureSealed, .verdict, .row,
                .tombstone,
                .matched, .versionNoted, .caughtUp, .refetchNeeded, .refetched, .conflictFound, .refused,
                .accepted, .named, .orphaned, .orphanTaken, .historyLost, .replayed, .captureLost, .wroteUnseen,
                .deletedUnseen, .captureFound, .unseen, .compared:
                return (self, [])
            }
        }
    }

    /// Whether edits of the record outlived the scope that they were made in. They are made anew when it is back.
    package enum Orphan: RecordRegion {
        /// None.
        case none
        /// They are orphaned.
        case orphaned

        package func next(_ event: Event) -> (Self, [Effect]) {
            switch event {
            case .orphaned: return (.orphaned, [.orphan])
            case .orphanTaken: return (.none, self == .orphaned ? [.replayOrphan] : [])
            case .edited, .reverted, .deleted, .decided, .refusalForgotten, .sealed, .dropped, .blocked, .released,
                .forbidden, .pruned, .assumed, .seedBack, .putOff, .resumed, .movedIn, .movedOut, .arrival,
                .departureSealed, .verdict, .row,
                .tombstone,
                .matched, .versionNoted, .caughtUp, .refetchNeeded, .refetched, .conflictFound, .refused,
                .accepted, .named, .accessLost, .scopeLeft, .followed, .historyLost, .replayed, .captureLost,
                .wroteUnseen, .deletedUnseen, .captureFound, .unseen, .compared:
                return (self, [])
            }
        }
    }

    /// Whether every write to the record was seen.
    package enum Capture: RecordRegion {
        /// The table's triggers note every write.
        case watched
        /// Triggers of the table are gone, so that a write may go unnoted.
        case lost
        /// An unseen write was found, and waits to be held against the server's row.
        case unseen

        package func next(_ event: Event) -> (Self, [Effect]) {
            switch event {
            case .captureLost: return (.lost, [])
            case .captureFound, .compared: return (.watched, [])
            case .unseen: return (.unseen, [.compare])
            case .accessLost, .scopeLeft, .orphaned:
                switch self {
                case .unseen, .watched: return (.watched, [])
                case .lost: return (.lost, [])
                }
            case .edited, .reverted, .deleted, .decided, .refusalForgotten, .sealed, .dropped, .blocked, .released,
                .forbidden, .pruned, .assumed, .seedBack, .putOff, .resumed, .movedIn, .movedOut, .arrival,
                .departureSealed, .verdict, .row,
                .tombstone,
                .matched, .versionNoted, .caughtUp, .refetchNeeded, .refetched, .conflictFound, .refused,
                .accepted, .named, .followed, .orphanTaken, .historyLost, .replayed, .wroteUnseen, .deletedUnseen:
                return (self, [])
            }
        }
    }
}
