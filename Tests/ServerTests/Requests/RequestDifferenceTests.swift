import Foundation
import PostgresCluster
import Synchronization
import Testing
import TidemarkFuzzing
import TidemarkTesting
import TidemarkWire

@testable import TidemarkServer

/// Servers that differ in nothing but the store that they stand on. `TIDEMARK_REQUEST_SEEDS` sets how many scripts
/// there are.
@Suite("The same requests get the same answers on every store", .serialized)
struct RequestDifferenceTests {
    private static let seeds =
        ProcessInfo.processInfo.environment["TIDEMARK_REQUEST_SEEDS"].flatMap { UInt64($0) } ?? 2

    @Test("A script of hundreds of requests gets them, whatever its texts and numbers are", arguments: 1...seeds)
    func scripts(seed: UInt64) async throws {
        let benches = try await offPool { try StoreKind.allCases.map { try RequestBench($0) } }
        var script = try RequestScript(seed: seed)
        var taken = 0
        for count in 1...300 {
            let request = script.next()
            let expected = try await benches[0].answer(to: request)
            for bench in benches.dropFirst() {
                let answer = try await bench.answer(to: request)
                let isSame = answer == expected
                try #require(
                    isSame,
                    Self.report(
                        "request \(count) of seed \(seed): \(request)",
                        "\(benches[0].kind): \(Self.excerpt(of: expected, beside: answer))",
                        "\(bench.kind): \(Self.excerpt(of: answer, beside: expected))"))
            }
            guard let answer = try? Answer(expected) else { continue }
            script.learn(from: answer, to: request)
            if answer.members["head"] != nil { taken += 1 }
        }
        // A script that is refused at the door tests no store behind it.
        #expect(taken > 80)
    }

    /// In ASCII: `swift test` drops a piece of output that ends within a character.
    private static func report(_ lines: String...) -> Comment {
        let scalars = lines.joined(separator: "\n").unicodeScalars
        return Comment(rawValue: scalars.map { $0.isASCII ? String($0) : $0.escaped(asASCII: true) }.joined())
    }

    /// An answer from a little before the first difference on: a page is longer than anybody reads.
    private static func excerpt(of answer: [UInt8], beside other: [UInt8]) -> String {
        let place = zip(answer, other).prefix { $0 == $1 }.count
        return String(decoding: answer.dropFirst(max(0, place - 500)).prefix(2000), as: UTF8.self)
    }
}

/// A server on one kind of store, with a clock that is the same for all kinds.
private final class RequestBench: @unchecked Sendable {  // because a script waits for each answer
    let kind: StoreKind
    private let bench: StoreBench
    private var server: SyncServer
    private let clock = Mutex<Int64>(0)

    init(_ kind: StoreKind) throws {
        self.kind = kind
        bench = try StoreBench(kind)
        server = SyncServer(store: bench.store, configuration: .still)
        serve()
    }

    /// Limits are small enough that requests meet them, and times so short that a script outlives them.
    private func serve() {
        var limits = Limits()
        (limits.operations, limits.recordBytes, limits.pageBytes, limits.resultBytes) = (11, 8 << 10, 16 << 10, 8 << 10)
        (limits.digestScan, limits.digestParts, limits.digestRewind) = (50, 4, 200)
        limits.windowBytes = 6 << 10
        (limits.namedRecords, limits.followedFields, limits.namedFields) = (4, 2, 3)
        var configuration = SyncServer.Configuration.still
        (configuration.window, configuration.retention) = (.seconds(60), .seconds(120))
        (configuration.deviceRetention, configuration.laneRetention) = (.seconds(600), .seconds(1200))
        (configuration.sweepLimit, configuration.rejectionLimit) = (9, 20)
        configuration.uptime = { .zero }
        configuration.now = { [unowned self] in Date(milliseconds: clock.withLock { $0 }) }
        server = SyncServer(
            store: bench.store, entities: BodyGrammar.entities, limits: limits, configuration: configuration)
    }

    /// The body of an answer, or what stands for it.
    func answer(to request: ScriptRequest) async throws -> [UInt8] {
        clock.withLock { $0 = request.moment }
        do {
            return try await body(of: request)
        } catch let problem as Problem {
            return Array("\(problem.code.status), after \(problem.retryAfter ?? 0): ".utf8) + problem.body()
        } catch {
            return Array("\(error)".utf8)
        }
    }

    private func body(of request: ScriptRequest) async throws -> [UInt8] {
        let access = request.access
        switch request.ask {
        case .exchange(let body, let mode): return try await server.exchange(body, mode: mode) { _ in access }
        case .changes(let since, let limit, let takes):
            return try await server.changes(
                in: request.scope, since: since, limit: limit, takes: takes, access: access,
                client: request.client)
        case .snapshot(var query):
            query.client = request.client
            let page = try await server.snapshot(query, access: access)
            return Array(#"{"lifetime":"\#(page.lifetime)","#.utf8) + page.body.dropFirst()
        case .records(let named): return try await server.records(named, access: access)
        case .digest(let query): return try await server.digest(query, access: access)
        case .commit(let entity, let id, let fields):
            let head = try await server.commit(to: request.scope) { changes in
                if let fields { changes.upsert(entity, id: id, fields) } else { changes.delete(entity, id: id) }
            }
            return Array("\(head)".utf8)
        case .rejections(let scope):
            // As the store has them: fields in the order of their bytes.
            return Array("\(try await bench.store.rejections(in: scope, id: nil, limit: 30))".utf8)
        case .retry(let id): return Array("\(try await server.retryRejection(id))".utf8)
        case .discard(let id): return Array("\(try await server.discardRejection(id))".utf8)
        case .sweep: return Array("\(try await server.sweep())".utf8)
        case .compact(let elapsed, let isRehearsal):
            return Array("\(try await server.compact(elapsed: elapsed, isRehearsal: isRehearsal))".utf8)
        case .reopen:
            try await offPool { [self] in
                try bench.reopen()
                serve()
            }
            return []
        }
    }
}
