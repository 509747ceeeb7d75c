import Foundation
import PostgresCluster
import Synchronization
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

/// Nodes on one schema of a cluster.
struct PostgresBench {
    let cluster: PostgresCluster
    let schema: String

    init(_ cluster: PostgresCluster? = nil) throws {
        self.cluster = try cluster ?? PostgresCluster.shared.get()
        schema = "nodes_" + UUID().uuidString.replacing("-", with: "").lowercased()
    }

    func node(
        user: String = "tidemark", _ set: (inout PostgresStore.Configuration) -> Void = { _ in }
    ) throws -> PostgresStore {
        var configuration = PostgresStore.Configuration()
        configuration.schema = schema
        (configuration.writers, configuration.readers) = (3, 2)
        set(&configuration)
        return try PostgresStore(url: cluster.url(user: user), configuration: configuration)
    }

    /// A scope's rows, which must be those of all versions up to its head.
    func gapless(_ scope: Scope, in node: PostgresStore) async throws -> [SeenChange] {
        let (head, seen) = try await available {
            try await node.read(scope) { reader in
                (reader.state.head, try reader.seen(after: 0, through: .max, tombstonesAfter: 0))
            }
        }
        #expect(seen.map(\.version) == Array(1...max(1, head)).filter { $0 <= head })
        return seen
    }
}

/// Asks again while a store is unavailable, for a minute at most.
func available<Result>(_ work: () async throws -> Result) async throws -> Result {
    for _ in 0..<1200 {
        do { return try await work() } catch is StoreUnavailable { try await Task.sleep(for: .milliseconds(50)) }
    }
    return try await work()
}

/// What was told of writes under ids of their own.
final class Told: Sendable {
    enum Word: Sendable { case done, undone, unknown }

    let words = Mutex<[String: Word]>([:])
    private let mayGoOn = Mutex(true)

    var isOver: Bool { mayGoOn.withLock { !$0 } }

    func end() { mayGoOn.withLock { $0 = false } }

    func note(_ id: String, _ word: Word) { words.withLock { $0[id] = word } }

    /// Until so many more are done.
    func waitForMore(than number: Int) async throws {
        let wanted = count(.done) + number
        try await poll { count(.done) > wanted }
    }

    func count(_ word: Word) -> Int { words.withLock { $0.values.count { $0 == word } } }

    /// Writes events until it is over, each once, and notes what came of it.
    func write(_ name: String, to scope: Scope, in store: any ChangeStore) async {
        var index = 0
        while !isOver {
            index += 1
            let id = "\(name)-\(index)"
            do {
                _ = try await store.write(scope) { try $0.append(.event(RecordID(stringLiteral: id)), at: 1) }
                note(id, .done)
            } catch let error as StoreUnavailable {
                note(id, error.mayBeDone ? .unknown : .undone)
                try? await Task.sleep(for: .milliseconds(20))
            } catch {
                Issue.record(error)
                return
            }
        }
    }

    /// Every word was true: what was said to be done is there once, and what was said not to be is not.
    func check(_ seen: [SeenChange]) {
        let times = Dictionary(seen.map { ($0.record.text, 1) }, uniquingKeysWith: +)
        #expect(times.values.allSatisfy { $0 == 1 })
        for (id, word) in words.withLock({ $0 }) {
            switch word {
            case .done: #expect(times[id] == 1, "\(id) was acknowledged")
            case .undone: #expect(times[id] == nil, "\(id) was refused")
            case .unknown: break
            }
        }
    }
}
