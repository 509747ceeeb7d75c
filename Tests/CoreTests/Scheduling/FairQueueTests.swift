import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("Turns go over callers, and over the scopes of one (I14)")
struct FairQueueTests {
    private func queue(_ works: [(caller: String, scope: Scope)]) -> FairQueue<String> {
        var queue = FairQueue<String>()
        for (index, work) in works.enumerated() {
            queue.append("\(work.caller)\(index)", of: work.caller, in: work.scope)
        }
        return queue
    }

    private func drained(_ queue: FairQueue<String>) -> [String] {
        var (queue, works): (FairQueue<String>, [String]) = (queue, [])
        while let work = queue.popFirst() { works.append(work) }
        #expect(queue.isEmpty)
        return works
    }

    @Test("However much one asks for, another waits for one piece of it")
    func callers() {
        let flood: [(caller: String, scope: Scope)] = Array(repeating: ("a", "s"), count: 5)
        #expect(drained(queue(flood + [("b", "s"), ("b", "s")])) == ["a0", "b5", "a1", "b6", "a2", "a3", "a4"])
    }

    @Test("A caller that comes while another is served is next, and nobody is passed over for ever")
    func newcomers() {
        var queue = queue([("a", "s"), ("a", "s"), ("a", "s")])
        #expect(queue.popFirst() == "a0")
        queue.append("b", of: "b", in: "s")
        #expect(queue.popFirst() == "b")
        // One that comes again at once has had his turn after the other.
        queue.append("b again", of: "b", in: "s")
        #expect(drained(queue) == ["a1", "b again", "a2"])
    }

    @Test("One caller's scopes take turns too, and each keeps its order")
    func scopes() {
        #expect(drained(queue([("a", "s"), ("a", "s"), ("a", "t"), ("b", "s")])) == ["a0", "b3", "a2", "a1"])
    }

    @Test("Work that may not be taken now keeps its place, and holds up nobody")
    func blocked() {
        var queue = queue([("a", "s"), ("a", "t"), ("b", "s"), ("c", "t")])
        #expect(queue.first { scope, _ in scope != "s" } == "a1")
        #expect(queue.popFirst { scope, _ in scope != "s" } == "a1")
        #expect(queue.popFirst { scope, _ in scope != "s" } == "c3")
        #expect(queue.popFirst { scope, _ in scope != "s" } == nil)
        #expect(drained(queue) == ["b2", "a0"])
    }

    @Test("Work that was handed out and not begun comes first in its scope again")
    func putBack() {
        var queue = queue([("a", "s"), ("a", "s"), ("a", "s")])
        let (first, second) = (queue.popFirst(), queue.popFirst())
        for work in [second, first].compactMap({ $0 }) { queue.putBack(work, of: "a", in: "s") }
        #expect(queue.count == 3)
        #expect(drained(queue) == ["a0", "a1", "a2"])
        var empty = FairQueue<String>()
        empty.putBack("x", of: "a", in: "s")
        #expect(drained(empty) == ["x"])
    }

    @Test("At the end everything is handed back")
    func removeAll() {
        var queue = queue([("a", "s"), ("b", "t"), ("b", "t")])
        #expect(queue.removeAll().sorted() == ["a0", "b1", "b2"])
        #expect(queue.isEmpty && queue.popFirst() == nil)
    }

    @Test("Work that is taken out leaves the rest in its order, and nothing of its own")
    func removed() {
        var queue = queue([("a", "s"), ("a", "s"), ("b", "s"), ("a", "t"), ("a", "s"), ("c", "s")])
        #expect(queue.remove(of: "a", in: "s") { $0 == "a1" } == "a1")
        #expect(queue.remove(of: "a", in: "s") { $0 == "a1" } == nil)
        #expect(queue.remove(of: "a", in: "t") { $0 == "a0" } == nil)
        #expect(queue.remove(of: "x", in: "s") { _ in true } == nil)
        #expect(queue.remove(of: "c", in: "s") { _ in true } == "c5")
        #expect(queue.count == 4)
        #expect(drained(queue) == ["a0", "b2", "a3", "a4"])
        #expect(queue.remove(of: "a", in: "t") { _ in true } == "a3")
        #expect(drained(queue) == ["a0", "b2", "a4"])
    }
}
