extension RecordMachine {
    /// Whether the outbox batcher will look at the record: its mark.
    package enum Queue: RecordRegion {
        /// Not marked.
        case idle
        /// Marked. What there is to send is found out when it is sealed; a mark too many costs nothing.
        case queued
        /// Marked, and put off until the server has room.
        case deferred

        package func next(_ event: Event) -> (Self, [Effect]) {
            switch event {
            case .edited, .reverted, .deleted:
                switch self {
                case .idle: return (.queued, [.enqueue])
                case .queued, .deferred: return (self, [])
                }
            case .sealed(let sealed):
                switch sealed {
                case .write, .delete: return (.idle, [.dequeue])
                case .part: return (.queued, [])
                }
            case .dropped, .blocked, .forbidden, .movedOut, .pruned, .assumed, .orphaned, .accessLost,
                .scopeLeft:
                return (.idle, [.dequeue])
            case .released, .movedIn, .compared, .seedBack: return (.queued, [.enqueue])
            case .putOff: return (.deferred, [])
            case .resumed: return (.queued, [])
            case .verdict(let verdict, _):
                switch verdict {
                case .deferredWrite, .deferredDelete: return (.queued, [.enqueue])
                case .taken, .rejected, .conflict, .outcomeUnknown: return (self, [])
                }
            case .decided, .refusalForgotten, .arrival, .departureSealed, .row, .tombstone, .matched,
                .versionNoted, .caughtUp, .refetchNeeded, .refetched, .conflictFound, .refused, .accepted, .named,
                .followed, .orphanTaken, .historyLost, .replayed, .captureLost, .wroteUnseen, .deletedUnseen,
                .captureFound, .unseen:
                return (self, [])
            }
        }
    }

    /// The operations that are sealed and have no verdict. A record has one operation in flight, and several only while
    /// lost ones are replayed; the last of them says what the edits make of the row.
    package enum InFlight: RecordRegion {
        /// Nothing.
        case none
        /// An insert or an edit.
        case write
        /// A delete.
        case delete
        /// Operations that the server has lost are on their way again, and a write is the last.
        case replayedWrite
        /// The same, and a delete is the last.
        case replayedDelete

        package var isWrite: Bool { self == .write || self == .replayedWrite }

        package func next(_ event: Event) -> (Self, [Effect]) {
            switch event {
            case .sealed(let sealed):
                switch sealed {
                case .write, .part: return (.write, [.seal])
                case .delete: return (.delete, [.seal])
                }
            case .departureSealed: return (.delete, [.seal])
            case .verdict: return (.none, [.finish])
            case .replayed(let change):
                switch change {
                case .write: return (.replayedWrite, [.replay])
                case .delete: return (.replayedDelete, [.replay])
                }
            case .orphaned, .accessLost, .scopeLeft: return (.none, [])
            case .edited, .reverted, .deleted, .decided, .refusalForgotten, .dropped, .blocked, .released, .forbidden,
                .pruned, .assumed, .seedBack, .putOff, .resumed, .movedIn, .movedOut, .arrival, .row, .tombstone,
                .matched, .versionNoted,
                .caughtUp, .refetchNeeded, .refetched, .conflictFound, .refused, .accepted, .named, .followed,
                .orphanTaken, .historyLost, .captureLost, .wroteUnseen, .deletedUnseen, .captureFound, .unseen,
                .compared:
                return (self, [])
            }
        }
    }

    /// The reason why an edit is not sealed. The row stays as it was edited.
    package enum Block: RecordRegion {
        /// Nothing.
        case none
        /// It refers to a record whose insert was refused.
        case rejectedParent
        /// It refers to a record that has no id of the server's yet.
        case awaitingID
        /// No server would take it: text that is not UTF-8, a record too large. It is kept so until the app has
        /// decided, also where it was orphaned meanwhile.
        case unsendable
        /// It was written unseen, with too many others: the app has to confirm it.
        case unconfirmed
        /// No engine on this file follows its scope, and another scope's row has its place in the table.
        case displaced

        package func next(_ event: Event) -> (Self, [Effect]) {
            switch event {
            case .blocked(let block): return (block, [.block])
            case .released, .forbidden, .sealed, .dropped, .movedOut, .pruned, .assumed:
                return (.none, self == .none ? [] : [.unblock])
            case .orphaned:
                switch self {
                case .unsendable, .none: return (self, [])
                case .rejectedParent, .awaitingID, .unconfirmed, .displaced: return (.none, [.unblock])
                }
            case .refusalForgotten:
                switch self {
                case .unsendable: return (.none, [.unblock])
                case .none, .rejectedParent, .awaitingID, .unconfirmed, .displaced: return (self, [])
                }
            case .edited, .reverted, .deleted, .decided, .seedBack, .putOff, .resumed, .movedIn, .arrival,
                .departureSealed,
                .verdict, .row, .tombstone, .matched, .versionNoted, .caughtUp, .refetchNeeded, .refetched,
                .conflictFound, .refused, .accepted, .named, .accessLost, .scopeLeft, .followed, .orphanTaken,
                .historyLost, .replayed, .captureLost, .wroteUnseen, .deletedUnseen, .captureFound, .unseen,
                .compared:
                return (self, [])
            }
        }
    }

    /// A conflict or refusal that waits for the app. It blocks nothing: the row is the server's, or was edited again.
    package enum Decision: RecordRegion {
        /// Nothing.
        case none
        /// An edit was refused, and is kept.
        case rejected
        /// An edit met another one.
        case conflict
        /// Both, of two edits.
        case rejectedAndConflict

        package var hasConflict: Bool { self == .conflict || self == .rejectedAndConflict }
        package var hasRefusal: Bool { self == .rejected || self == .rejectedAndConflict }

        package func next(_ event: Event) -> (Self, [Effect]) {
            switch event {
            case .verdict(let verdict, _):
                switch verdict {
                case .rejected: return (withRefusal, [.recordRefusal])
                case .conflict: return (withConflict, [.recordConflict])
                case .taken, .deferredWrite, .deferredDelete, .outcomeUnknown: return (self, [])
                }
            case .forbidden: return (withRefusal, [.recordRefusal])
            case .conflictFound: return (withConflict, [.recordConflict])
            case .decided:
                switch self {
                case .conflict: return (.none, [.forgetDecision])
                case .rejectedAndConflict: return (.rejected, [.forgetDecision])
                case .none, .rejected: return (self, [])
                }
            case .refusalForgotten:
                switch self {
                case .rejected: return (.none, [.forgetDecision])
                case .rejectedAndConflict: return (.conflict, [.forgetDecision])
                case .none, .conflict: return (self, [])
                }
            case .edited, .reverted, .deleted, .sealed, .dropped, .blocked, .released, .pruned, .assumed, .seedBack,
                .putOff, .resumed, .movedIn,
                .movedOut, .arrival, .departureSealed, .row, .tombstone, .matched, .versionNoted,
                .caughtUp, .refetchNeeded, .refetched, .refused, .accepted, .named, .accessLost, .scopeLeft,
                .followed, .orphaned, .orphanTaken, .historyLost, .replayed, .captureLost, .wroteUnseen,
                .deletedUnseen, .captureFound, .unseen, .compared:
                return (self, [])
            }
        }

        private var withRefusal: Self {
            switch self {
            case .none, .rejected: .rejected
            case .conflict, .rejectedAndConflict: .rejectedAndConflict
            }
        }

        private var withConflict: Self {
            switch self {
            case .none, .conflict: .conflict
            case .rejected, .rejectedAndConflict: .rejectedAndConflict
            }
        }
    }
}
