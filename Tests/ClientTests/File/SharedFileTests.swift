import GRDB
import Testing
import TidemarkCore
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Several processes on one file: one of them syncs it", .hangLimit)
struct SharedFileTests {
    private let server: SyncServer
    private let device: Device
    /// Another device of the same user.
    private let there: Device
    private let app: FileProcess
    private let second: FileProcess

    init() async throws {
        let directory = try TestDirectory()
        server = try Device.server(in: directory)
        device = try await Device(
            noteSchema, tables: ["note"], server: server, in: directory, name: "shared", usesPool: true)
        there = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "there")
        app = try FileProcess("app", device, server, Self.quick)
        second = try FileProcess("extension", device, server, Self.quick)
    }

    /// Looks at the file often, and asks for no news by itself.
    private static var quick: SyncConfiguration {
        var configuration = SyncConfiguration()
        (configuration.pollInterval, configuration.tick) = (.milliseconds(20), .seconds(200))
        return configuration
    }

    /// The file is another engine's from now on, of which nobody knows whether it is still there.
    private func occupy(by name: String) async throws {
        let other = EngineLease(name: name, work: await second.engine.work, poll: 20)
        try await second.database.write { db in
            try db.execute(sql: "DELETE FROM tidemark_meta WHERE key = 'lease'")
            _ = try other.handle(db, ProcessClock(name), now: Platform().uptime)
        }
    }

    /// Both run, and the app's engine syncs.
    private func runBoth() async throws -> (app: Task<Void, any Error>, second: Task<Void, any Error>) {
        let first = app.run()
        try await poll { try await app.engine.status().lastSync != nil }
        let other = second.run()
        try await second.waitUntilWaiting()
        return (first, other)
    }

    @Test("One process syncs, and what another one writes goes with it")
    func one() async throws {
        let running = try await runBoth()
        defer {
            running.app.cancel()
            running.second.cancel()
        }
        try await second.insert("n1")
        try await poll { try await second.count("tidemark_operation WHERE state = 'applied'") == 1 }
        #expect(await second.wire.requests.isEmpty)
        #expect(try await second.activity() == .waitingForOtherProcess)
        #expect(try await second.engine.status().description == "Synced by another process; nothing waits.")
        #expect(try await second.lease()?.holder == "app")
        try await there.sync()
        #expect(try await there.count("note") == 1)
    }

    @Test("A process that waits takes over when the other one stops, by its task's end or by signing out")
    func stopped() async throws {
        for isSignedOut in [false, true] {
            let (first, next) = (
                try FileProcess("first", device, server, Self.quick),
                try FileProcess("next", device, server, Self.quick)
            )
            let running = first.run()
            try await poll { try await first.lease()?.holder == "first" }
            let other = next.run()
            try await next.waitUntilWaiting()
            if isSignedOut { await first.engine.disconnect() } else { running.cancel() }
            try await running.value
            try await poll { try await next.lease()?.holder == "next" }
            try await poll { await !next.wire.requests.isEmpty }
            #expect(try await next.activity() != .waitingForOtherProcess)
            other.cancel()
            try await other.value
            #expect(try await next.lease() == nil)
        }
    }

    @Test("An engine does not wait for one whose process has ended without a word")
    func killed() async throws {
        try await occupy(by: "dead")
        second.clock.end("dead")
        let running = second.run()
        defer { running.cancel() }
        try await poll { await !second.wire.requests.isEmpty }
        #expect(try await second.lease()?.holder == "extension")
    }

    @Test("A holder that gives no sign is waited for as long as it may take, and not longer")
    func silent() async throws {
        try await occupy(by: "suspended")
        let running = second.run()
        defer { running.cancel() }
        try await poll { try await second.lease()?.isAsked == true }
        try await second.waitUntilWaiting()
        #expect(await second.wire.requests.isEmpty)
        try await poll {
            // Two turns between two of its looks count as one.
            second.clock.turn(by: EngineLease.patience / EngineLease.looks)
            return await !second.wire.requests.isEmpty
        }
        #expect(try await second.lease()?.holder == "extension")
    }

    @Test("A wall clock that jumps, in one of the processes, changes nothing between them")
    func jump() async throws {
        let running = try await runBoth()
        defer {
            running.app.cancel()
            running.second.cancel()
        }
        let year: Int64 = 365 * 24 * 3_600_000
        for jump in [year, -2 * year] {
            second.clock.turnWallClock(by: jump)
            app.clock.turnWallClock(by: -jump)
            for _ in 0..<3 {
                let sign = try #require(try await second.lease()?.sign)
                try await poll {
                    guard let lease = try await second.lease(), lease.sign == sign else { return true }
                    // The one that was asked has all the time that it needs.
                    if !lease.isAsked { second.clock.turn(by: EngineLease.pause / 4) }
                    return false
                }
            }
        }
        #expect(try await second.lease()?.holder == "app")
        #expect(await second.wire.requests.isEmpty)
    }

    @Test("Alone on its file, an engine writes the lease once")
    func alone() async throws {
        let running = app.run()
        defer { running.cancel() }
        try await poll { try await app.lease() != nil }
        let lease = try await app.lease()
        for id in ["n1", "n2", "n3"] {
            app.clock.turn(by: EngineLease.patience * 10)
            try await app.insert(id)
            try await poll {
                try await app.count("tidemark_operation WHERE state = 'applied' AND record = '\(id)'") == 1
            }
        }
        #expect(try await app.lease() == lease)
    }

    @Test("A call in a process that waits asks the server at once, and leaves the other one its turn")
    func calls() async throws {
        let running = try await runBoth()
        defer {
            running.app.cancel()
            running.second.cancel()
        }
        try await there.sql("INSERT INTO note (id) VALUES ('n1')")
        try await there.sync()
        #expect(try await second.engine.syncNow().received == 1)
        #expect(try await second.count("note") == 1)
        try await there.sql("INSERT INTO note (id) VALUES ('n2')")
        try await there.sync()
        await second.engine.wake()
        try await poll { try await second.count("note") == 2 }
        try await second.waitUntilWaiting()
        #expect(try await second.lease()?.holder == "app")
    }

    @Test("A process on the screen takes over from one that is not, and an engine without a task takes no turn")
    func appears() async throws {
        let rare = try FileProcess("rare", device, server, .background)
        let running = rare.run()
        defer { running.cancel() }
        try await poll { try await rare.lease()?.holder == "rare" }
        try await second.engine.syncNow()
        #expect(try await second.lease()?.holder == "rare")
        let other = second.run()
        defer { other.cancel() }
        try await poll { try await second.lease()?.holder == "extension" }
        try await rare.waitUntilWaiting()
    }

    @Test("A process on the screen whose ticks are rare, since it hears nudges, does not wait for one out of sight")
    func nudged() async throws {
        var configuration = Self.quick
        configuration.tick = .seconds(600)
        let (rare, nudged) = (
            try FileProcess("rare", device, server, .background),
            try FileProcess("nudged", device, server, configuration)
        )
        let running = rare.run()
        defer { running.cancel() }
        try await poll { try await rare.lease()?.holder == "rare" }
        let other = nudged.run()
        defer { other.cancel() }
        try await poll { try await nudged.lease()?.holder == "nudged" }
    }

    /// A server that does not take the token.
    private struct Refusing: Transport {
        func send(_: TransportRequest) async throws -> TransportResponse {
            let headers = [ProtocolVersion.header: "1", "Content-Type": Problem.contentType]
            return TransportResponse(status: 401, headers: headers, body: Problem(.unauthenticated, "d").body())
        }
    }

    @Test("A process whose token is refused gives its turn to one that can sync, and no more says that it has stopped")
    func refused() async throws {
        await app.wire.connect(to: Refusing())
        let running = app.run()
        defer { running.cancel() }
        try await poll {
            guard case .stopped = try await app.activity() else { return false }
            return true
        }
        #expect(try await app.lease()?.holder == "app")
        let other = second.run()
        defer { other.cancel() }
        try await poll { try await second.lease()?.holder == "extension" }
        try await poll { try await second.engine.status().lastSync != nil }
        try await app.waitUntilWaiting()
    }

    @Test("Where the file cannot be written, an engine alone says so, and waits for no other process")
    func full() async throws {
        try await app.engine.syncNow()
        app.clock.fill(true)
        let running = app.run()
        defer { running.cancel() }
        try await app.insert("n1")
        try await poll { try await app.engine.status().lastError?.code == .databaseFailed }
        #expect(try await app.activity() != .waitingForOtherProcess)
        #expect(try await app.lease() == nil)
        app.clock.fill(false)
        try await poll {
            // A wait by a clock that stands still would never end.
            await app.engine.wake()
            return try await app.count("tidemark_operation WHERE state = 'applied'") == 1
        }
        try await poll { try await app.lease()?.holder == "app" }
    }

    /// Waits until the app has synced, and has its next request wait for the gate and then fail.
    ///
    /// - Returns: the gate, and how many requests there were before.
    private func holdNextRequest() async throws -> (gate: AsyncMutex, before: Int) {
        try await poll { try await app.engine.status().lastSync != nil }
        let gate = AsyncMutex()
        await gate.lock()
        await app.wire.next { _, _ in
            await gate.lock()
            throw Wire.Lost()
        }
        return (gate, await app.wire.requests.count)
    }

    @Test("A call for news is not lost between the loss of the turn and the end of what was under way")
    func calledBetween() async throws {
        let running = app.run()
        defer { running.cancel() }
        let (gate, before) = try await holdNextRequest()
        try await app.insert("n1")
        try await poll { await app.wire.requests.count > before }
        try await occupy(by: "other")
        try await poll { await app.engine.lease?.isDriving == false }
        try await there.sql("INSERT INTO note (id) VALUES ('n2')")
        try await there.sync()
        await app.engine.wake()
        gate.unlock()
        try await poll { try await app.count("note WHERE id = 'n2'") == 1 }
        #expect(try await app.lease()?.holder == "other")
    }

    @Test("A call for news is not lost in an engine that has not found yet that another one has its turn")
    func calledBefore() async throws {
        var rare = Self.quick
        rare.pollInterval = .seconds(200)
        let late = try FileProcess("late", device, server, rare)
        let running = late.run()
        defer { running.cancel() }
        try await poll { try await late.engine.status().lastSync != nil }
        try await occupy(by: "other")
        try await there.sql("INSERT INTO note (id) VALUES ('n1')")
        try await there.sync()
        let gate = AsyncMutex()
        await gate.lock()
        await late.wire.next { request, inner in
            await gate.lock()
            try Task.checkCancellation()
            return try await inner.send(request)
        }
        await late.engine.wake()
        late.engine.lookForEdits()
        try await poll { await late.engine.lease?.isDriving == false }
        gate.unlock()
        try await poll { try await late.count("note WHERE id = 'n1'") == 1 }
        #expect(try await late.lease()?.holder == "other")
    }

    @Test("A call for news is not lost whose round is cut off by the loss of the turn")
    func calledAndCutOff() async throws {
        let running = app.run()
        defer { running.cancel() }
        let (gate, before) = try await holdNextRequest()
        await app.engine.wake()
        try await poll { await app.wire.requests.count > before }
        // It looks at the file meanwhile, and has its turn.
        try await second.database.write { db in
            try db.execute(
                sql: "UPDATE tidemark_meta SET value = json_set(value, '$.isAsked', json('true')) WHERE key = 'lease'")
        }
        try await poll { try await app.lease()?.isAsked == false }
        try await occupy(by: "other")
        try await poll { await app.engine.lease?.isDriving == false }
        try await there.sql("INSERT INTO note (id) VALUES ('n1')")
        try await there.sync()
        gate.unlock()
        try await poll { try await app.count("note WHERE id = 'n1'") == 1 }
    }

    @Test("A process that waits tells none of its own old failures")
    func formerFailure() async throws {
        await app.wire.loseRequest()
        let running = app.run()
        defer { running.cancel() }
        try await poll { try await app.engine.status().lastError != nil }
        try await occupy(by: "other")
        try await app.waitUntilWaiting()
        #expect(try await app.engine.status().lastError == nil)
        // One that stands in the file is everybody's.
        try await second.database.write { db in
            try db.execute(
                sql: """
                    UPDATE tidemark_scope SET deferred_until = 1, deferred_attempts = 1, deferred_clock = 0,
                        deferred_detail = 'd', deferred_hint = 'h'
                    """)
        }
        #expect(try await app.engine.status().lastError?.code == .quotaExceeded)
    }

    @Test("A process that waits shows how far the other one has come with filling a scope")
    func filling() async throws {
        let running = try await runBoth()
        defer {
            running.app.cancel()
            running.second.cancel()
        }
        var updates = second.engine.progressUpdates.makeAsyncIterator()
        #expect(await updates.next()?.isBusy == false)
        for rows in [100, 250] {
            try await app.database.write { db in
                var filling = Bootstrap(scope: Device.scope)
                (filling.rows, filling.total) = (Int64(rows), 1000)
                try filling.write(db)
            }
            var progress = await updates.next()
            while let found = progress, found.received.done < rows { progress = await updates.next() }
            #expect(progress?.received.total == 1000)
            #expect(progress?.isBusy == true)
        }
    }

    @Test("A process that has ended its task while it waited shows that it waits no more")
    func cancelled() async throws {
        let running = try await runBoth()
        defer { running.app.cancel() }
        var updates = second.engine.statusUpdates.makeAsyncIterator()
        let first = await updates.next()
        #expect(first?.activity == .waitingForOtherProcess)
        running.second.cancel()
        try await running.second.value
        var last = first
        while let status = last, status.activity == .waitingForOtherProcess { last = await updates.next() }
        #expect(last?.activity == .idle)
    }

    @Test("An engine has ended when its task has, for others of its process, whatever stands in the file")
    func again() async throws {
        let running = app.run()
        try await poll { try await app.lease()?.holder == "app" }
        #expect(app.clock.mayBeThere("app", isFirst: false))
        running.cancel()
        try await running.value
        #expect(!app.clock.mayBeThere("app", isFirst: false))
        let name = EngineName.next().text
        #expect(Platform().mayBeThere(name, isFirst: false))
        Platform().noteEnd(of: name)
        #expect(!Platform().mayBeThere(name, isFirst: false))
    }
}
