import Testing
import TidemarkTesting
import TidemarkWire

@testable import TidemarkServer

@Suite("The same calls get the same answers from every store")
struct StoreDifferenceTests {
    @Test("A script of hundreds of calls gets them, whatever it does", arguments: 1...6 as ClosedRange<UInt64>)
    func scripts(seed: UInt64) async throws {
        let benches = try StoreKind.allCases.map { try StoreBench($0) }
        var script = StoreScript(seed: seed)
        for count in 1...300 {
            let answers = try await script.call(benches)
            for answer in answers { try #require(answer == answers[0], "call \(count)") }
            guard count % 20 == 0 else { continue }
            let first = try await benches[0].store.dump()
            for (kind, bench) in zip(StoreKind.allCases, benches) {
                let other = try await bench.store.dump()
                let difference = zip(first, other).first { $0 != $1 }
                try #require(first.count == other.count && difference == nil, "\(kind) at call \(count)")
                for scope in StoreNames.scopes { try await bench.expectSizes(of: scope) }
            }
        }
    }
}
