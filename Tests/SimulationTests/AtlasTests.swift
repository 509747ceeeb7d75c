import Testing

@testable import TidemarkTesting

@Suite("The ways of an exploration")
struct AtlasTests {
    @Test("of two threads that kill the same device in vain, only one goes on to the next device")
    func survivors() throws {
        var budget = Budget.none
        (budget.crashes, budget.waits) = (1, 1)
        let atlas = Atlas(deviceCount: 2, limit: 100, isBreadthFirst: true)
        let outlook = Outlook(acts: [0: [], 1: []], wait: 10)
        _ = atlas.arrive(at: 1, outlook, budget, from: nil, by: [])
        var victims: [Int] = []
        var ways: Set<[Step]> = []
        while let first = atlas.nearest(within: 1) {
            #expect(ways.insert(first.move.steps).inserted)
            guard let victim = first.victim else { continue }
            let second = try #require(atlas.nearest(within: 1))
            #expect(second.victim == victim)
            for errand in [first, second] { _ = atlas.survived(at: 0, errand.move, victim) }
            victims.append(victim)
        }
        #expect(victims == [0, 1])
    }
}
