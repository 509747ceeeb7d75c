import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("Names of histories")
struct EpochTests {
    private func history(head: Version, _ incarnations: [(Int64, Version)]) -> ScopeHistory {
        ScopeHistory(
            head: head, sweepFloor: 0, retentionFloor: 0,
            incarnations: incarnations.map { ScopeHistory.Incarnation(id: $0.0, start: $0.1) })
    }

    private let many: [(Int64, Version)] = (1...9).map { (Int64($0) * 0x1_2345_6789, Version($0 - 1) * 10) }

    @Test("come back from their text, and other texts are none")
    func text() {
        let history = history(head: 100, many)
        for version in [0, 1, 10, 11, 55, 100] as [Version] {
            let epoch = history.epoch(of: version)
            #expect(Epoch(text: epoch.text) == epoch)
            #expect(epoch.text.utf8.count <= 64)
        }
        #expect(history.epoch(of: 100).ancestors.count == Epoch.ancestorLimit)
        for text in ["", "e1", "5f0c", "*", String(repeating: "A", count: 300), history.epoch(of: 9).text + "AA"] {
            #expect(Epoch(text: text) == nil, "\(text)")
        }
    }

    @Test("An opening that is known was shared up to where the next one began")
    func known() {
        let history = history(head: 25, [(1, 0), (2, 10), (3, 20)])
        #expect(history.shared(with: Epoch(id: 1, start: 0)) == 10)
        #expect(history.shared(with: Epoch(id: 2, start: 10)) == 20)
        #expect(history.shared(with: Epoch(id: 3, start: 20)) == 25)
        #expect(history.shared(with: Epoch(id: 0, start: 0)) == 25)
    }

    @Test("A name tells whether it holds a version that was heard of under a former one (I11)")
    func holds() {
        let history = history(head: 25, [(1, 0), (2, 10), (3, 20)])
        let now = history.epoch(of: 25)
        for (id, last) in [(1, 10), (2, 20)] as [(Int64, Version)] {
            #expect(now.contains(last, of: Epoch(id: id, start: 0)))
            #expect(!now.contains(last + 1, of: Epoch(id: id, start: 0)))
        }
        #expect(now.contains(99, of: now))
        #expect(!now.contains(1, of: Epoch(id: 9, start: 0)))
        #expect(!Epoch(id: 0, start: 0).contains(1, of: now))
        // Beyond the openings that are named nobody knows.
        let late = self.history(head: 100, many).epoch(of: 100)
        #expect(late.contains(50, of: Epoch(id: many[4].0, start: 40)))
        #expect(!late.contains(10, of: Epoch(id: many[0].0, start: 0)))
    }

    @Test("Openings that were lost are placed by those before them, up to four of them back", arguments: 1...4)
    func lost(openings: Int) {
        // The copy was made at 10 of the first opening; it and others wrote on; then the copy came back.
        let line = history(head: 90, [(1, 0)] + (0..<openings).map { (Int64($0) + 100, 15 + Version($0)) })
        let store = history(head: 40, [(1, 0), (2, 10), (3, 30)])
        #expect(store.shared(with: line.epoch(of: 90)) == 10)
        // Before anybody has written to the copy.
        #expect(history(head: 10, [(1, 0)]).shared(with: line.epoch(of: 90)) == 10)
        // The first opening had ended before the copies parted.
        let early = history(head: 90, [(1, 0), (100, 7)])
        #expect(history(head: 12, [(1, 0), (2, 9)]).shared(with: early.epoch(of: 90)) == 7)
    }

    @Test("Where no name is known, the last opening that began before all of them stands for the place")
    func unknown() {
        let line = history(head: 90, (0..<6).map { (Int64($0) + 100, 15 + Version($0)) })
        let store = history(head: 40, [(1, 0), (2, 10), (3, 30)])
        #expect(store.shared(with: line.epoch(of: 90)) == 10)
        #expect(history(head: 12, [(1, 0)]).shared(with: line.epoch(of: 90)) == 12)
        #expect(history(head: 0, []).shared(with: line.epoch(of: 90)) == 0)
        // A store that was begun anew has nothing in common with one whose whole line is named.
        let other = history(head: 90, [(100, 0), (101, 20)])
        #expect(store.shared(with: other.epoch(of: 90)) == 0)
    }
}
