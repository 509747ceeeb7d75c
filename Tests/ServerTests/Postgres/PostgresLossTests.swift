import Foundation
import PostgresCluster
import Testing
import TidemarkCore
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("PostgreSQL goes away and comes back", .serialized)
struct PostgresLossTests {
    @Test("A write that was acknowledged is there once, one that was refused is not (I1)", .timeLimit(.minutes(2)))
    func restarts() async throws {
        let cluster = try await offPool { try PostgresCluster(isDurable: true) }
        let bench = try PostgresBench(cluster)
        let nodes = [try bench.node(), try bench.node()]
        let told = Told()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<8 {
                let node = nodes[writer % 2]
                group.addTask { await told.write("w\(writer)", to: Scope(stringLiteral: "s:\(writer % 3)"), in: node) }
            }
            for mode in ["immediate", "fast", "immediate"] {
                try await told.waitForMore(than: 30)
                try await offPool { try cluster.restart(mode: mode, after: 0.3) }
            }
            try await told.waitForMore(than: 30)
            told.end()
            try await group.waitForAll()
        }
        var seen: [SeenChange] = []
        for scope in ["s:0", "s:1", "s:2"] as [Scope] { seen += try await bench.gapless(scope, in: nodes[0]) }
        told.check(seen)
        #expect(told.count(.done) > 50)
        #expect(told.count(.undone) > 0)
        #expect(told.count(.unknown) == 0)
        // Whoever stood on the other side of a restart is told apart: a restored server looks just like that.
        let incarnations = try await available { try await nodes[0].read("s:0") { $0.state.incarnations } }
        #expect(Set(incarnations.map(\.id)).count >= 4)
    }

    @Test("A reader is put off while the server is stopped, and told nothing else", .timeLimit(.minutes(2)))
    func readersAtTheStop() async throws {
        let cluster = try await offPool { try PostgresCluster() }
        let node = try PostgresBench(cluster).node { $0.readers = 8 }
        let told = Told()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<12 {
                group.addTask {
                    while !told.isOver {
                        do { _ = try await node.read("s:0") { $0.state.head } } catch is StoreUnavailable {
                            try await Task.sleep(for: .milliseconds(10))
                        }
                    }
                }
            }
            for _ in 0..<5 {
                // Whatever the readers do at that moment.
                try await Task.sleep(for: .milliseconds(200))
                try await offPool { try cluster.restart(mode: "immediate") }
                _ = try await available { try await node.read("s:0") { $0.state.head } }
            }
            told.end()
            try await group.waitForAll()
        }
    }

    @Test("Connections that are cut anywhere cost nobody an answer", .timeLimit(.minutes(2)))
    func cuts() async throws {
        let cluster = try await offPool { try PostgresCluster() }
        let bench = try PostgresBench(cluster)
        let node = try bench.node()
        let told = Told()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<6 {
                group.addTask { await told.write("w\(writer)", to: Scope(stringLiteral: "s:\(writer % 3)"), in: node) }
            }
            group.addTask {
                while !told.isOver { _ = try? await node.read("s:0") { $0.state.head } }
            }
            for _ in 0..<25 {
                // Whatever each of them does at that moment.
                try await Task.sleep(for: .milliseconds(60))
                _ = try await offPool {
                    try cluster.psql(
                        """
                        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                        WHERE application_name = 'tidemark' AND pid <> pg_backend_pid()
                        """)
                }
            }
            told.end()
            try await group.waitForAll()
        }
        var seen: [SeenChange] = []
        for scope in ["s:0", "s:1", "s:2"] as [Scope] { seen += try await bench.gapless(scope, in: node) }
        told.check(seen)
        #expect(told.count(.done) > 50)
        #expect(told.count(.unknown) == 0)
    }

    @Test("A commit that was cut off before its answer is asked about, and told as it is", .timeLimit(.minutes(5)))
    func askedAbout() async throws {
        let cluster = try await offPool { try PostgresCluster() }
        let bench = try PostgresBench(cluster)
        let node = try bench.node()
        _ = try await node.write("s") { try $0.append(.event("first"), at: 1) }
        try await offPool { try cluster.setStandby("nobody") }
        let told = Told()
        let write = Task {
            let version = try await node.write("s") { try $0.append(.event("second"), at: 1) }
            told.end()
            return version
        }
        try await offPool { try cluster.cutCommits() }
        // It is committed, but not on the standby that has to have it: who asks about it waits as well, and is cut off
        // as well. Nobody says yes yet.
        for _ in 0..<3 { try await offPool { try cluster.cutCommits() } }
        #expect(!told.isOver)
        try await offPool { try cluster.setStandby("") }
        #expect(try await write.value == 2)
        #expect(try await bench.gapless("s", in: node).map(\.record) == ["first", "second"])
    }

    @Test("A write whose outcome nobody can tell in time is unknown; a retry finds it", .timeLimit(.minutes(5)))
    func unknown() async throws {
        let cluster = try await offPool { try PostgresCluster() }
        let bench = try PostgresBench(cluster)
        let node = try bench.node { $0.outcomeTimeout = .milliseconds(1500) }
        _ = try await node.write("s") { try $0.store(.applied(nil), .test, 1, at: 1) }
        try await offPool { try cluster.setStandby("nobody") }
        // It is there, but no standby has it: who finds it must not say so either. What asks is cut off as well.
        for look in [false, true] {
            let told = Told()
            let call = Task {
                defer { told.end() }
                try await node.write("s") { writer in
                    if look { _ = try writer.lane(.test) } else { try writer.store(.applied(nil), .test, 2, at: 1) }
                }
            }
            try await offPool { try cluster.cutCommits(until: told) }
            let error = await #expect(throws: StoreUnavailable.self) { try await call.value }
            #expect(error?.mayBeDone == true)
        }
        try await offPool { try cluster.setStandby("") }
        #expect(try await available { try await node.read("s") { try $0.lane(.test) } } == 2)
    }

    @Test("A database that is put back under a living node is noticed (I11)", .timeLimit(.minutes(5)))
    func restored() async throws {
        let bench = try PostgresBench()
        let (cluster, schema) = (bench.cluster, bench.schema)
        let node = try bench.node()
        let tables = ["scope", "change", "incarnation", "digest"]
        func write(_ id: RecordID) async throws { _ = try await node.write("s") { try $0.append(.event(id), at: 1) } }
        for id in ["a", "b"] as [RecordID] { try await write(id) }
        for table in tables { try cluster.psql("CREATE TABLE \(schema).\(table)_copy AS TABLE \(schema).\(table)") }
        for id in ["c", "d"] as [RecordID] { try await write(id) }
        let lost = try await node.read("s") { $0.state.history }
        for table in tables {
            try cluster.psql(
                "TRUNCATE \(schema).\(table); INSERT INTO \(schema).\(table) TABLE \(schema).\(table)_copy")
        }
        for id in ["e", "f"] as [RecordID] { try await write(id) }
        let state = try await node.read("s") { $0.state }
        #expect(state.incarnations.map(\.start) == [0, 2])
        #expect(state.history.epoch(of: 4) != lost.epoch(of: 4))
        #expect(state.history.epoch(of: 2) == lost.epoch(of: 2))
    }

    @Test("Calls to a server that is away are refused soon, and go on by themselves", .timeLimit(.minutes(5)))
    func away() async throws {
        let cluster = try await offPool { try PostgresCluster() }
        let bench = try PostgresBench(cluster)
        let node = try bench.node()
        _ = try await node.write("s") { try $0.append(.event("e"), at: 1) }
        try await offPool { try cluster.halt(mode: "fast") }
        let start = ContinuousClock.now
        await #expect(throws: StoreUnavailable.self) { try await node.write("s") { $0.state.head } }
        await #expect(throws: StoreUnavailable.self) { try await node.read("s") { $0.state.head } }
        await #expect(throws: StoreUnavailable.self) { try await node.setAgeClock(1) }
        await #expect(throws: StoreUnavailable.self) { try await node.sweep(supersededBefore: 1, limit: 1) }
        #expect(ContinuousClock.now - start < .seconds(5))
        #expect(throws: PostgresError.self) { try bench.node() }
        try await offPool { try cluster.start() }
        #expect(try await available { try await node.write("s") { try $0.append(.event("f"), at: 1) } } == 2)
    }
}

