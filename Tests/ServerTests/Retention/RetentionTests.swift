import Foundation
import Testing
import TidemarkSQLite

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Retention: what leaves, when, and what its readers are told")
struct RetentionTests {
    private let day: Int64 = 86_400_000

    /// Tends the bench's store as a server with a retention of 30 days does.
    @discardableResult
    private func compact(
        _ bench: Bench, elapsed: Duration = .zero, trustingClock: Bool = true, isRehearsal: Bool = false,
        events: Bool = true, limit: Int = 10_000
    ) async throws -> Compaction {
        var configuration = SyncServer.Configuration.still
        configuration.retention = .seconds(30 * 86_400)
        configuration.expiresEvents = events
        configuration.sweepLimit = limit
        configuration.uptime = { .zero }
        configuration.now = { Date(milliseconds: bench.clock) }
        let server = SyncServer(store: bench.store, configuration: configuration)
        return try await server.compact(elapsed: elapsed, trustingClock: trustingClock, isRehearsal: isRehearsal)
    }

    /// Three records, a device that has them all and is known, then one deletion.
    private func filled() async throws -> (bench: Bench, since: String) {
        let bench = try Bench(entities: [.events("audit")])
        try await bench.server.commit(to: "s") { changes in
            for id in ["a", "b", "c"] as [RecordID] { changes.upsert("task", id: id, ["n": 1]) }
        }
        let since = try #require(try await bench.exchange().nextSince)
        _ = try await bench.exchange(since: since)
        try await bench.server.commit(to: "s") { $0.delete("task", id: "a") }
        return (bench, since)
    }

    private func rows(_ bench: Bench) async throws -> [String] {
        try await bench.store.read("s") { reader in
            var rows: [String] = []
            try reader.changes(after: 0, through: .max, tombstonesAfter: 0) { change in
                rows.append("\(change.kind) \(String(decoding: change.record, as: UTF8.self))")
                return true
            }
            return rows
        }
    }

    private func floor(_ bench: Bench) async throws -> Version {
        try await bench.store.read("s") { $0.state.retentionFloor }
    }

    @Test("A deletion stays for its window, and for a known device until that has it")
    func held() async throws {
        let (bench, since) = try await filled()
        bench.clock += 29 * day
        #expect(try await compact(bench).expired == 0)
        bench.clock += 2 * day
        #expect(try await compact(bench).expired == 0)
        #expect(try await floor(bench) == 3, "as far as everybody has come")
        let delta = try await bench.exchange(since: since)
        #expect(delta.changes.map(\.type) == ["delete"])
        // An hour later the device shows that it has it.
        bench.clock += day / 24
        _ = try await bench.exchange(since: delta.nextSince)
        #expect(try await compact(bench).expired == 1)
        #expect(try await rows(bench) == ["upsert b", "upsert c"])
        #expect(try await floor(bench) == 4)
        #expect(try await bench.exchange(since: delta.nextSince).changes.isEmpty)
    }

    @Test("Behind the floor a reader hears it; a device that was forgotten hears that it is unknown")
    func expired() async throws {
        let (bench, since) = try await filled()
        bench.clock += 91 * day
        let compaction = try await compact(bench)
        #expect((compaction.expired, compaction.devices) == (1, 1))
        let nameless = await problem { _ = try await bench.changes(since: since) }
        #expect((nameless?.code, nameless?.reason) == (.checkpointExpired, .retention))
        let forgotten = await problem { _ = try await bench.exchange(since: since) }
        #expect((forgotten?.code, forgotten?.reason) == (.clientUnknown, .retention))
        #expect(forgotten?.survived == 4 && forgotten?.lanes == [:] && forgotten?.epoch != nil)
        let push = await problem { _ = try await bench.exchange([upsert(1, "x", "{}")], since: since) }
        #expect(push?.code == .clientUnknown)
        // It fills itself anew, and is known again: what it missed after that is its own checkpoint's doing.
        let fresh = try await bench.exchange()
        #expect(fresh.changes.map(\.id) == ["b", "c"])
        #expect(await problem { _ = try await bench.exchange(since: since) }?.code == .checkpointExpired)
    }

