import GRDB
import Testing
import Tidemark
import TidemarkServer

/// Bugs that power cuts have shown, each reduced to its shortest story.
@Suite("A promise that was made before a power cut holds after it")
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

    @Test(
        "an edit that was sent is not made a second time, over what came after it (I8)",
        arguments: [DiskDevice.Opening.ordinaryPool, .queue])
    func sent(_ opening: DiskDevice.Opening) async throws {
        for seed in 1...12 as ClosedRange<UInt64> {
            let stage = Stage(Scenario(name: "sent", script: []), opening: opening, seed: seed &* 1000, traits: [])
            try await stage.open()
            let (a, b) = (stage.devices[0], stage.devices[1])
            for device in [a, b] { try await device.sync() }
            try await a.sql(Scenarios.put("t1", "first"))
            // The edit itself is safe.
            try await a.writer?.writeWithoutTransaction { db in _ = try? db.checkpoint(.full) }
            await a.wire.loseNext(.answer)
            await #expect(throws: SyncError.self) { try await a.sync() }
            try await b.sync()
            try await b.sql(Scenarios.put("t1", "second"))
            try await b.sync()
            a.disk.cut()
            await stage.recover()
            let rows = try await stage.outcome().rows
            #expect(stage.findings.isEmpty)
            let isLast = rows.contains { $0.contains("second") }
            #expect(isLast, "seed \(seed): \(rows)")
            guard isLast else { return }
        }
    }

    @Test(
        "a server that starts anew while a device scans or is filled has lost nothing, and is not taken to",
        arguments: [true, false], 1...6)
    func restarted(isFilled: Bool, send: Int) async throws {
        let stage = Stage(Scenario(name: "scan", script: []))
        try await stage.open()
        let a = stage.devices[0]
        if isFilled {
            try await Scenarios.some(2).run(stage)
            try await a.sync()
        }
        try await Scenarios.some(12).run(stage)
        // Each time the wire breaks in the middle, so that verdicts come while a page is still to follow.
        for title in ["first", "second", "third", "fourth"] {
            try await a.sql(Scenarios.put("t1", title))
            await a.wire.lose(.request, at: title == "first" ? send : 2)
            _ = try? await a.sync()
            try await stage.server.open()
        }
        // The last order may not have been carried out yet.
        for _ in 0..<2 { _ = try? await a.sync() }
        let refusals = await stage.board.refusals
        #expect(refusals.isEmpty)
        let rows = try await stage.outcome().rows
        #expect(rows.contains { $0.contains("fourth") } && stage.findings.isEmpty)
    }

    @Test("a sync of several scopes fails with a SyncError, and with nothing else")
    func documented() async throws {
        let scenario = try #require(Scenarios.scopes.first { $0.name == "two scopes are filled" })
        let points = FailurePoints(scenario: scenario, victim: .device)
        let model = try await points.model()
        // The last calls of a sync: it looks whether one scope has let something go in the other.
        let locks = model.calls[.lock] ?? 0
        let tally = await points.run(.busy, model, calls: Array(max(1, locks - 12)...locks))
        #expect(tally.findings.isEmpty && tally.struck > 0)
    }
}
