#if Server
    import Foundation
    import GRDB
    import HTTPTypes
    import TidemarkCore
    import TidemarkFuzzing
    import TidemarkHummingbird
    import TidemarkSQLite
    import TidemarkWire
    import Testing

    /// Whatever is asked, the answer is a documented one, in time, and the store is as whole afterwards as before.
    @Suite(.serialized) struct RouteFuzzTests {
        /// A request that never ends is found by this. What one may take, `Scripts/torture --only neighbours` measures:
        /// here two hundred other tests run beside it.
        private static let patience = Duration.seconds(60)
        private static let count =
            ProcessInfo.processInfo.environment["TIDEMARK_FUZZ_INPUTS"].flatMap { Int($0) } ?? 2000
        private static let seed =
            ProcessInfo.processInfo.environment["TIDEMARK_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1

        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        @Test func requests() async throws {
            let bench = try await RouteBench(in: folder, entities: BodyGrammar.entities)
            let good = try await LiveServer.token()
            let tokens = [
                good, try await LiveServer.token("eve", scopes: ["w": .read]),
                try await LiveServer.token("bob", scopes: ["y:*": .readWrite]),
                try await LiveServer.token(expiresIn: -1),
                try await LiveServer.token(secret: Array("another key, of which this server knows nothing".utf8)),
                "a.b.c",
            ]
            var grammar = RequestGrammar(
                dice: Mutator(seed: Self.seed, pool: try Corpus.requests()), bodies: BodyGrammar(), tokens: tokens)
            var tally: [String: Int] = [:]
            var slowest = Duration.zero
            for number in 0..<Self.count {
                let request = grammar.request()
                let answer = try await bench.send(request)
                slowest = max(slowest, answer.time)
                tally[answer.problem?.code.rawValue ?? String(answer.status), default: 0] += 1
                if let fault = fault(of: answer) { Issue.record("\(number): \(fault)\n\(request.summary)") }
                grammar.learned.learn(with: &grammar.dice) { answer.member($0) as? String }
            }
            if Self.count > 2000 { print("slowest: \(slowest)", tally.sorted { $0.value > $1.value }) }
            // A grammar that is refused at the door tests nothing behind it.
            #expect(tally["200", default: 0] * 4 > Self.count, "\(tally)")
            try await Self.verify(bench, token: good, path: folder.path("sync.sqlite"))
        }

        /// What is wrong with an answer; `nil` where it is one that the protocol knows.
        private func fault(of answer: RouteBench.Routed) -> String? {
            if answer.time > Self.patience { return "it took \(answer.time)" }
            for name in ["Tidemark-Protocol", "Tidemark-Declarations", "Cache-Control"] {
                guard answer.headers.contains(where: { $0.name.rawName == name }) else { return "no \(name)" }
            }
            if [204, 304].contains(answer.status) {
                return answer.bytes.isEmpty ? nil : "a body with \(answer.status)"
            }
            if [200, 201].contains(answer.status) {
                guard answer.headers[.contentType] == "application/json" else { return "another type" }
                return answer.bytes.withUnsafeBytes(Tree.isSkipped) ? nil : "the answer is no document"
            }
            guard let problem = answer.problem, answer.headers[.contentType] == Problem.contentType else {
                return "\(answer.status) without a problem"
            }
            if problem.code.status != answer.status { return "\(answer.status) with \(problem.code)" }
            let isOurs = [.internalError, .unavailable, .tooManyRequests].contains(problem.code)
            return isOurs ? "\(answer.status) \(problem.detail)" : nil
        }

        /// A device still gets on, what it gets adds up to the server's own digests, and the file is whole.
        private static func verify(_ bench: RouteBench, token: String, path: String) async throws {
            let push = try await bench.post(
                "/sync",
                #"{"scope":"w","clientId":"device-99","operations":[{"lane":"lane-of-the-end","number":1,"#
                    + #""type":"upsert","entity":"task","id":"last","fields":{"title":"still here"}}]}"#, token: token)
            #expect(push.status == 200)
            var byBytes: [[UInt8]: EntityDigest] = [:]
            var since = ""
            var pages = 0
            while true {
                let page = try await bench.get("/sync/changes?scope=w&limit=100\(since)", token: token)
                try #require(page.status == 200)
                try Self.count(page.bytes, in: &byBytes)
                pages += 1
                since = "&since=\(try #require(page.member("nextSince") as? String))"
                if page.member("hasMore") as? Bool != true { break }
            }
            let answer = try await bench.get("/sync/digest?scope=w", token: token)
            let digests = Dictionary(grouping: byBytes) { String(decoding: $0.key, as: UTF8.self) }
            let entities = try #require(answer.member("entities") as? [String: Any])
            #expect(Set(entities.keys) == Set(digests.keys.filter { $0 != "audit" && $0 != "hidden" }))
            // Two names that Swift takes for one are one member of what Foundation has read.
            for (entity, same) in digests where entities[entity] != nil && same.count == 1 {
                let digest = same[0].value
                var writer = JSONWriter()
                digest.write(to: &writer)
                let ours = try JSONSerialization.jsonObject(with: Data(writer.bytes)) as? NSDictionary
                #expect(entities[entity] as? NSDictionary == ours, "\(entity)")
            }
            try bench.store.close()
            let problems = try await DatabaseQueue(path: path).read { db in
                try String.fetchAll(db, sql: "PRAGMA integrity_check")
            }
            #expect(problems == ["ok"])
        }

        /// Takes the live records of a page into digests, as a device would.
        private static func count(_ page: [UInt8], in digests: inout [[UInt8]: EntityDigest]) throws {
            let document = page.withUnsafeBytes { Tree.read($0) }
            guard case .object(let members) = try document.get(),
                case .array(let changes)? = members.first(where: { $0.name == Array("changes".utf8) })?.value
            else { throw BrokenProperty(description: "a page without changes") }
            for case .object(let change) in changes {
                let members = Dictionary(change.map { (String(decoding: $0.name, as: UTF8.self), $0.value) }) { $1 }
                guard members["type"] == .text(Array("upsert".utf8)), case .text(let entity)? = members["entity"],
                    case .text(let id)? = members["id"], let data = members["data"]
                else { continue }
                var writer = JSONWriter()
                data.write(to: &writer)
                let number = id.withUnsafeBytes {
                    CellHash.record(entity: String(decoding: entity, as: UTF8.self), id: $0)
                }
                try writer.bytes.withUnsafeBytes {
                    try digests[entity, default: EntityDigest()]
                        .replace(number, nil, with: $0)
                }
            }
        }
    }
#endif
