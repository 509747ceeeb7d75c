import Foundation
import Testing
import TidemarkCore

@testable import Tidemark

@Suite("New ids: made on the device, in the order of time")
struct IDGenerationTests {
    @Test("UUIDs of version 7 grow, from many tasks at once too, and none comes twice")
    func uuids() async {
        let lists = await withTaskGroup(of: [String].self) { group in
            for _ in 0..<8 { group.addTask { (0..<2000).map { _ in UUID.v7().uuidString } } }
            return await group.reduce(into: [[String]]()) { $0.append($1) }
        }
        #expect(lists.allSatisfy { $0 == $0.sorted() })
        #expect(Set(lists.joined()).count == 16_000)
        let milliseconds = Int64(UUID.v7().uuidString.replacing("-", with: "").prefix(12), radix: 16) ?? 0
        #expect(abs(milliseconds - wallClockMilliseconds()) < 60_000)
    }

    @Test("Temporary ids are random and of their shape")
    func temporaryIDs() {
        let integers = (0..<1000).map { _ in TemporaryID.integer() }
        let texts = (0..<1000).map { _ in TemporaryID.text() }
        #expect(Set(integers).count == 1000 && Set(texts).count == 1000)
        #expect(integers.allSatisfy { TemporaryShape.matches(String($0)) })
        #expect(texts.allSatisfy { TemporaryShape.matches($0) })
    }
}
