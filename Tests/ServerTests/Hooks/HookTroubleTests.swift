import Foundation
import GRDB
import Synchronization
import Testing
import TidemarkCore
import TidemarkWire

@testable import TidemarkServer

@Suite("Hooks get through trouble", .timeLimit(.minutes(5)))
struct HookTroubleTests {
    private let hooks = HookTests()

    @Test("A closure that ignores its cancellation holds up neither the end of its node nor the next one")
    func ignored() async throws {
        let bench = try StoreBench(.sqlite)
        let deaf = Receiver(isClosed: true, heedsCancellation: false)
        try await hooks.run([deaf.hook()], on: bench.store) { server in
            try await hooks.commit(0, to: "s", on: server)
            try await deaf.waitForCalls(1)
        }
        let receiver = Receiver()
        try await hooks.run([receiver.hook()], on: bench.store) { _ in try await receiver.wait(for: "s", 1) }
        #expect(deaf.all.isEmpty)
        deaf.open()
    }

    @Test("A call that takes too long has failed; its scope is called again when it has ended, and others go on")
    func tooLong() async throws {
        let bench = try StoreBench(.sqlite)
        let (deaf, receiver) = (Receiver(isClosed: true, heedsCancellation: false), Receiver())
        let reasons = Mutex<[String]>([])
        var hook = CommitHook("hook", start: .start) { notice in
            try await (notice.scope == "deaf" ? deaf : receiver).call(notice)
        }
        hook.timeout = .milliseconds(10)
        try await hooks.run([hook], on: bench.store) { configuration in
            configuration.onHookEvent = { event in
                if event.notice?.scope == "deaf" { reasons.withLock { $0.append(event.reason) } }
            }
        } body: { server in
            for scope in ["deaf", "a", "b"] as [Scope] { try await hooks.commit(0, to: scope, on: server) }
            for scope in ["a", "b"] as [Scope] { try await receiver.wait(for: scope, 1) }
            try await poll { reasons.withLock { !$0.isEmpty } }
            for round in 1...20 {
                try await hooks.commit(round, to: "b", on: server)
                try await receiver.wait(for: "b", Int64(round) + 1)
            }
            #expect(deaf.calls == 1)
            let seen = reasons.withLock { $0 }
            #expect(seen == ["no end in time"])
            try await hooks.commit(1, to: "deaf", on: server)
            deaf.open()
            try await deaf.waitForCalls(2)
            try await poll { deaf.running(of: "deaf") == 0 }
            #expect(deaf.mostAtOnce == 1)
        }
    }

    @Test("To wait for a call that has not ended gives up no head: it is told once that has ended", arguments: [0, 3])
    func waitsForEnd(retries: Int) async throws {
        let bench = try StoreBench(.sqlite)
        let deaf = Receiver(isClosed: true, heedsCancellation: false)
        let events = Guarded<[HookEvent]>([])
        var hook = CommitHook("hook", start: .start) { notice in
            if notice.scope == "deaf" { try await deaf.call(notice) }
        }
        (hook.timeout, hook.retries) = (.milliseconds(10), retries)
        // So that only the end of the call before can make it due.
        hook.settings.pause = 3_600_000
        try await hooks.run([hook], on: bench.store) { configuration in
            configuration.onHookEvent = { event in events.withLock { $0.append(event) } }
        } body: { server in
            func seen(_ scope: Scope) -> [HookEvent] {
                events.withLock { $0 }.filter { $0.notice?.scope == scope }
            }
            try await hooks.commit(0, to: "deaf", on: server)
            try await poll { !seen("deaf").isEmpty }
            try await hooks.commit(1, to: "deaf", on: server)
            for round in 0..<30 {
                let head = try await hooks.commit(round, to: "other", on: server)
                // A machine that is busy may have it fail.
                try await poll {
                    seen("other").contains { $0.notice?.head == head && [.told, .givenUp].contains($0.kind) }
                }
            }
            #expect(seen("deaf").map(\.reason) == ["no end in time"])
            #expect(deaf.calls == 1)
            deaf.open()
            try await deaf.waitForCalls(2)
            #expect(deaf.mostAtOnce == 1)
        }
    }

    @Test("While too many calls have not ended no other one begins, which gives up no head either")
    func crowded() async throws {
        let bench = try StoreBench(.sqlite)
        try await fill(80, bench)
        let deaf = Receiver(isClosed: true, heedsCancellation: false)
        let events = Guarded<[HookEvent]>([])
        var hook = deaf.hook()
        (hook.timeout, hook.retries) = (.milliseconds(10), 0)
        // So that they are called eight at a time, however many fail.
        hook.settings.failuresInARow = .max
        try await hooks.run([hook], on: bench.store) { configuration in
            configuration.onHookEvent = { event in events.withLock { $0.append(event) } }
        } body: { server in
            try await poll { events.withLock { $0.count } >= 72 }
            try await hooks.commit(0, to: "z", on: server)
            try await poll { server.hookStanding?.behind == 9 || events.withLock { $0.count } > 72 }
            #expect(events.withLock { $0.count } == 72)
            #expect(deaf.calls == 72)
            deaf.open()
            try await deaf.waitForCalls(81)
            #expect(deaf.mostAtOnce == 1)
        }
    }

