import Tidemark
import TidemarkCore

/// Finds the shortest way of events from one state of a record to another, among the events that a transaction of the
/// engine may bring.
struct RecordPaths {
    private struct Question: Hashable {
        var from, to: RecordMachine
        var point: WritePoint?
    }

    private var known: [Question: [RecordMachine.Event]?] = [:]
    private static let appEvents: [RecordMachine.Event] = [
        .edited, .reverted, .deleted, .dropped, .captureLost, .wroteUnseen, .deletedUnseen,
    ]

    /// Events in one transaction at most: a record's verdict, its row on the page, what a cascade does to it, and where
    /// its row ends.
    private static let limit = 6

    mutating func path(
        from start: RecordMachine, to end: RecordMachine, at point: WritePoint?
    ) -> [RecordMachine.Event]? {
        let question = Question(from: start, to: end, point: point)
        if let answer = known[question] { return answer }
        let answer = search(question)
        known[question] = .some(answer)
        return answer
    }

    private func search(_ question: Question) -> [RecordMachine.Event]? {
        let events = Self.events(at: question.point)
        var ways: [RecordMachine: [RecordMachine.Event]] = [question.from: []]
        var front = [question.from]
        for _ in 0..<Self.limit {
            var next: [RecordMachine] = []
            for state in front {
                for event in events where state.accepts(event) {
                    var machine = state
                    _ = machine.handle(event)
                    guard ways[machine] == nil else { continue }
                    ways[machine] = (ways[state] ?? []) + [event]
                    if machine == question.to { return ways[machine] }
                    next.append(machine)
                }
            }
            front = next
        }
        return nil
    }

    private static func events(at point: WritePoint?) -> [RecordMachine.Event] {
        switch point {
        case nil: appEvents
        case .seal: sealing
        case .apply, .page, .records: applying
        case .attempts: []
        case .lossProbe, .unwanted, .install, .rules, .group, .decide, .inferred, .repair, .recover, .refuse, .restart,
            .loss, .leave:
            RecordMachine.Event.allCases
        }
    }

    private static let sealing = RecordMachine.Event.allCases.filter { event in
        switch event {
        case .sealed, .dropped, .blocked, .released, .forbidden, .putOff, .resumed, .movedIn, .movedOut,
            .departureSealed, .reverted, .matched, .refused, .accepted, .refusalForgotten:
            true
        case .edited, .deleted, .decided, .arrival, .verdict, .row, .tombstone, .missing, .versionNoted, .caughtUp,
            .refetchNeeded, .refetched, .conflictFound, .named, .accessLost, .scopeLeft, .followed, .orphaned,
            .orphanTaken, .historyLost, .replayed, .captureLost, .wroteUnseen, .deletedUnseen, .captureFound,
            .unseen, .compared:
            false
        }
    }

    private static let applying = RecordMachine.Event.allCases.filter { event in
        switch event {
        case .verdict, .row, .tombstone, .missing, .matched, .dropped, .versionNoted, .caughtUp, .refetchNeeded,
            .refetched, .conflictFound, .refusalForgotten, .arrival, .refused, .accepted, .named, .released, .putOff,
            .resumed, .edited, .reverted, .deleted, .orphanTaken, .historyLost, .replayed, .compared, .followed:
            true
        case .decided, .sealed, .blocked, .forbidden, .movedIn, .movedOut, .departureSealed, .accessLost, .scopeLeft,
            .orphaned, .captureLost, .wroteUnseen, .deletedUnseen, .captureFound, .unseen:
            false
        }
    }
}
