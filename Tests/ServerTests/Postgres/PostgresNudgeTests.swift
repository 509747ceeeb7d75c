import Foundation
import PostgresCluster
import Synchronization
import Testing
import TidemarkWire

@testable import TidemarkPostgres
@testable import TidemarkServer

@Suite("Nudges between nodes that share PostgreSQL", .serialized)
struct PostgresNudgeTests {
    @Test("A commit on one node is heard of on the others, long before they would look", .timeLimit(.minutes(5)))
    func hinted() async throws {
        try await run(PostgresBench().nodes(lookInterval: .seconds(600))) { servers in
            // The first look of a listener that has just begun.
            try await commit(on: servers[0], until: servers)
            for round in 1...10 { try await commit(on: servers[round % 3], until: servers) }
        }
    }

    @Test("Without any listener everything still arrives, at the next look", .timeLimit(.minutes(5)))
    func unheard() async throws {
        let bench = try PostgresBench()
        let (cluster, role) = (bench.cluster, bench.schema + "_r")
        try await offPool {
            try cluster.psql("CREATE ROLE \(role) LOGIN")
            try cluster.psql("CREATE SCHEMA \(bench.schema) AUTHORIZATION \(role)")
        }
        let nodes = try (0..<3).map { _ in
            try bench.node(user: role) { ($0.lookInterval, $0.writers, $0.readers) = (.milliseconds(700), 1, 1) }
        }
        // Those who write and read stay connected; nobody comes after them.
        for node in nodes {
            _ = try await node.write("s") { try $0.append(.event("e"), at: 1) }
            _ = try await node.ageClock()
        }
        _ = try await offPool { try cluster.psql("ALTER ROLE \(role) NOLOGIN") }
        let listeners = "SELECT count(*) FROM pg_stat_activity WHERE usename = '\(role)' AND query LIKE 'LISTEN%'"
        try await run(nodes) { servers in
            for server in servers { try await commit(on: server, until: servers) }
            #expect(try await offPool { try cluster.psql(listeners) } == "0")
        }
    }

    @Test("Listeners that are killed come back, and look at once", .timeLimit(.minutes(5)))
    func killed() async throws {
        let bench = try PostgresBench()
        let (cluster, channel) = (bench.cluster, bench.schema)
        try await run(bench.nodes(lookInterval: .seconds(600))) { servers in
            try await commit(on: servers[0], until: servers)
            let isOver = Told()
            defer { isOver.end() }
            // As fast as they come back.
            let killed = Task {
                try await offPool {
                    var killed = 0
                    repeat {
                        let pids = try cluster.psql(
                            """
                            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                            WHERE query = 'LISTEN "\(channel)"' AND pid <> pg_backend_pid()
                            """)
                        killed += pids.split(separator: "\n").count
                    } while !isOver.isOver
                    return killed
                }
            }
            for round in 1...6 { try await commit(on: servers[round % 3], until: servers) }
            isOver.end()
            #expect(try await killed.value > 0)
        }
    }

    @Test("Many commits are told in few messages, which name every scope", .timeLimit(.minutes(5)))
    func gathered() async throws {
        let bench = try PostgresBench()
        let node = try bench.node { $0.hintPause = .seconds(1) }
        defer { node.close() }
        let listener = try Session(to: ServerAddress(bench.cluster.url()), node.configuration)
        try listener.listen(bench.schema)
        let scopes = (0..<300).map { Scope(stringLiteral: "s:\($0)") }
        let began = ContinuousClock.now
        // One behind the other: those that share a commit are told together in any case.
        for scope in scopes { _ = try await node.write(scope) { try $0.append(.event("e"), at: 1) } }
        var messages = 0
        var untold = Set(scopes.map(\.name))
        try await poll {
            for message in try listener.messages(within: .zero) {
                messages += 1
                if case .these(let names) = Hint(message).scopes { untold.subtract(names) }
            }
            return untold.isEmpty
        }
        // One in each pause, however long a busy machine takes for the commits.
        #expect(messages <= Int((ContinuousClock.now - began) / .seconds(1)) + 2)
    }

