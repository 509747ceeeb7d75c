import Testing

@testable import TidemarkCore

@Suite("A queue in which each element stands once")
struct UniqueQueueTests {
    @Test("an element that comes again and again keeps no other one waiting")
    func turns() {
        var queue = UniqueQueue<String>()
        for element in ["hot", "a", "b", "c"] { queue.append(element) }
        var taken: [String] = []
        for _ in 0..<6 {
            queue.append("hot")
            if let element = queue.popFirst() { taken.append(element) }
        }
        #expect(taken == ["hot", "a", "b", "c", "hot", "hot"])
        #expect(queue.popFirst() == nil)
    }
}
