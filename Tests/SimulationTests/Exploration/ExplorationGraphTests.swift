import Testing

@testable import TidemarkTesting

@Suite("The edges of an exploration")
struct ExplorationGraphTests {
    @Test("of two threads that kill the same device in vain, only one goes on to the next device")
    func survivors() throws {
        var budget = Budget.none
        (budget.crashes, budget.waits) = (1, 1)
        let graph = StateGraph(deviceCount: 2, limit: 100, isBreadthFirst: true)
        let outlook = Outlook(acts: [0: [], 1: []], wait: 10)
        _ = graph.arrive(at: 1, outlook, budget, from: nil, by: [])
        var victims: [Int] = []
        var edges: Set<[Step]> = []
        while let first = graph.nearest(within: 1) {
            #expect(edges.insert(first.move.steps).inserted)
            guard let victim = first.victim else { continue }
            let second = try #require(graph.nearest(within: 1))
            #expect(second.victim == victim)
            for errand in [first, second] { _ = graph.survived(at: 0, errand.move, victim) }
            victims.append(victim)
        }
        #expect(victims == [0, 1])
    }

    @Test("moments in a text tell no worlds apart, and nor do names")
    func texts() {
        func hash(_ text: String) -> UInt64 {
            var words = NamedWords()
            let named = NamedText(Array(text.utf8), &words)
            var hasher = NamingHasher(count: words.count)
            named.hash(into: &hasher)
            return hasher.finish()
        }
        let text = #"{"syncedAt":1800000000000,"at":"2027-01-15T08:00:00.001Z","front":"~3","version":2}"#
        #expect(hash(text) == hash(text.replacing("1800000000000", with: "1800000010000")))
        #expect(hash(text) == hash(text.replacing("08:00:00.001", with: "08:00:10.002")))
        #expect(hash(text) == hash(text.replacing("~3", with: "~4")))
        #expect(hash(text) != hash(text.replacing(":2}", with: ":3}")))
    }
}
