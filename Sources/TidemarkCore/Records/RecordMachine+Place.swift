extension RecordMachine {
    /// Where the row that this scope has of the record is.
    package enum Place: RecordRegion {
        /// This scope has no row of the record on this device.
        case nowhere
        /// In the app's table.
        case table
        /// Outside it, as a quarantined row (Glossary).
        case quarantined
        /// Outside it, and the app has made another row of the same key since.
        case doubled
        /// The record left for another scope, which has not said yet whether it took it.
        case leaving
        /// It was taken there; the delete here is to be sealed.
        case left
        /// It was not taken there, and was deleted meanwhile; the delete here is to be sealed.
        case abandoned
        /// The delete here is sealed.
        case leavingSealed

        /// Whether the record's own edits are another scope's by now.
        package var isLeaving: Bool {
            switch self {
            case .nowhere, .table, .quarantined, .doubled: false
            case .leaving, .left, .abandoned, .leavingSealed: true
            }
        }

        package var isInTable: Bool {
            switch self {
            case .table, .doubled: true
            case .nowhere, .quarantined, .leaving, .left, .abandoned, .leavingSealed: false
            }
        }

        package func next(_ event: Event) -> (Self, [Effect]) {
            switch event {
            case .edited:
                switch self {
                case .quarantined: return (.doubled, [])
                case .nowhere: return (.table, [])
                case .table, .doubled, .leaving, .left, .abandoned, .leavingSealed: return (self, [])
                }
            case .deleted:
                switch self {
                case .doubled: return (.quarantined, [])
                case .table: return (.nowhere, [])
                case .nowhere, .quarantined, .leaving, .left, .abandoned, .leavingSealed: return (self, [])
                }
            case .wroteUnseen: return (self == .nowhere ? .table : self, [])
            case .deletedUnseen: return (self == .table ? .nowhere : self, [])
            case .refused: return self == .table ? (.quarantined, [.quarantine, .deleteRow]) : (self, [])
            case .accepted: return isInTable || self == .quarantined ? (.table, [.writeRow]) : (self, [])
            case .movedIn: return (.table, isInTable ? [] : [.forgetRefused])
            case .movedOut: return (.leaving, [.leave])
            case .arrival(let arrival): return self == .leaving ? next(arrival) : (self, [])
            case .departureSealed:
                switch self {
                case .left, .abandoned: return (.leavingSealed, [])
                case .nowhere, .table, .quarantined, .doubled, .leaving, .leavingSealed: return (self, [])
                }
            case .verdict(let verdict, let row): return next(verdict, row)
            case .row: return self == .doubled ? (.table, [.forgetRefused]) : (self, [])
            case .tombstone:
                switch self {
                case .doubled: return (.table, [.forgetRefused])
                case .leaving, .left, .abandoned, .leavingSealed: return (.nowhere, [.forgetRefused])
                case .nowhere, .table, .quarantined: return (self, [])
                }
            case .orphaned:
                return isLeaving ? (.nowhere, [.forgetRefused]) : (self == .doubled ? .table : self, [])
            case .reverted, .decided, .refusalForgotten, .sealed, .dropped, .blocked, .released, .forbidden, .pruned,
                .assumed, .seedBack, .putOff,
                .resumed, .matched, .versionNoted, .caughtUp, .refetchNeeded, .refetched, .conflictFound, .named,
                .accessLost,
                .scopeLeft, .followed, .orphanTaken, .historyLost, .replayed, .captureLost, .captureFound, .unseen,
                .compared:
                return (self, [])
            }
        }

        private func next(_ arrival: Arrival) -> (Self, [Effect]) {
            switch arrival {
            case .taken: (.left, [])
            case .refused: (.quarantined, [])
            case .refusedAndDeleted: (.abandoned, [])
            }
        }

        /// Only the delete of a departure says anything about a row that leaves.
        private func next(_ verdict: Verdict, _ row: ServerRow) -> (Self, [Effect]) {
            switch (self, verdict, row) {
            case (.doubled, _, _): return (.table, [.forgetRefused])
            case (.leavingSealed, .taken, .gone): return (.nowhere, [.forgetRefused])
            case (.leavingSealed, .deferredWrite, _), (.leavingSealed, .deferredDelete, _): return (.left, [])
            case (.leavingSealed, .taken, .same), (.leavingSealed, .taken, .present), (.leavingSealed, .rejected, _),
                (.leavingSealed, .conflict, _), (.leavingSealed, .outcomeUnknown, _):
                return (.quarantined, [.quarantine])
            case (.nowhere, _, _), (.table, _, _), (.quarantined, _, _), (.leaving, _, _), (.left, _, _),
                (.abandoned, _, _):
                return (self, [])
            }
        }
    }
}
