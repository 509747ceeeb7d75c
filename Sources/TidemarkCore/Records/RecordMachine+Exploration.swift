extension RecordMachine {
    /// All states that the machine comes to by any events, breadth first.
    ///
    /// - Parameters:
    ///   - reduced: leaves differences out that the caller does not ask about, so that fewer states are looked at.
    ///   - visit: is told of every step that is made: the state, the event, what was done for it, and the state after.
    package static func reachable(
        _ reduced: (RecordMachine) -> RecordMachine = { $0 },
        visit: (RecordMachine, Event, [Effect], RecordMachine) -> Void = { _, _, _, _ in }
    ) -> [RecordMachine] {
        var states: [RecordMachine] = []
        for identity in Identity.allCases {
            for access in [Access.followed, .unfollowed] {
                var state = RecordMachine()
                (state.identity, state.access) = (identity, access)
                states.append(state)
            }
        }
        var seen = Set(states)
        var place = 0
        while place < states.count {
            let state = states[place]
            place += 1
            for event in Event.allCases where state.accepts(event) {
                var next = state
                let effects = next.handle(event)
                visit(state, event, effects, next)
                next = reduced(next)
                if seen.insert(next).inserted { states.append(next) }
            }
        }
        return states
    }
}
