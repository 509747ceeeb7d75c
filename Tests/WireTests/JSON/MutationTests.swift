import Testing
import TidemarkFuzzing

@Suite("Decoders read any bytes or refuse them")
struct MutationTests {
    /// Those that do much with one input get fewer.
    private static let slow = ["patch": 100, "gzip": 1000, "token": 1000]

    @Test("Every input of the corpus", arguments: FuzzTarget.all.map(\.name))
    func corpus(name: String) throws { try target(name).replay() }

    @Test("Mutations of the corpus", arguments: FuzzTarget.all.map(\.name))
    func mutations(name: String) throws { try target(name).mutate(count: Self.slow[name] ?? 3500) }

    private func target(_ name: String) throws -> FuzzTarget {
        try #require(FuzzTarget.all.first { $0.name == name })
    }
}
