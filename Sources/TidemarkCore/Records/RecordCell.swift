/// One cell of a region's table: an event in one of the region's states, where it changes that state or asks for
/// something to be done.
package struct RecordCell: Hashable, Sendable, Comparable, CustomStringConvertible {
    package var region: String
    package var state: String
    package var event: String
    package var next: String
    package var effects: [RecordMachine.Effect]

    package var description: String { "\(region) \(state), \(event)" }

    package static func < (lhs: Self, rhs: Self) -> Bool {
        (lhs.region, lhs.state, lhs.event) < (rhs.region, rhs.state, rhs.event)
    }

    /// The cells of all regions that an event meets.
    package static func all(of machine: RecordMachine, _ event: RecordMachine.Event) -> [RecordCell] {
        guard machine.accepts(event) else { return [] }
        return [
            cell("base", machine.base, event), cell("local", machine.local, event),
            cell("queue", machine.queue, event), cell("in flight", machine.inFlight, event),
            cell("place", machine.place, event), cell("block", machine.block, event),
            cell("decision", machine.decision, event), cell("identity", machine.identity, event),
            cell("knowledge", machine.knowledge, event), cell("access", machine.access, event),
            cell("orphan", machine.orphan, event), cell("capture", machine.capture, event),
        ].compactMap { $0 }
    }

    /// `nil` where nothing happens.
    package static func cell<Region: RecordRegion>(
        _ name: String, _ region: Region, _ event: RecordMachine.Event
    ) -> RecordCell? {
        let (next, effects) = region.next(event)
        guard next != region || !effects.isEmpty else { return nil }
        return RecordCell(
            region: name, state: "\(region)", event: event.text, next: "\(next)", effects: effects)
    }
}

extension RecordMachine.Event {
    /// As documents and reports write it: `verdict taken, present`.
    package var text: String {
        switch self {
        case .sealed(let sealed): "sealed \(sealed)"
        case .blocked(let block): "blocked \(block)"
        case .arrival(let arrival): "arrival \(arrival)"
        case .verdict(let verdict, let row): "verdict \(verdict), \(row)"
        case .replayed(let change): "replayed \(change)"
        case .unseen(let unseen): "unseen \(unseen)"
        case .compared(let compared): "compared \(compared)"
        case .edited, .reverted, .deleted, .decided, .refusalForgotten, .dropped, .released, .forbidden, .putOff,
            .resumed, .movedIn, .movedOut, .departureSealed, .row, .tombstone, .missing, .matched, .versionNoted,
            .caughtUp, .refetchNeeded, .refetched, .conflictFound, .refused, .accepted, .named, .accessLost,
            .scopeLeft, .followed, .orphaned, .orphanTaken, .historyLost, .captureLost, .wroteUnseen,
            .deletedUnseen, .captureFound:
            "\(self)"
        }
    }
}
