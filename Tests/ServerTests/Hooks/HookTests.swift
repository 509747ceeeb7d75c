import PostgresCluster
import Synchronization
import Testing
import TidemarkCore
import TidemarkPostgres
import TidemarkTesting
import TidemarkWire

@testable import TidemarkServer

@Suite("Hooks hear of commits", .timeLimit(.minutes(5)))
struct HookTests {
    @Test("Every scope's newest head is told, its heads in order and one at a time", arguments: HookStoreTests.kinds)
    func told(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let receiver = Receiver()
        try await run([receiver.hook()], on: bench.store) { server in
            let scopes = (0..<20).map { Scope(stringLiteral: "s:\($0)") }
            for round in 0..<10 { for scope in scopes { try await commit(round, to: scope, on: server) } }
            for scope in scopes { try await receiver.wait(for: scope, 10) }
            #expect(receiver.mostAtOnce == 1)
            for scope in scopes {
                let notices = receiver.notices(of: scope)
                #expect(notices.map(\.head) == notices.map(\.head).sorted())
                // Each version is counted by one of the calls.
                #expect(notices.reduce(0) { $0 + $1.changes } == 10)
            }
        }
    }

    @Test("Commits do not wait for a hook, and those that come meanwhile are told together")
    func hanging() async throws {
        let bench = try StoreBench(.sqlite)
        let receiver = Receiver(isClosed: true)
        var hook = receiver.hook(scopes: ["s"])
        // Fifty commits take more than a minute where many tests run.
        hook.timeout = .seconds(600)
        try await run([hook], on: bench.store) { server in
            try await commit(0, to: "s", on: server)
            try await receiver.waitForCalls(1)
            // None of these would end if it waited.
            for round in 1..<50 { try await commit(round, to: "s", on: server) }
            #expect(receiver.notices(of: "s").isEmpty)
            receiver.open()
            try await receiver.wait(for: "s", 50)
            let notices = receiver.notices(of: "s")
            // The calls are the one that waited, perhaps one with the head that was read when it ended, and the newest.
            #expect(notices.first?.head == 1 && notices.count <= 3)
            #expect(notices.reduce(0) { $0 + $1.changes } == 50)
        }
    }

    @Test("A hook that hangs or fails holds up no other, and a scope that fails holds up no other")
    func apart() async throws {
        let bench = try StoreBench(.sqlite)
        let hanging = Receiver(isClosed: true)
        let receiver = Receiver { $0.scope != "bad" }
        let events = Mutex<[HookEvent]>([])
        try await run([hanging.hook("hanging"), receiver.hook()], on: bench.store) { configuration in
            configuration.onHookEvent = { event in events.withLock { $0.append(event) } }
        } body: { server in
            for scope in ["bad", "a", "b"] as [Scope] { try await commit(0, to: scope, on: server) }
            try await receiver.wait(for: "a", 1)
            try await receiver.wait(for: "b", 1)
            try await receiver.waitForCalls(20)
            #expect(receiver.notices(of: "bad").isEmpty)
            // What fails is told in its turn, with the head that is the newest then.
            try await commit(1, to: "bad", on: server)
            receiver.takeAll()
            try await receiver.wait(for: "bad", 2)
        }
        let failures = events.withLock { $0 }.filter { $0.kind != .told && $0.hook == "hook" }
        #expect(!failures.isEmpty && failures.allSatisfy { $0.notice?.scope == "bad" && $0.reason == "Refused" })
    }

    @Test("A process tells what the one before it had not told", arguments: HookStoreTests.kinds)
    func ended(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let dead = Receiver(isClosed: true)
        try await run([dead.hook()], on: bench.store) { server in
            for scope in ["a", "b"] as [Scope] { try await commit(0, to: scope, on: server) }
            try await dead.waitForCalls(2)
        }
        // Written by somebody who calls no hooks.
        try await commit(1, to: "b", on: SyncServer(store: bench.store, configuration: .still))
        try bench.reopen()
        let receiver = Receiver()
        try await run([receiver.hook()], on: bench.store) { server in
            try await receiver.wait(for: "a", 1)
            try await receiver.wait(for: "b", 2)
            try await commit(2, to: "a", on: server)
            try await receiver.wait(for: "a", 2)
        }
        #expect(receiver.notices(of: "b").map(\.head) == [2])
        // What was told is not told again.
        let third = Receiver()
        try bench.reopen()
        try await run([third.hook()], on: bench.store) { server in
            try await commit(3, to: "c", on: server)
            try await third.wait(for: "c", 1)
        }
        #expect(third.all.map(\.scope) == ["c"])
    }

