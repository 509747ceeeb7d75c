import Foundation
import Testing
import TidemarkPostgres
import TidemarkSQLite
import TidemarkWire

@testable import TidemarkServer

@Suite("Readers, the writer and memory are shared in turns (I14)")
struct FairTurnTests {
    /// Remembers names in the order in which they were noted.
    private final class Order: Sendable {
        private let names = Guarded<[String]>([])
        func note(_ name: String) { names.withLock { $0.append(name) } }
        var all: [String] { names.withLock { $0 } }
    }

    /// Lets one pass each time that it is opened.
    private final class Latch: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)
        func wait() { semaphore.wait() }
        func open() { semaphore.signal() }
    }

    /// Holds all that pass until it is opened, once: a store may carry a write out again.
    private final class Door: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)

        func wait() {
            semaphore.wait()
            semaphore.signal()
        }

        func open() { semaphore.signal() }
    }

    /// Waits until so many calls have come to a store: their work has begun, or waits there for its turn. Each notes a
    /// name of its own, which counts once however often its work is carried out.
    private func waitFor(_ count: Int, of begun: Order, in store: any ChangeStore) async throws {
        // What has begun is counted first: what begins meanwhile is then missed, and not counted twice.
        try await poll {
            let beginnings = Set(begun.all).count
            let waiting = (store as? SQLiteStore)?.waiting ?? (store as? PostgresStore)?.waiting
            return beginnings + (waiting.map { $0.reads + $0.writes } ?? 0) >= count
        }
    }

    private static let queued: [StoreKind] = [.sqlite, .postgres]

    @Test("One who writes once is behind one write of another's many", arguments: queued)
    func writer(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let (store, order, begun, door) = (bench.store, Order(), Order(), Door())
        try await withThrowingTaskGroup(of: Void.self) { group in
            // Also where a wait takes too long: the group waits for the write.
            defer { door.open() }
            group.addTask {
                try await store.write("s", for: "ada") { _ in
                    begun.note("busy")
                    door.wait()
                }
            }
            try await poll { !begun.all.isEmpty }
            for index in 0..<20 {
                group.addTask {
                    try await store.write("s", for: "ada") { _ in
                        begun.note("ada \(index)")
                        order.note("ada \(index)")
                    }
                }
            }
            try await waitFor(21, of: begun, in: store)
            group.addTask {
                try await store.write("s", for: "bob") { _ in
                    begun.note("bob")
                    order.note("bob")
                }
            }
            try await waitFor(22, of: begun, in: store)
            door.open()
            try await group.waitForAll()
        }
        #expect(Set(order.all).count == 21)
        #expect(order.all.prefix(2).contains("bob"), "\(order.all)")
    }

    @Test("One who reads once is behind few of another's many", arguments: queued)
    func readers(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let (store, order, begun, latch) = (bench.store, Order(), Order(), Latch())
        _ = try await store.write("s") { try $0.append(.event("e"), at: 1) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            // Also where a wait takes too long: the group waits for the reads.
            defer { for _ in 0..<30 { latch.open() } }
            for index in 0..<30 {
                group.addTask {
                    try await store.read("s", for: "ada") { _ in
                        begun.note("ada \(index)")
                        latch.wait()
                        order.note("ada \(index)")
                    }
                }
            }
            try await waitFor(30, of: begun, in: store)
            group.addTask {
                try await store.read("s", for: "bob") { _ in
                    begun.note("bob")
                    order.note("bob")
                }
            }
            try await waitFor(31, of: begun, in: store)
            // One after the other: a connection of his may still be on its way to the database.
            for served in 1...30 {
                latch.open()
                try await poll { order.all.count >= served }
                if !order.all.contains("bob") { try await Task.sleep(for: .milliseconds(served < 8 ? 50 : 0)) }
            }
            try await group.waitForAll()
        }
        #expect((order.all.firstIndex(of: "bob") ?? 99) < 10, "\(order.all)")
    }

    @Test("A write whose caller has gone before its turn is not carried out", arguments: queued)
    func gone(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let (store, order, begun, door) = (bench.store, Order(), Order(), Door())
        // Also where a wait takes too long: the store's end waits for the write.
        defer { door.open() }
        let first = Task {
            try await store.write("s", for: "ada") { _ in
                begun.note("busy")
                door.wait()
            }
        }
        try await poll { !begun.all.isEmpty }
        let second = Task {
            try await store.write("s", for: "bob") { _ in order.note("bob") }
        }
        try await waitFor(2, of: begun, in: store)
        second.cancel()
        door.open()
        try await first.value
        await #expect(throws: CancellationError.self) { try await second.value }
        #expect(order.all.isEmpty)
    }

    @Test("A write that comes while a transaction has taken long goes into the next one")
    func batchTime() async throws {
        let bench = try StoreBench(.sqlite)
        let (store, order) = (bench.store, Order())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<5 {
                group.addTask {
                    try await store.write("s", for: "ada") { _ in
                        order.note("runs")
                        // What takes long on purpose.
                        Thread.sleep(forTimeInterval: 0.1)
                    }
                    order.note("answered")
                }
            }
            try await group.waitForAll()
        }
        #expect(order.all.lastIndex(of: "runs") ?? 0 > order.all.firstIndex(of: "answered") ?? 99, "\(order.all)")
    }

    @Test("A gate lets through what fits, a share for each caller, and one piece in any case")
    func gate() async throws {
        let gate = FairGate(capacity: 4, share: 3, waitingLimit: 2)
        let (order, latch) = (Order(), AsyncStream.makeStream(of: Void.self))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await gate.pass(for: "ada", weight: 3) {
                    order.note("ada 1")
                    for await _ in latch.stream {}
                }
            }
            try await poll { order.all == ["ada 1"] }
            group.addTask { try await gate.pass(for: "ada", weight: 1) { order.note("ada 2") } }
            try await poll { gate.hasWaiting }
            try await gate.pass(for: "bob", weight: 1) { order.note("bob") }
            #expect(order.all == ["ada 1", "bob"], "the second of one's own waits for the first")
            let third = Task { try await gate.pass(for: "cay", weight: 99) { order.note("cay") } }
            // Who comes behind the two who wait is refused.
            try await poll { gate.waitingCount == 2 }
            await #expect(throws: StoreUnavailable.self) { try await gate.pass(for: "dan") {} }
            third.cancel()
            await #expect(throws: CancellationError.self) { try await third.value }
            latch.continuation.finish()
            try await group.waitForAll()
        }
        try await gate.pass(for: "eve", weight: 4) { order.note("eve") }
        #expect(order.all == ["ada 1", "bob", "ada 2", "eve"])
    }
}
