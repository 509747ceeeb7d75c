import Testing
import TidemarkFuzzing

@testable import Tidemark

@Suite("A device reads any answer of a server or refuses it")
struct AnswerMutationTests {
    @Test("Every answer of the corpus", arguments: answers.map(\.name))
    func corpus(name: String) throws { try target(name).replay() }

    @Test("Mutations of the corpus", arguments: answers.map(\.name))
    func mutations(name: String) throws { try target(name).mutate(count: 2000) }

    private func target(_ name: String) throws -> FuzzTarget { try #require(answers.first { $0.name == name }) }
}