    @Test("A new hook hears of what is committed from then on, unless it begins at the start")
    func start() async throws {
        let bench = try StoreBench(.sqlite)
        try await commit(0, to: "old", on: SyncServer(store: bench.store, configuration: .still))
        let (now, all) = (Receiver(), Receiver())
        try await run([now.hook("now", start: .now), all.hook("all", start: .start)], on: bench.store) { server in
            try await all.wait(for: "old", 1)
            try await now.waitForBeginning(bench.store, "now")
            try await commit(0, to: "new", on: server)
            for receiver in [now, all] { try await receiver.wait(for: "new", 1) }
            #expect(now.notices(of: "old").isEmpty)
        }
    }

    @Test("Of several nodes one calls, whichever has committed; when it ends another one does")
    func nodes() async throws {
        let bench = try PostgresBench()
        let nodes = try (0..<2).map { _ in try bench.node() }
        defer { for node in nodes { node.close() } }
        let receivers = [Receiver(), Receiver()]
        let servers = zip(nodes, receivers).map { node, receiver in
            SyncServer(store: node, configuration: configuration([receiver.hook()]))
        }
        var tasks: [Task<Void, any Error>] = []
        for server in servers {
            tasks.append(Task { try await server.callHooksContinuously() })
            tasks.append(Task { try await server.watchOtherNodes() })
        }
        defer { for task in tasks { task.cancel() } }
        var head: Version = 0
        func commitEverywhere() async throws {
            for server in servers {
                head = try await commit(Int(head), to: "s", on: server)
                try await poll { receivers.contains { $0.notices(of: "s").last?.head == head } }
            }
        }
        try await commitEverywhere()
        let callers = receivers.indices.filter { !receivers[$0].all.isEmpty }
        #expect(callers.count == 1)
        let first = try #require(callers.first)
        // It ends, and goes on committing.
        tasks[first * 2].cancel()
        _ = await tasks[first * 2].result
        try await commitEverywhere()
        #expect(receivers[first].notices(of: "s").last?.head == 2)
        #expect(receivers[1 - first].notices(of: "s").last?.head == 4)
    }

    @Test("More scopes than are known at one time are told all the same")
    func many() async throws {
        let bench = try StoreBench(.sqlite)
        let writer = SyncServer(store: bench.store, configuration: .still)
        for index in 0..<120 { try await commit(0, to: Scope(stringLiteral: "s:\(index)"), on: writer) }
        let receiver = Receiver()
        var hook = receiver.hook(start: .start)
        hook.settings.knownScopes = 8
        try await run([hook], on: bench.store) { _ in
            try await poll { Set(receiver.all.map(\.scope)).count == 120 }
        }
        #expect(receiver.all.count == 120)
    }

    @Test("A pattern takes the scopes that begin so, and a scope's sub-scopes with it")
    func patterns() {
        let hook = CommitHook("h", scopes: ["user:*", "news"]) { _ in }
        #expect(hook.includes("user:1") && hook.includes("news") && hook.includes("news~media"))
        #expect(!hook.includes("newspaper") && !hook.includes("w:user:1"))
        #expect(CommitHook("h") { _ in }.includes("any"))
    }

    @Test("A store that cannot remember what was told is refused")
    func memory() async throws {
        let server = SyncServer(store: MemoryStore(seed: 1), configuration: configuration([Receiver().hook()]))
        await #expect(throws: StoreWithoutHooks.self) { try await server.callHooksContinuously() }
    }

    // MARK: A server with hooks

