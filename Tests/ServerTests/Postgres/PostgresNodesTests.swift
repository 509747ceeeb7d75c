import Foundation
import PostgresCluster
import Synchronization
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("Nodes that share PostgreSQL", .serialized)
struct PostgresNodesTests {
    @Test("Versions are gapless in commit order, and no reader skips one (I3)", .timeLimit(.minutes(2)))
    func versions() async throws {
        let bench = try PostgresBench()
        let nodes = [try bench.node(), try bench.node(), try bench.node()]
        let scopes: [Scope] = ["hot", "warm", "cold"]
        let told = Told()
        let positions = try await withThrowingTaskGroup(of: Version?.self) { group in
            for writer in 0..<9 {
                let (scope, node) = (scopes[writer % 5 % 3], nodes[writer % 3])
                group.addTask {
                    await told.write("w\(writer)", to: scope, in: node)
                    return nil
                }
            }
            for node in nodes {
                group.addTask {
                    defer { told.end() }
                    // What a reader has not seen when it stood at a head never comes up below it.
                    var position: Version = 0
                    while !told.isOver {
                        let last = position
                        let versions = try await node.read("hot") { reader in
                            try reader.seen(after: last, through: reader.state.head, tombstonesAfter: 0).map(\.version)
                        }
                        #expect(versions.first ?? last + 1 == last + 1)
                        #expect(zip(versions, versions.dropFirst()).allSatisfy { $1 == $0 + 1 })
                        position = versions.last ?? last
                    }
                    return position
                }
            }
            // Also where a wait takes too long: the group waits for those who write until it is over.
            defer { told.end() }
            try await poll { told.count(.done) > 300 || told.isOver }
            told.end()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(positions.compactMap { $0 }.count == nodes.count)
        #expect(positions.compactMap { $0 }.allSatisfy { $0 > 0 })
        var seen: [SeenChange] = []
        for scope in scopes { seen += try await bench.gapless(scope, in: nodes[0]) }
        told.check(seen)
        #expect(told.count(.done) > 300)
        #expect(seen.count == told.count(.done))
        #expect(Set(nodes.map(\.tokenKey)).count == 1)
    }

    @Test("Of several that write to a new scope first, one makes it", .timeLimit(.minutes(5)))
    func newScopes() async throws {
        let bench = try PostgresBench()
        let nodes = [try bench.node(), try bench.node()]
        for round in 0..<20 {
            let scope = Scope(stringLiteral: "new:\(round)")
            let versions = try await withThrowingTaskGroup(of: Version.self) { group in
                for index in 0..<6 {
                    let node = nodes[index % 2]
                    group.addTask { try await node.write(scope) { try $0.append(.event("e"), at: 1) } }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(versions.sorted() == Array(1...6))
            let state = try await nodes[0].read(scope) { $0.state }
            #expect(Set(state.incarnations.map(\.id)).count == state.incarnations.count)
            #expect(state.incarnations.first?.start == 0)
        }
    }

    @Test("No temporary id stands for two records, in whatever scope", .timeLimit(.minutes(5)))
    func temporaryIDs() async throws {
        let bench = try PostgresBench()
        let nodes = [try bench.node(), try bench.node()]
        // A device that inserts the same record in two scopes at once has one id for it.
        let name = TemporaryName(principal: "ada", client: "device-1", entity: "task", id: "tmp_1")
        let ids = try await withThrowingTaskGroup(of: RecordID.self) { group in
            for index in 0..<8 {
                let (node, scope) = (nodes[index % 2], Scope(stringLiteral: "s:\(index)"))
                group.addTask {
                    try await node.write(scope) { writer in
                        if let id = try writer.id(for: name) { return id }
                        let id = RecordID(stringLiteral: "made-\(index)")
                        try writer.store(id, for: name, at: 1)
                        return id
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(ids).count == 1)
    }

    @Test("Transactions that wait for each other are all done in the end", .timeLimit(.minutes(5)))
    func deadlocks() async throws {
        let bench = try PostgresBench()
        let nodes = [try bench.node(), try bench.node()]
        let first = TemporaryName(principal: "ada", client: "device-1", entity: "task", id: "local-1")
        let second = TemporaryName(principal: "ada", client: "device-1", entity: "task", id: "local-2")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<6 {
                let (node, scope) = (nodes[index % 2], Scope(stringLiteral: "s:\(index)"))
                let names = index % 2 == 0 ? [first, second] : [second, first]
                group.addTask {
                    try await node.write(scope) { writer in
                        for name in names where try writer.id(for: name) == nil {
                            try writer.store("made", for: name, at: 1)
                            Thread.sleep(forTimeInterval: 0.05)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let known = try await nodes[0].read("s") { [try $0.id(for: first), try $0.id(for: second)] }
        #expect(known == ["made", "made"])
    }

    @Test("A node that stops in a transaction does not hold up the others for long", .timeLimit(.minutes(5)))
    func stalled() async throws {
        let bench = try PostgresBench()
        let (slow, quick) = (try bench.node { $0.idleTimeout = .milliseconds(300) }, try bench.node())
        let runs = Mutex(0)
        let (hasBegun, isOver) = (Guarded(false), Guarded(false))
        let stalled = Task { [runs = Shared(runs)] in
            try await slow.write("s") { writer in
                let version = try writer.append(.event("slow"), at: 1)
                _ = try writer.newest(entity: "audit", record: "slow")
                hasBegun.withLock { $0 = true }
                guard runs.count() == 1 else { return version }
                // For as long as the other one waits for it, within reason.
                for _ in 0..<6000 where !isOver.withLock({ $0 }) { Thread.sleep(forTimeInterval: 0.01) }
                return version
            }
        }
        try await poll { hasBegun.withLock { $0 } }
        #expect(try await quick.write("s") { try $0.append(.event("quick"), at: 1) } == 1)
        isOver.withLock { $0 = true }
        #expect(try await stalled.value == 2)
        #expect(try await bench.gapless("s", in: quick).map(\.record) == ["quick", "slow"])
    }

    @Test("Of services that share a database, none waits for another's new scope", .timeLimit(.minutes(5)))
    func neighbours() async throws {
        let slow = try PostgresBench().node()
        let quick = try PostgresBench().node { $0.lockTimeout = .milliseconds(300) }
        let (hasBegun, isOver) = (Guarded(false), Guarded(false))
        let stalled = Task {
            try await slow.write("new") { writer in
                hasBegun.withLock { $0 = true }
                for _ in 0..<6000 where !isOver.withLock({ $0 }) { Thread.sleep(forTimeInterval: 0.01) }
                return try writer.append(.event("slow"), at: 1)
            }
        }
        defer { isOver.withLock { $0 = true } }
        try await poll { hasBegun.withLock { $0 } }
        #expect(try await quick.write("new") { try $0.append(.event("quick"), at: 1) } == 1)
        isOver.withLock { $0 = true }
        #expect(try await stalled.value == 1)
    }

    @Test("With fewer connections than workers everything is done", .timeLimit(.minutes(5)))
    func fewConnections() async throws {
        let bench = try PostgresBench()
        let role = bench.schema + "_r"
        try bench.cluster.psql("CREATE ROLE \(role) LOGIN CONNECTION LIMIT 2")
        try bench.cluster.psql("CREATE SCHEMA \(bench.schema) AUTHORIZATION \(role)")
        let node = try bench.node(user: role) { ($0.writers, $0.readers) = (6, 0) }
        // One connection of the two at most can be a reader's.
        _ = try await node.ageClock()
        let versions = try await withThrowingTaskGroup(of: Version.self) { group in
            for index in 0..<60 {
                group.addTask {
                    try await node.write(Scope(stringLiteral: "s:\(index % 10)")) { try $0.append(.event("e"), at: 1) }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(versions.count == 60)
    }
}

/// How often something ran.
final class Shared: Sendable {
    private let runs: Mutex<Int>

    init(_ runs: consuming Mutex<Int>) { self.runs = runs }

    func count() -> Int {
        runs.withLock { runs in
            runs += 1
            return runs
        }
    }
}
