import Tidemark
import TidemarkCore

/// Finds the shortest paths of events from one state of a record to another, among the events that a transaction of the
/// engine may bring.
struct RecordPaths {
    struct Question: Hashable {
        var from, to: RecordMachine
        /// The kind of write; `nil`: edits of the app.
        var point: WritePoint?
        /// The verdicts that the record's operations may have had meanwhile.
        var verdicts: Set<RecordMachine.Verdict>
    }

    /// All paths of the least number of events: nothing that a file keeps tells them apart.
    struct Paths {
        var length: Int
        var cells: Set<RecordCell> = []
        var couplings: Set<RecordMachine.Coupling> = []
    }

    private var known: [Question: Paths?] = [:]
    private static let appEvents: [RecordMachine.Event] = [
        .edited, .reverted, .deleted, .dropped, .blocked(.displaced), .released, .captureLost, .wroteUnseen,
        .deletedUnseen,
    ]

    /// Whether a write of the app's may bring one of its events: it releases no edit but one whose place it had given
    /// to another scope's row.
    private static func mayBring(_ event: RecordMachine.Event, in state: RecordMachine) -> Bool {
        event != .released || state.block == .displaced
    }

    /// Events in one transaction at most: a record's verdict, its row on the page, what a cascade does to it, and where
    /// its row ends.
    private static let limit = 6

    mutating func paths(_ question: Question) -> Paths? {
        if let answer = known[question] { return answer }
        let answer = Self.search(question)
        known[question] = .some(answer)
        return answer
    }

    private typealias Step = (from: RecordMachine, event: RecordMachine.Event)

    private static func search(_ question: Question) -> Paths? {
        let events = events(at: question.point).filter { event in
            guard case .verdict(let verdict, _) = event else { return true }
            return question.verdicts.contains(verdict)
        }
        var seen: Set<RecordMachine> = [question.from]
        var front: Set<RecordMachine> = [question.from]
        var layers: [[RecordMachine: [Step]]] = []
        while layers.count < limit, !front.contains(question.to) {
            var next: [RecordMachine: [Step]] = [:]
            for state in front {
                for event in events where state.accepts(event) {
                    guard question.point != nil || mayBring(event, in: state) else { continue }
                    var machine = state
                    _ = machine.handle(event)
                    if !seen.contains(machine) { next[machine, default: []].append((state, event)) }
                }
            }
            front = Set(next.keys)
            seen.formUnion(front)
            layers.append(next)
        }
        return front.contains(question.to) ? back(from: question.to, through: layers) : nil
    }

    /// Collects the steps of the paths, from their end to their beginning.
    private static func back(from end: RecordMachine, through layers: [[RecordMachine: [Step]]]) -> Paths {
        var paths = Paths(length: layers.count)
        var ends: Set<RecordMachine> = [end]
        for layer in layers.reversed() {
            let steps = ends.flatMap { layer[$0] ?? [] }
            for step in steps {
                paths.cells.formUnion(RecordCell.all(of: step.from, step.event))
                var machine = step.from
                _ = machine.handle(step.event) { paths.couplings.insert($0) }
            }
            ends = Set(steps.map(\.from))
        }
        return paths
    }

    private static func events(at point: WritePoint?) -> [RecordMachine.Event] {
        switch point {
        case nil: appEvents
        case .seal: sealing
        case .apply, .page: applying
        case .records: applying + RecordMachine.Unseen.allCases.map(RecordMachine.Event.unseen)
        case .attempts: []
        case .lossProbe, .unwanted, .install, .rules, .group, .decide, .inferred, .repair, .recover, .refuse, .restart,
            .loss, .leave:
            RecordMachine.Event.allCases
        }
    }

    private static let sealing = RecordMachine.Event.allCases.filter { event in
        switch event {
        case .sealed, .dropped, .blocked, .released, .forbidden, .pruned, .assumed, .putOff, .resumed, .movedIn,
            .movedOut, .arrival, .departureSealed, .reverted, .matched, .refused, .accepted, .refusalForgotten:
            true
        case .edited, .deleted, .decided, .verdict, .row, .tombstone, .versionNoted, .caughtUp,
            .refetchNeeded, .refetched, .conflictFound, .named, .accessLost, .scopeLeft, .followed, .orphaned,
            .orphanTaken, .seedBack, .historyLost, .replayed, .captureLost, .wroteUnseen, .deletedUnseen,
            .captureFound, .unseen, .compared:
            false
        }
    }

    /// Orphaned edits are made anew here too, as edits and moves.
    private static let applying = RecordMachine.Event.allCases.filter { event in
        switch event {
        case .verdict, .row, .tombstone, .matched, .dropped, .versionNoted, .caughtUp, .refetchNeeded,
            .refetched, .conflictFound, .refusalForgotten, .movedOut, .arrival, .refused, .accepted, .named, .released,
            .putOff, .resumed, .edited, .reverted, .deleted, .orphanTaken, .seedBack, .historyLost, .replayed,
            .compared, .followed:
            true
        case .decided, .sealed, .blocked, .forbidden, .pruned, .assumed, .movedIn, .departureSealed, .accessLost,
            .scopeLeft, .orphaned, .captureLost, .wroteUnseen, .deletedUnseen, .captureFound, .unseen:
            false
        }
    }
}