    @Test("Hooks are called again by a server whose task was cancelled")
    func again() async throws {
        let bench = try StoreBench(.sqlite)
        let receiver = Receiver()
        let server = SyncServer(store: bench.store, configuration: hooks.configuration([receiver.hook()]))
        for round in 1...3 {
            let task = Task { try await server.callHooksContinuously() }
            try await hooks.commit(round, to: "s", on: server)
            try await receiver.wait(for: "s", Int64(round))
            task.cancel()
            _ = await task.result
        }
    }

    @Test("A scope that was erased while its calls failed is told no more")
    func erased() async throws {
        let bench = try StoreBench(.sqlite)
        let receiver = Receiver { $0.scope != "s" }
        try await hooks.run([receiver.hook()], on: bench.store) { server in
            try await hooks.commit(0, to: "s", on: server)
            try await receiver.waitForCalls(2)
            _ = try await server.erase(.scope("s"))
            // Read behind the erasure.
            try await hooks.commit(0, to: "b", on: server)
            try await receiver.wait(for: "b", 1)
            try await poll { receiver.running(of: "s") == 0 }
            receiver.takeAll()
            for round in 1...30 {
                try await hooks.commit(round, to: "b", on: server)
                try await receiver.wait(for: "b", Int64(round) + 1)
            }
            #expect(receiver.notices(of: "s").isEmpty)
        }
    }

    @Test("A scope that another node erased while its calls failed is told no more from the next look on")
    func erasedElsewhere() async throws {
        let bench = try StoreBench(.sqlite)
        let receiver = Receiver { $0.scope != "s" }
        try await hooks.run([receiver.hook()], on: bench.store) { configuration in
            configuration.hookTimes.look = .milliseconds(50)
        } body: { server in
            for scope in ["r", "s", "t"] as [Scope] { try await hooks.commit(0, to: scope, on: server) }
            try await receiver.waitForCalls(4)
            #expect(server.hookStanding.map { $0.behind > 0 } ?? false)
            _ = try await SyncServer(store: bench.store, configuration: .still).erase(.scope("s"))
            try await poll { server.hookStanding?.behind == 0 }
            #expect(receiver.notices(of: "s").isEmpty)
        }
    }

    @Test("A store that fails for a while is told of, now and then")
    func unavailable() async throws {
        let bench = try Bench()
        try await DatabaseQueue(path: bench.directory.appending(path: "sync.sqlite").path).write { db in
            try db.execute(sql: "DROP TABLE hook_told")
        }
        let events = Mutex<[HookEvent]>([])
        try await hooks.run([Receiver().hook()], on: bench.store) { configuration in
            configuration.onHookEvent = { event in events.withLock { $0.append(event) } }
            configuration.hookTimes.silence = .milliseconds(100)
            configuration.hookTimes.look = .milliseconds(100)
        } body: { _ in
            try await poll { events.withLock { $0.count } > 1 }
        }
        let seen = events.withLock { $0 }
        #expect(seen.allSatisfy { $0.kind == .unavailable && $0.notice == nil && $0.lag >= .milliseconds(100) })
        #expect(seen.allSatisfy { $0.reason == "look: DatabaseError" })
    }

    // MARK: Looks through many scopes

    private func fill(_ count: Int, _ store: StoreBench) async throws {
        let writer = SyncServer(store: store.store, configuration: .still)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<count {
                group.addTask { try await hooks.commit(0, to: Scope(stringLiteral: "s:\(index + 10_000)"), on: writer) }
            }
            try await group.waitForAll()
        }
    }

    @Test("A look through many scopes keeps out none that was just committed to")
    func fresh() async throws {
        let bench = try StoreBench(.sqlite)
        try await fill(1600, bench)
        let receiver = Receiver()
        var hook = receiver.hook()
        hook.settings.knownScopes = 10_000
        let server = SyncServer(store: bench.store, configuration: hooks.configuration([hook]))
        try await hooks.commit(0, to: "z", on: server)
        let task = Task { try await server.callHooksContinuously() }
        defer { task.cancel() }
        try await poll { receiver.all.count == 1601 }
        let place = try #require(receiver.all.firstIndex { $0.scope == "z" })
        #expect(place < 1200)
    }

    @Test("A look that another node may have changed something under is followed by another one")
    func looksAgain() async throws {
        let bench = try StoreBench(.sqlite)
        try await fill(1200, bench)
        let receiver = Receiver(isClosed: true)
        var hook = receiver.hook()
        // The look rests with two pages that wait, and passes over none of the third: that would have it come again.
        hook.settings.knownScopes = 1500
        try await hooks.run([hook], on: bench.store) { configuration in
            configuration.hookTimes.look = .seconds(3600)
        } body: { server in
            try await receiver.waitForCalls(8)
            let other = SyncServer(store: bench.store, configuration: .still)
            try await hooks.commit(1, to: "s:10000", on: other)
            server.hear(nil)
            try await poll { server.hooks.allSatisfy { $0.names.isEmpty } }
            receiver.open()
            try await receiver.wait(for: "s:10000", 2)
        }
    }
}
