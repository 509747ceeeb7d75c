/// How one record stands, in one scope, between this device and the server.
///
/// A record has a machine for each scope that has anything to do with it: while it moves from one scope to another it
/// has two. The machine holds no values, versions or bases. It says which of them exist and what may happen next.
///
/// The state is a product of regions. Each region is a total function of its own state and the event; it sees no other
/// region. What one region means for another stands in ``Coupling``, numbered, and is carried out after every event.
/// `Documentation/Machines.md` shows the tables, which are made from this code.
package struct RecordMachine: Hashable, Sendable {
    /// The server's row, as far as this device knows it.
    package var base: Base = .absent
    /// An edit made here that is not sealed.
    package var local: Local = .clean
    /// Whether the outbox batcher will look at the record.
    package var queue: Queue = .idle
    /// The operations that are sealed and have no verdict.
    package var inFlight: InFlight = .none
    /// Where the row is.
    package var place: Place = .nowhere
    /// The reason why an edit is not sealed.
    package var block: Block = .none
    /// A conflict or refusal that waits for the app.
    package var decision: Decision = .none
    /// Whose id the record has.
    package var identity: Identity = .given
    /// How what is known relates to the scope's checkpoint.
    package var knowledge: Knowledge = .covered
    /// Whether the device follows the scope, and may.
    package var access: Access = .followed
    /// Whether edits of the record outlived the scope that they were made in.
    package var orphan: Orphan = .none
    /// Whether every write to the record was seen.
    package var capture: Capture = .watched

    package init() {}

    /// Takes one event in.
    ///
    /// - Returns: what has to be done for it, in the order of the regions and then of the couplings. Empty where the
    ///   event cannot happen in this state (``accepts(_:)``): it came late, or twice.
    package mutating func handle(_ event: Event) -> [Effect] { handle(event) { _ in } }

    /// As ``handle(_:)``, and tells which couplings had to change the state.
    package mutating func handle(_ event: Event, noting note: (Coupling) -> Void) -> [Effect] {
        guard accepts(event) else { return [] }
        var effects: [Effect] = []
        func step<Region: RecordRegion>(_ region: WritableKeyPath<RecordMachine, Region>) {
            let (next, more) = self[keyPath: region].next(event)
            self[keyPath: region] = next
            effects += more
        }
        step(\.base)
        step(\.local)
        step(\.queue)
        step(\.inFlight)
        step(\.place)
        step(\.block)
        step(\.decision)
        step(\.identity)
        step(\.knowledge)
        step(\.access)
        step(\.orphan)
        step(\.capture)
        // In the order of their numbers: each may rely on those before it.
        for coupling in Coupling.allCases where !coupling.holds(in: self) {
            effects += coupling.enforce(in: &self)
            note(coupling)
        }
        return effects
    }

    /// The couplings that do not hold. A state that the machine has come to breaks none.
    package var broken: [Coupling] { Coupling.allCases.filter { !$0.holds(in: self) } }

    /// Whether a row of the record should be on screen, or would be if the app's schema took it: the server's row,
    /// overlaid by what is in flight, then by the edits.
    package var isVisible: Bool {
        switch local {
        case .edited: true
        case .deleted: false
        case .clean: isThereWithoutEdits
        }
    }

    /// Whether there would be a row if nothing had been edited since the last sealing.
    package var isThereWithoutEdits: Bool {
        switch inFlight {
        case .write, .replayedWrite: true
        case .delete, .replayedDelete: false
        case .none: base == .present || base == .seeded
        }
    }

    /// The regions whose state is not the usual one, in one line.
    package var outline: String {
        let usual = RecordMachine()
        var parts: [String] = []
        func add<Region: RecordRegion>(_ name: String, _ region: KeyPath<RecordMachine, Region>) {
            guard self[keyPath: region] != usual[keyPath: region] else { return }
            parts.append("\(name) \(self[keyPath: region])")
        }
        add("base", \.base)
        add("local", \.local)
        add("queue", \.queue)
        add("inFlight", \.inFlight)
        add("place", \.place)
        add("block", \.block)
        add("decision", \.decision)
        add("identity", \.identity)
        add("knowledge", \.knowledge)
        add("access", \.access)
        add("orphan", \.orphan)
        add("capture", \.capture)
        return parts.isEmpty ? "nothing known" : parts.joined(separator: ", ")
    }
}

/// One part of a record's state. It changes by the event alone; a coupling adds what other regions mean for it.
package protocol RecordRegion: Hashable, Sendable, CaseIterable {
    /// The state after an event, and what has to be done for it. Total: every event has an answer in every state.
    func next(_ event: RecordMachine.Event) -> (Self, [RecordMachine.Effect])
}
