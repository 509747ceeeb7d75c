import Testing
import TidemarkTesting
import TidemarkWire

@testable import TidemarkServer

@Suite("A caller has a name of bounded length")
struct PrincipalTests {
    @Test("One of 255 bytes is taken, a longer one is refused by a code, whatever it may do")
    func length() async throws {
        let server = SyncServer(store: MemoryStore(), configuration: .still)
        let longest = String(repeating: "é", count: 127) + "x"
        for name in ["a", longest] {
            _ = try await server.changes(in: "s", since: nil, limit: nil, access: .read(as: name))
        }
        for name in [longest + "x", String(repeating: "x", count: 100_000)] {
            let problem = try await #require(throws: Problem.self) {
                try await server.changes(in: "s", since: nil, limit: nil, access: .readWrite(as: name))
            }
            #expect(problem.code == .invalidIdentifier)
            #expect(!problem.detail.contains("xx"))
        }
        // Who may not read the scope learns nothing else.
        let refusal = try await #require(throws: Problem.self) {
            try await server.changes(in: "s", since: nil, limit: nil, access: Access(.none, principal: longest + "x"))
        }
        #expect(refusal.code == .scopeForbidden)
    }
}