extension PostgresCluster {
    /// Makes every commit wait for a standby of this name, from when this returns; the empty name for none.
    fileprivate func setStandby(_ name: String) throws {
        try psql("ALTER SYSTEM SET synchronous_standby_names = '\(name)'")
        try psql("SELECT pg_reload_conf()")
        guard !name.isEmpty else { return }
        // The server takes it up when it comes to it: a commit that waits shows that it has.
        for attempt in 0..<50 {
            Thread { [self] in _ = try? psql("CREATE TABLE public.probe_\(attempt) ()") }.start()
            if (try? cutCommits(of: "psql", within: 20)) != nil { return }
        }
        throw Missing("no commit waits")
    }

    /// Ends the connections of commits that wait for their standby, as soon as there are any.
    fileprivate func cutCommits(of application: String = "tidemark", within attempts: Int = 2000) throws {
        for _ in 0..<attempts {
            let cut = try psql(
                """
                SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE wait_event = 'SyncRep' AND application_name = '\(application)'
                """)
            if cut != "0" { return }
            Thread.sleep(forTimeInterval: 0.02)
        }
        throw Missing("no commit waits")
    }

    /// One that nobody waits for any more may wait itself: which one is cut first nobody knows.
    fileprivate func cutCommits(until told: Told) throws {
        while !told.isOver { try? cutCommits(within: 1) }
    }
}