    func configuration(_ hooks: [CommitHook]) -> SyncServer.Configuration {
        var configuration = SyncServer.Configuration()
        configuration.hooks = hooks.map { hook in
            var hook = hook
            (hook.settings.backoff.baseMilliseconds, hook.settings.backoff.jitterMilliseconds) = (5, 5)
            hook.settings.backoff.maximumMilliseconds = 20
            return hook
        }
        configuration.hookTimes.leadStep = .milliseconds(50)
        configuration.hookTimes.lookAgain = .milliseconds(50)
        configuration.hookTimes.patience = .milliseconds(50)
        return configuration
    }

    func run(
        _ hooks: [CommitHook], on store: any ChangeStore,
        set: (inout SyncServer.Configuration) -> Void = { _ in }, body: (SyncServer) async throws -> Void
    ) async throws {
        var configuration = configuration(hooks)
        set(&configuration)
        let server = SyncServer(store: store, configuration: configuration)
        let task = Task { try await server.callHooksContinuously() }
        do { try await body(server) } catch {
            task.cancel()
            throw error
        }
        task.cancel()
        _ = await task.result
    }

    @discardableResult
    func commit(_ round: Int, to scope: Scope, on server: SyncServer) async throws -> Version {
        try await server.commit(to: scope) { $0.upsert("task", id: "t1", ["n": .integer(Int64(round))]) }
    }
}

/// What hears of commits; it may be closed, so that no call ends, or refuse some.
final class Receiver: Sendable {
    struct Refused: Error {}

    private struct State {
        var notices: [CommitNotice] = []
        var calls = 0
        var running: [Scope: Int] = [:]
        var mostAtOnce = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
        var isClosed: Bool
        var takesAll = false
    }

    private let state: Mutex<State>
    private let takes: @Sendable (CommitNotice) -> Bool
    private let heedsCancellation: Bool

    /// - Parameter heedsCancellation: otherwise a call goes on although it is cancelled.
    init(
        isClosed: Bool = false, heedsCancellation: Bool = true,
        takes: @escaping @Sendable (CommitNotice) -> Bool = { _ in true }
    ) {
        state = Mutex(State(isClosed: isClosed))
        self.takes = takes
        self.heedsCancellation = heedsCancellation
    }

    func hook(_ name: String = "hook", scopes: [String] = [], start: CommitHook.Start = .start) -> CommitHook {
        CommitHook(name, scopes: scopes, start: start) { notice in try await self.call(notice) }
    }

    func call(_ notice: CommitNotice) async throws {
        state.withLock { state in
            state.calls += 1
            state.running[notice.scope, default: 0] += 1
            state.mostAtOnce = max(state.mostAtOnce, state.running[notice.scope] ?? 0)
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let goesOn = state.withLock { state in
                    let goesOn = !state.isClosed || heedsCancellation && Task.isCancelled
                    if !goesOn { state.waiting.append(continuation) }
                    return goesOn
                }
                if goesOn { continuation.resume() }
            }
        } onCancel: {
            if heedsCancellation { letGo() }
        }
        let isTaken = state.withLock { state in
            state.running[notice.scope, default: 1] -= 1
            let isTaken = !Task.isCancelled && (state.takesAll || takes(notice))
            if isTaken { state.notices.append(notice) }
            return isTaken
        }
        if !isTaken { throw Refused() }
    }

    private func letGo() {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func open() {
        state.withLock { $0.isClosed = false }
        letGo()
    }

    func takeAll() { state.withLock { $0.takesAll = true } }

    var all: [CommitNotice] { state.withLock { $0.notices } }
    var mostAtOnce: Int { state.withLock { $0.mostAtOnce } }

    func notices(of scope: Scope) -> [CommitNotice] { all.filter { $0.scope == scope } }

    func wait(for scope: Scope, _ head: Version) async throws {
        try await poll { self.notices(of: scope).last?.head == head }
    }

    func running(of scope: Scope) -> Int { state.withLock { $0.running[scope] ?? 0 } }
    var calls: Int { state.withLock { $0.calls } }

    func waitForCalls(_ count: Int) async throws { try await poll { self.state.withLock { $0.calls >= count } } }

    /// Until the heads that there are count as told.
    func waitForBeginning(_ store: any ChangeStore, _ hook: String) async throws {
        let store = try #require(store as? any HookStore)
        try await poll { try await store.untold(to: hook, of: nil, after: nil, limit: 1).isEmpty }
    }
}
