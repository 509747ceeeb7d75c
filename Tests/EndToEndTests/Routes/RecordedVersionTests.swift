#if Server
    import Foundation
    import GRDB
    import NIOHTTP1
    import Testing
    import Tidemark
    import TidemarkServer
    import TidemarkWire

    @testable import TidemarkCommand

    /// What was on the wire when the oldest version that is supported spoke to itself. `Scripts/fleet --record` makes
    /// the recordings, and `Scripts/fleet` plays the versions themselves.
    @Suite("Versions that work together")
    struct RecordedVersionTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private static let schema =
            "CREATE TABLE task (id TEXT PRIMARY KEY NOT NULL, title TEXT, done INTEGER, weight REAL, photo BLOB)"

        private func recording<Recording: Decodable>(_ name: String) throws -> Recording {
            let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            let file = tests.appending(path: "Recordings/\(name).json")
            return try JSONDecoder().decode(Recording.self, from: Data(contentsOf: file))
        }

        @Test("Today's server gives the oldest devices what they ask for", .timeLimit(.minutes(5)))
        func oldestRequests() async throws {
            let recorded: RecordedRequests = try recording("oldest-requests")
            #expect(recorded.exchanges.count > 8)
            try await LiveServer.run(in: folder) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                var comparison = AnswerComparison()
                for (number, exchange) in recorded.exchanges.enumerated() {
                    let method: HTTPMethod = exchange.method == "POST" ? .POST : .GET
                    let answer = try await caller.send(
                        method, exchange.target, exchange.body.map { Array(comparison.translated($0).utf8) },
                        exchange.headers.map { ($0.key, $0.value) })
                    #expect(answer.status == exchange.status, "\(exchange.path) \(number): \(answer.text)")
                    #expect(answer.headers.first(name: "Content-Type") == exchange.type)
                    #expect(answer.headers.first(name: "Tidemark-Protocol") == "1")
                    try comparison.compare(
                        JSONSerialization.jsonObject(with: Data(answer.bytes)), to: exchange.parsedAnswer(),
                        at: "\(exchange.path) \(number)")
                }
                #expect(comparison.faults == [])
                #expect(comparison.compared > 100)
            }
        }

        @Test("Today's device takes what the oldest server answers", .timeLimit(.minutes(5)))
        func oldestAnswers() async throws {
            let recorded: RecordedAnswers = try recording("oldest-answers")
            let file = try folder.database("device")
            try await file.write { db in try db.execute(sql: Self.schema) }
            let scope: Scope = "recorded:1"
            let transport = RecordedServer()
            for step in recorded.steps {
                try await file.write { db in for sql in step.statements { try db.execute(sql: sql) } }
                transport.plays(step.exchanges)
                // Each step is a run of the app by itself, as it was when it was recorded.
                let engine = try SyncEngine(
                    for: file, tables: [.table("task", scope: .constant(scope))], scopes: [scope],
                    transport: transport)
                _ = try await engine.syncNow()
                let status = try await engine.status()
                #expect(status.isConfirmed)
                #expect(try await engine.rejectedOperations().isEmpty)
                let rows = try await file.read { db in
                    try String.fetchAll(
                        db,
                        sql: """
                            SELECT quote(id) || '|' || quote(title) || '|' || quote(done) || '|' || quote(weight)
                                || '|' || quote(photo) FROM task ORDER BY id
                            """)
                }
                #expect(rows == step.rows)
            }
            #expect(transport.unanswered == [])
        }

        @Test("A server does not start on a newer version's store, and says what to do", .timeLimit(.minutes(5)))
        func newerStore() async throws {
            let bench = try CommandBench()
            #expect(try await bench.server().stop() == 0)
            try bench.sql("s", "INSERT INTO grdb_migrations VALUES ('later')")
            let refusal = await #expect(throws: Failure.self) { _ = try await bench.server() }
            #expect(refusal?.what.contains("a newer version of Tidemark has written it") == true)
            #expect(refusal?.what.contains("hint: start the newer version") == true)
        }
    }

    /// One question to a server, and its answer.
    struct RecordedExchange: Decodable, Sendable {
        let method, path: String
        let query: [[String]]?
        let headers: [String: String]
        let body: String?
        let status: Int
        let answer, type, declarations: String

        var target: String {
            guard let query else { return path }
            return path + "?" + query.map { "\($0[0])=\($0[1])" }.joined(separator: "&")
        }

        func parsedAnswer() throws -> Any { try JSONSerialization.jsonObject(with: Data(answer.utf8)) }
    }

    struct RecordedRequests: Decodable, Sendable {
        let exchanges: [RecordedExchange]
    }

    struct RecordedAnswers: Decodable, Sendable {
        struct Step: Decodable, Sendable {
            let statements: [String]
            let exchanges: [RecordedExchange]
            let rows: [String]
        }

        let steps: [Step]
    }

    /// Whether an answer has all that a recorded one has. More members are welcome (W1); what is opaque or a time is
    /// another one each time, and is put into later questions in the place of the recorded one.
    struct AnswerComparison {
        private static let opaque: Set = ["since", "nextSince", "epoch", "updatedAt", "deletedAt"]
        /// Written for people.
        private static let words: Set = ["detail", "hint"]
        private var present: [String: String] = [:]
        private(set) var faults: [String] = []
        private(set) var compared = 0

        func translated(_ body: String) -> String {
            present.reduce(body) { body, pair in body.replacing("\"\(pair.key)\"", with: "\"\(pair.value)\"") }
        }

        mutating func compare(_ today: Any, to recorded: Any, at place: String) throws {
            compared += 1
            switch (today, recorded) {
            case (let today as [String: Any], let recorded as [String: Any]):
                for (name, value) in recorded { try compareMember(name, of: today, to: value, at: place) }
            case (let today as [Any], let recorded as [Any]):
                guard today.count == recorded.count else {
                    return faults.append("\(place) has \(today.count) elements, not \(recorded.count): \(today)")
                }
                for (number, pair) in zip(today, recorded).enumerated() {
                    try compare(pair.0, to: pair.1, at: "\(place)[\(number)]")
                }
            default:
                let (today, recorded) = (today as? NSObject, recorded as? NSObject)
                if today != recorded { faults.append("\(place) is \(today as Any), not \(recorded as Any)") }
            }
        }

        private mutating func compareMember(
            _ name: String, of today: [String: Any], to recorded: Any, at place: String
        ) throws {
            guard let value = today[name] else { return faults.append("\(place) has no \(name)") }
            if let recorded = recorded as? String, let value = value as? String {
                if Self.words.contains(name) { return }
                if Self.opaque.contains(name) {
                    present[recorded] = value
                    return
                }
            }
            try compare(value, to: recorded, at: "\(place).\(name)")
        }
    }

    /// A server that gives the recorded answers, of each route in their order. Lanes are random: a verdict is for the
    /// operation that stands in its place.
    final class RecordedServer: Transport {
        private let exchanges = Guarded<[RecordedExchange]>([])

        var unanswered: [String] { exchanges.withLock { $0.map(\.path) } }

        func plays(_ more: [RecordedExchange]) { exchanges.withLock { $0 += more } }

        func send(_ request: TransportRequest) async throws -> TransportResponse {
            let found = exchanges.withLock { exchanges -> RecordedExchange? in
                let place = exchanges.firstIndex { $0.method == request.method && $0.path == request.path }
                return place.map { exchanges.remove(at: $0) }
            }
            guard let found else {
                let problem = Problem(.notFound, "Nobody asked \(request.path) when this was recorded.")
                return TransportResponse(
                    status: 404, headers: ["content-type": Problem.contentType], body: problem.body())
            }
            var body = found.answer
            for (asked, recorded) in zip(try lanes(request.body), try lanes(Array((found.body ?? "{}").utf8))) {
                body = body.replacing("\"\(recorded)\"", with: "\"\(asked)\"")
            }
            return TransportResponse(
                status: found.status,
                headers: [
                    "content-type": found.type, "tidemark-protocol": "1", "tidemark-declarations": found.declarations,
                ],
                body: Array(body.utf8))
        }

        private func lanes(_ body: [UInt8]) throws -> [String] {
            guard !body.isEmpty else { return [] }
            let request = try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
            return (request?["operations"] as? [[String: Any]] ?? []).compactMap { $0["lane"] as? String }
        }
    }
#endif
