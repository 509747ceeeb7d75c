import GRDB
import Testing
import Tidemark
import TidemarkServer

/// Bugs that power cuts have shown, each reduced to its shortest story.
@Suite("What was said before a power cut holds after it")
struct PromiseTests {
    @Test("a write that the server has acknowledged is there, whatever of the rest is lost (I1)")
    func acknowledged() async throws {
        for seed in 1...12 as ClosedRange<UInt64> {
            let stage = Stage(Scenario(name: "told", script: []), victim: .server, seed: seed &* 1000)
            try await stage.open()
            let head = try await stage.server.running().commit(to: "w:a") { $0.upsert("task", id: "t1", ["w": "a"]) }
            stage.disk.cut()
            await stage.recover()
            let found = try ServerLog(stage.server.disk).isTaken("task|t1|\(head)")
            stage.close()
            #expect(found, "seed \(seed)")
            guard found else { return }
        }
    }
}
