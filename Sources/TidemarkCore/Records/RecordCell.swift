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

    /// The cells of all states that the machine comes to, as far as something changes that is kept: the others ask for
    /// what was done already.
    package static let visible: Set<RecordCell> = {
        var search = RecordCellSearch()
        // Decisions that wait for the app, and orphaned edits, mean nothing for any other region.
        func reduced(_ machine: RecordMachine) -> RecordMachine {
            var machine = machine
            (machine.decision, machine.orphan) = (.none, .none)
            return machine
        }
        _ = RecordMachine.reachable(reduced) { before, event, _, after in
            search.meet(before, event, isChanged: reduced(after) != before)
        }
        return search.found
    }()

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

/// Finds the cells that states come to, each once: there are a hundred times as many steps as cells.
private struct RecordCellSearch {
    /// The cells of one region that were not come to: by the event's place, then by state.
    private struct Region<State: RecordRegion> {
        var cells: [[State: RecordCell]]

        init(_ name: String) {
            cells = RecordMachine.Event.allCases.map { event in
                State.allCases.reduce(into: [:]) { $0[$1] = RecordCell.cell(name, $1, event) }
            }
        }

        mutating func meet(_ state: State, _ place: Int, _ found: inout Set<RecordCell>) {
            guard !cells[place].isEmpty, let cell = cells[place].removeValue(forKey: state) else { return }
            found.insert(cell)
        }
    }

    private let places = Dictionary(
        uniqueKeysWithValues: zip(RecordMachine.Event.allCases, RecordMachine.Event.allCases.indices))
    private var base = Region<RecordMachine.Base>("base")
    private var local = Region<RecordMachine.Local>("local")
    private var queue = Region<RecordMachine.Queue>("queue")
    private var inFlight = Region<RecordMachine.InFlight>("in flight")
    private var place = Region<RecordMachine.Place>("place")
    private var block = Region<RecordMachine.Block>("block")
    private var decisions = Region<RecordMachine.Decision>("decision")
    private var orphans = Region<RecordMachine.Orphan>("orphan")
    private var identity = Region<RecordMachine.Identity>("identity")
    private var knowledge = Region<RecordMachine.Knowledge>("knowledge")
    private var access = Region<RecordMachine.Access>("access")
    private var capture = Region<RecordMachine.Capture>("capture")
    private(set) var found: Set<RecordCell> = []

    mutating func meet(_ machine: RecordMachine, _ event: RecordMachine.Event, isChanged: Bool) {
        guard let index = places[event] else { return }
        for decision in RecordMachine.Decision.allCases where isChanged || decision.next(event).0 != decision {
            decisions.meet(decision, index, &found)
        }
        for orphan in RecordMachine.Orphan.allCases where isChanged || orphan.next(event).0 != orphan {
            orphans.meet(orphan, index, &found)
        }
        guard isChanged else { return }
        base.meet(machine.base, index, &found)
        local.meet(machine.local, index, &found)
        queue.meet(machine.queue, index, &found)
        inFlight.meet(machine.inFlight, index, &found)
        place.meet(machine.place, index, &found)
        block.meet(machine.block, index, &found)
        identity.meet(machine.identity, index, &found)
        knowledge.meet(machine.knowledge, index, &found)
        access.meet(machine.access, index, &found)
        capture.meet(machine.capture, index, &found)
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
        case .edited, .reverted, .deleted, .decided, .refusalForgotten, .dropped, .released, .forbidden, .pruned,
            .assumed, .seedBack, .putOff,
            .resumed, .movedIn, .movedOut, .departureSealed, .row, .tombstone, .matched, .versionNoted,
            .caughtUp, .refetchNeeded, .refetched, .conflictFound, .refused, .accepted, .named, .accessLost,
            .scopeLeft, .followed, .orphaned, .orphanTaken, .historyLost, .captureLost, .wroteUnseen,
            .deletedUnseen, .captureFound:
            "\(self)"
        }
    }
}