    @Test("A stranger's message on the channel is no more than a reason to look", .timeLimit(.minutes(5)))
    func forged() async throws {
        let bench = try PostgresBench()
        let (cluster, channel) = (bench.cluster, bench.schema)
        try await run(bench.nodes(lookInterval: .seconds(600))) { servers in
            for text in ["", "*", "x\n*", "x\ns", "x\n\n\n", "x\n'; DROP", String(repeating: "y\n", count: 3900)] {
                _ = try await offPool { try cluster.psql("SELECT pg_notify('\(channel)', $$\(text)$$)") }
            }
            try await commit(on: servers[0], until: servers)
        }
    }

    @Test("Messages of many scopes stay within what PostgreSQL takes, or say that all are meant")
    func messages() throws {
        let names = (0..<300).map { "scope:\($0):" + String(repeating: "x", count: 90) }
        for count in [1, 79, 80, 300] {
            let messages = Hint.messages(of: .these(Set(names.prefix(count))), from: "node")
            #expect(messages.allSatisfy { $0.utf8.count <= Hint.messageBytes })
            var told: Set<String> = []
            for message in messages {
                let hint = Hint(message)
                #expect(hint.node == "node")
                if case .these(let scopes) = hint.scopes { told.formUnion(scopes) }
            }
            #expect(told == Set(names.prefix(count)))
        }
        let many = Set((0..<2000).map { "scope:\($0):" + String(repeating: "x", count: 90) })
        #expect(Hint.messages(of: .these(many), from: "node").map { Hint($0).scopes } == [.all])
    }

    @Test("More names than are gathered mean all scopes, to whoever tells and whoever hears")
    func tooMany() {
        let names = (0..<Hint.Scopes.limit).map { "scope:\($0)" }
        var scopes = Hint.Scopes.none
        for _ in 0..<2 { scopes.add(names) }
        #expect(scopes == .these(Set(names)))
        #expect(!scopes.contains("other"))
        scopes.add(.these(["other"]))
        #expect(scopes == .all)
        scopes.add(["s"])
        #expect(scopes == .all)
        // From one thread or many, and only until it is taken.
        let hinted = HintedScopes()
        for name in names { hinted.add(.these([name])) }
        #expect(hinted.take().scopes == .these(Set(names)))
        for name in names + ["s"] { hinted.add(.these([name])) }
        #expect(hinted.take().scopes == .all)
        #expect(hinted.take().scopes == .none)
        // The time to look comes from no other node.
        hinted.look()
        let taken = hinted.take()
        #expect(taken.isTime && taken.scopes == .none)
        #expect(!hinted.take().isTime)
    }

    // MARK: Three nodes

    private func run(_ nodes: [PostgresStore], _ body: ([SyncServer]) async throws -> Void) async throws {
        let servers = nodes.map { SyncServer(store: $0, configuration: .still) }
        let watches = servers.map { server in Task { try await server.watchOtherNodes() } }
        defer {
            for watch in watches { watch.cancel() }
            for node in nodes { node.close() }
        }
        try await body(servers)
    }

    /// Commits on one node and waits until it was told on all: not for as long as nodes that look seldom would take.
    private func commit(on server: SyncServer, until servers: [SyncServer]) async throws {
        let waiters = try await servers.asyncMap { try await $0.waiter(for: [("s", .read(as: "ada"))]) }
        for waiter in waiters { _ = waiter.take() }
        let id = RecordID(stringLiteral: UUID().uuidString)
        let head = try await server.commit(to: "s") { $0.upsert("task", id: id, ["title": "a"]) }
        for (server, waiter) in zip(servers, waiters) {
            var told: Version = 0
            try await poll {
                told = waiter.take().last?.head ?? told
                return told >= head
            }
            #expect(told == head)
            server.end(waiter)
        }
    }
}

extension PostgresBench {
    fileprivate func nodes(lookInterval: Duration) throws -> [PostgresStore] {
        try (0..<3).map { _ in try node { $0.lookInterval = lookInterval } }
    }
}

extension Sequence {
    fileprivate func asyncMap<Result>(_ transform: (Element) async throws -> Result) async rethrows -> [Result] {
        var results: [Result] = []
        for element in self { results.append(try await transform(element)) }
        return results
    }
}