    @Test("A device that is forgotten loses its receipts, not its lanes; those go after a year")
    func lanes() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "a", "{}"), delete(2, "a", base: 1)])
        bench.clock += 89 * day
        try await compact(bench)
        #expect(try await bench.exchange([upsert(1, "a", "{}")]).statuses == ["applied"])
        bench.clock += 91 * day
        #expect(try await compact(bench).devices == 1)
        #expect(try await bench.exchange([upsert(1, "a", "{}")]).statuses == ["settled"])
        #expect(try await bench.contents().isEmpty)
        bench.clock += 300 * day
        let unheard = try await compact(bench)
        #expect((unheard.devices, unheard.lanes) == (1, 0))
        bench.clock += 67 * day
        #expect(try await compact(bench).lanes == 1)
        #expect(try await bench.exchange([upsert(1, "a", "{}")]).statuses == ["applied"])
    }

    @Test("Events leave by the same rule")
    func events() async throws {
        let (bench, _) = try await filled()
        for id in ["e1", "e2"] as [RecordID] {
            try await bench.server.commit(to: "s") { $0.upsert("audit", id: id, ["n": 1]) }
            bench.clock += 20 * day
        }
        let last = try await bench.exchange().nextSince
        bench.clock += day / 24
        _ = try await bench.exchange(since: last)
        #expect(try await compact(bench).expired == 2)
        #expect(try await rows(bench) == ["upsert b", "upsert c", "event e2"])
    }

    @Test("An edit of a record that was deleted so long ago that nobody remembers does not revive it")
    func longAgo() async throws {
        let (bench, _) = try await filled()
        bench.clock += 200 * day
        try await compact(bench)
        let answer = try await bench.exchange([upsert(1, "a", #"{"n":2}"#, base: 3), delete(2, "a", base: 3)])
        #expect(answer.statuses == ["rejected", "applied"])
        #expect(answer.errorCode(0) == "record_deleted")
        #expect(try await bench.contents().keys.sorted() == ["b", "c"])
    }

    @Test("A first scan and a snapshot that are overtaken by compaction still end whole", arguments: [false, true])
    func overtaken(isSnapshot: Bool) async throws {
        let (bench, _) = try await filled()
        var query = SnapshotQuery(of: "s")
        query.limit = 1
        var seen: Set<String> = []
        func page(_ since: String?) async throws -> Answer {
            guard isSnapshot else { return try await bench.changes(since: since, limit: 1) }
            let body = try await bench.server.snapshot(query, access: .read(as: "ada")).body
            let object = try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any] ?? [:]
            query.token = object["snapshotToken"] as? String
            query.cursor = object["pageCursor"] as? String
            return try Answer(body)
        }
        var answer = try await page(nil)
        seen.formUnion(answer.changes.map(\.id))
        // The scan's first rows are old, and every other device has them; then one of their records is deleted, too.
        bench.clock += 200 * day
        try await bench.server.commit(to: "s") { changes in
            changes.delete("task", id: "b")
            changes.upsert("task", id: "d", ["n": 1])
        }
        try await compact(bench)
        #expect(try await floor(bench) == 4)
        while answer.hasMore {
            answer = try await page(answer.nextSince)
            for change in answer.changes {
                if change.type == "delete" { seen.remove(change.id) } else { seen.insert(change.id) }
            }
        }
        let delta = try await bench.pullAll(since: answer.nextSince)
        for change in delta.changes {
            if change.type == "delete" { seen.remove(change.id) } else { seen.insert(change.id) }
        }
        #expect(seen == ["c", "d"])
    }

    @Test("A scan whose first horizon falls below the floor begins anew")
    func overtakenTooFar() async throws {
        let (bench, _) = try await filled()
        let first = try await bench.changes(limit: 1)
        try await bench.server.commit(to: "s") { $0.delete("task", id: "b") }
        bench.clock += 200 * day
        try await compact(bench)
        #expect(await problem { _ = try await bench.changes(since: first.nextSince) }?.reason == .retention)
    }

    @Test(
        "A clock that jumps ahead by ten years removes nothing, and forgets nobody, looked at before or not",
        arguments: [true, false])
    func clockJump(wasLookedAt: Bool) async throws {
        let (bench, since) = try await filled()
        if wasLookedAt { try await compact(bench, trustingClock: false) }
        bench.clock += 3650 * day
        for _ in 1...50 {
            let compaction = try await compact(bench, elapsed: .seconds(3600), trustingClock: false)
            #expect((compaction.expired, compaction.devices) == (0, 0))
            #expect(compaction.wall.milliseconds - compaction.present.milliseconds > 3600 * day)
        }
        bench.clock -= 3650 * day
        #expect(try await bench.exchange(since: since).changes.map(\.type) == ["delete"])
        bench.clock += 3650 * day
        #expect(try await compact(bench, trustingClock: true).expired == 1)
    }

    @Test("A clock that was set back makes nothing old, and one that goes on as it should is followed")
    func clock() async throws {
        let (bench, _) = try await filled()
        let start = bench.clock
        try await compact(bench, trustingClock: false)
        bench.clock = 0
        #expect(try await compact(bench, elapsed: .seconds(86_400), trustingClock: false).expired == 0)
        bench.clock = start
        for _ in 1...100 {
            bench.clock += day
            try await compact(bench, elapsed: .seconds(86_400), trustingClock: false)
        }
        #expect(try await rows(bench) == ["upsert b", "upsert c"])
    }

    @Test("It goes in small steps, and a rehearsal counts the same and touches nothing")
    func steps() async throws {
        let bench = try Bench()
        #expect(try await bench.store.ageClock() == nil)
        let start = bench.clock
        try await bench.server.commit(to: "s") { changes in
            for index in 1...25 { changes.upsert("task", id: RecordID("r\(index)")!, [:]) }
            for index in 1...20 { changes.delete("task", id: RecordID("r\(index)")!) }
        }
        try await bench.server.commit(to: "t") { changes in
            changes.upsert("task", id: "x", [:])
            changes.delete("task", id: "x")
        }
        bench.clock += 40 * day
        let rehearsed = try await compact(bench, isRehearsal: true, limit: 3)
        #expect(rehearsed.expired == 21 && rehearsed.superseded == nil)
        #expect(try await rows(bench).count == 25)
        #expect(try await bench.store.ageClock() == start)
        let compaction = try await compact(bench, limit: 3)
        #expect((compaction.expired, compaction.superseded) == (21, 21))
        #expect(try await rows(bench).count == 5)
        #expect(try await compact(bench).expired == 0)
    }

    @Test("A server that keeps history for ever removes no deletion")
    func forEver() async throws {
        let (bench, _) = try await filled()
        bench.clock += 4000 * day
        var configuration = SyncServer.Configuration.still
        configuration.retention = nil
        let moment = bench.clock
        configuration.now = { Date(milliseconds: moment) }
        let server = SyncServer(store: bench.store, configuration: configuration)
        #expect(try await server.compact(trustingClock: true).expired == 0)
        #expect(try await rows(bench).contains("delete a"))
    }

    @Test("A poll is not written down, a day later it is")
    func polls() async throws {
        let (bench, since) = try await filled()
        let device = DeviceName(principal: "ada", client: "device-aaaa")
        let known = try await bench.store.read("s") { try $0.standing(of: device) }
        #expect(known == DeviceStanding(version: 3, seen: bench.clock))
        let wal = bench.directory.appending(path: "sync.sqlite-wal").path
        let before = try FileManager.default.attributesOfItem(atPath: wal)[.size] as? Int
        let next = try await bench.exchange(since: since).nextSince
        for _ in 0..<20 {
            bench.clock += 30_000
            _ = try await bench.exchange(since: next)
        }
        #expect(try FileManager.default.attributesOfItem(atPath: wal)[.size] as? Int == before)
        bench.clock += day
        _ = try await bench.exchange(since: next)
        let later = try await bench.store.read("s") { try $0.standing(of: device) }
        #expect(later == DeviceStanding(version: 4, seen: bench.clock))
        // One that has gone back to a backup is waited for again.
        _ = try await bench.exchange(since: since)
        #expect(try await bench.store.read("s") { try $0.standing(of: device) }?.version == 3)
    }

    @Test("By itself a server keeps deletions for 90 days, and events for ever")
    func unsaid() async throws {
        #expect(SyncServer.Configuration().retention == .seconds(90 * 86_400))
        #expect(!SyncServer.Configuration().expiresEvents)
        let (bench, _) = try await filled()
        try await bench.server.commit(to: "s") { $0.upsert("audit", id: "e", ["n": 1]) }
        bench.clock += 200 * day
        #expect(try await compact(bench, events: false).expired == 1)
        #expect(try await rows(bench) == ["upsert b", "upsert c", "event e"])
        // A device that begins anew is told of it.
        #expect(try await bench.pullAll().changes.contains { $0.type == "event" && $0.id == "e" })
        #expect(try await compact(bench).expired == 0)
    }

    @Test("A server that runs does all of it by itself", .timeLimit(.minutes(2)))
    func byItself() async throws {
        let (bench, _) = try await filled()
        bench.clock += 200 * day
        try await bench.store.setAgeClock(bench.clock)
        var configuration = SyncServer.Configuration.still
        configuration.retention = .seconds(30 * 86_400)
        configuration.sweepInterval = .milliseconds(1)
        configuration.compactionInterval = .zero
        let moment = bench.clock
        configuration.uptime = { .zero }
        configuration.now = { Date(milliseconds: moment) }
        let server = SyncServer(store: bench.store, configuration: configuration)
        let running = Task { try await server.sweepContinuously() }
        while try await floor(bench) < 4 { await Task.yield() }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
        #expect(try await rows(bench) == ["upsert b", "upsert c"])
    }
}
