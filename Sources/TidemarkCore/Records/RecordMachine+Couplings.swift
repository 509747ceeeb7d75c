extension RecordMachine {
    /// A rule about what one region means for another. Each holds in every state that the machine comes to; where an
    /// event has broken it, ``enforce(in:)`` says what gives way. The order of the cases is the order in which they are
    /// enforced.
    package enum Coupling: Int, Hashable, Sendable, CaseIterable {
        /// A scope that is not followed, or whose access was lost, has told this device nothing. Operations are in
        /// flight only to one whose access was lost: the engine goes on asking whether that is there again.
        case strangerScope = 1
        /// A temporary id is known to this device only.
        case temporaryIsNew
        /// A row that leaves is the server's, and its record's edits are another scope's.
        case leavingIsPresent
        /// A departure is sealed exactly as long as its delete is in flight; before that only replays are.
        case departureInFlight
        /// An edit deletes only what would be there without it.
        case deletesSomething
        /// A row of the first capture is one only until the server has heard of it.
        case seedIsPending
        /// A deletion elsewhere is remembered only beneath an edit that sets fields.
        case deletedBeneathEdit
        /// No edit is lost: it is queued, blocked with a reason, or waits for a comparison.
        case editIsKept
        /// Only an edit is blocked; one that no server would take stays blocked also where it is none any more.
        case blockHasEdit
        /// The screen shows the server's row, overlaid by what is in flight and by what was edited.
        case screenShowsAll

        /// As tests and documents cite it.
        package var number: String { "C\(rawValue)" }
        /// As reports write it: `C8 editIsKept`.
        package var text: String { "\(number) \(self)" }

        package func holds(in state: RecordMachine) -> Bool {
            switch self {
            case .strangerScope:
                state.access == .followed
                    || state.base == .absent && (state.access == .lost || state.inFlight == .none)
                        && state.knowledge == .covered && !state.place.isLeaving
            case .temporaryIsNew:
                state.identity == .given
                    || (state.base == .absent || state.base == .seeded) && state.knowledge != .ahead
            case .leavingIsPresent:
                !state.place.isLeaving
                    || state.base == .present && state.local == .clean && state.queue == .idle && state.block == .none
            case .departureInFlight: state.departs
            case .deletesSomething: state.local != .deleted || state.isThereWithoutEdits
            case .seedIsPending:
                state.base != .seeded || state.queue != .idle || state.inFlight != .none || state.block != .none
            case .deletedBeneathEdit:
                state.base != .deleted || state.local == .edited || state.inFlight.isWrite
                    || state.inFlight == .none && state.queue != .idle
            case .editIsKept:
                state.local == .clean || state.queue != .idle || state.block != .none || state.capture != .watched
            case .blockHasEdit:
                state.block == .none || state.block == .unsendable || state.local != .clean || state.queue != .idle
                    || state.base == .seeded
            case .screenShowsAll: state.capture == .lost || state.place.isLeaving || state.showsAll
            }
        }

        /// Whether an event can break the rule, so that something has to give way. The other rules are kept by what the
        /// machine accepts.
        package var givesWay: Bool { self != .strangerScope && self != .departureInFlight }

        /// Makes the rule hold again.
        package func enforce(in state: inout RecordMachine) -> [Effect] {
            switch self {
            case .strangerScope, .departureInFlight: return []
            case .temporaryIsNew:
                state.identity = .given
                return [.rename]
            case .leavingIsPresent:
                (state.local, state.queue, state.block) = (.clean, .idle, .none)
                guard state.base != .present else { return [] }
                state.place = .nowhere
                if state.base != .seeded { state.base = .absent }
                return [.forgetRefused]
            case .deletesSomething:
                state.local = .clean
                return []
            case .seedIsPending:
                state.queue = .queued
                return [.enqueue]
            case .deletedBeneathEdit:
                state.base = .absent
                return []
            case .editIsKept:
                state.queue = .queued
                return [.enqueue]
            case .blockHasEdit:
                state.block = .none
                return [.unblock]
            case .screenShowsAll: return state.showAll()
            }
        }
    }

    private var departs: Bool {
        switch (place, inFlight) {
        case (.leavingSealed, .none), (.leavingSealed, .write): false
        case (.leaving, .write), (.left, .write), (.abandoned, .write), (.leaving, .delete), (.left, .delete),
            (.abandoned, .delete):
            false
        case (.leavingSealed, .delete), (.leavingSealed, .replayedWrite), (.leavingSealed, .replayedDelete),
            (.leaving, .none), (.left, .none), (.abandoned, .none), (.leaving, .replayedWrite), (.left, .replayedWrite),
            (.abandoned, .replayedWrite), (.leaving, .replayedDelete), (.left, .replayedDelete),
            (.abandoned, .replayedDelete), (.nowhere, _), (.table, _), (.quarantined, _), (.doubled, _):
            true
        }
    }

    /// Whether the row is where it has to be, for what should be on screen.
    private var showsAll: Bool {
        switch place {
        case .nowhere: !isVisible
        case .table, .doubled: isVisible
        // The app has taken its own row away, and the other one stays outside the table.
        case .quarantined: isVisible || local == .deleted
        case .leaving, .left, .abandoned, .leavingSealed: true
        }
    }

    private mutating func showAll() -> [Effect] {
        switch place {
        case .nowhere:
            place = .table
            return [.writeRow]
        case .table, .doubled:
            place = .nowhere
            return [.deleteRow]
        case .quarantined:
            place = .nowhere
            return [.forgetRefused]
        case .leaving, .left, .abandoned, .leavingSealed: return []
        }
    }
}
