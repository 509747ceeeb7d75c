#if Server
    import Foundation
    import GRDB
    import Testing
    import Tidemark

    /// The transport that apps get by default, over the system's URL loading and real HTTP.
    @Suite(.serialized) struct URLLoadingTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private func device(_ name: String) throws -> DatabasePool {
            let pool = try DatabasePool(path: folder.path(name))
            try pool.write { db in try db.execute(sql: "CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT, raw BLOB)") }
            return pool
        }

        private func engine(_ pool: DatabasePool, _ url: String, token: String) throws -> SyncEngine {
            let root = try #require(URL(string: url))
            return try SyncEngine(
                for: pool, tables: [.table("note")], scopes: ["w:1"], transport: HTTPTransport(root) { token })
        }

        private func rows(_ pool: DatabasePool) throws -> [Row] {
            try pool.read { db in try Row.fetchAll(db, sql: "SELECT * FROM note ORDER BY id") }
        }

        @Test(.timeLimit(.minutes(2))) func rowsTravelCompressedBothWays() async throws {
            let token = try await LiveServer.token()
            try await LiveServer.run(in: folder) { server in
                let (one, two) = (try device("one"), try device("two"))
                try await one.write { db in
                    for index in 0..<1500 {
                        try db.execute(
                            sql: "INSERT INTO note VALUES (?, ?, ?)",
                            arguments: [
                                "n\(index)", String(repeating: "péché \u{1f600} ", count: 12),
                                Data([0, UInt8(index & 255)]),
                            ])
                    }
                }
                let up = try await engine(one, server.url, token: token).syncNow()
                #expect(up.pushed == 1500)
                #expect(up.bytesSent < 100_000, "\(up.bytesSent) bytes up: compressed")
                let down = try await engine(two, server.url, token: token).syncNow()
                #expect(down.applied == 1500)
                #expect(try rows(one) == rows(two))
                try await two.write { db in try db.execute(sql: "DELETE FROM note WHERE id = 'n7'") }
                try await engine(two, server.url, token: token).syncNow()
                try await engine(one, server.url, token: token).syncNow()
                #expect(try rows(one).count == 1499)
            }
        }

        /// URL loading on Linux waits for its queue while it cancels, and whoever cancels a task holds the task's lock:
        /// if a task cancelled its request as the answer came, neither would go on.
        @Test("a request may be cancelled at any moment, also as its answer comes", .timeLimit(.minutes(5)))
        func cancelled() async throws {
            let token = try await LiveServer.token()
            try await LiveServer.run(in: folder) { server in
                let transport = HTTPTransport(try #require(URL(string: server.url))) { token }
                let request = TransportRequest(method: "GET", path: "/sync/ping", headers: [:], body: [])
                let began = ContinuousClock.now
                for _ in 0..<20 { _ = try await transport.send(request) }
                let usual = (ContinuousClock.now - began) / 20
                var answers = 0
                for number in 0..<600 {
                    let sending = Task { try await transport.send(request).status }
                    try await Task.sleep(for: usual * Double(number % 60) / 40)
                    sending.cancel()
                    do { answers += try await sending.value > 0 ? 1 : 0 } catch { #expect(error is CancellationError) }
                }
                #expect(0 < answers && answers < 600, "\(answers)")
            }
        }

        @Test(.timeLimit(.minutes(5))) func aBadTokenNeedsTheApp() async throws {
            try await LiveServer.run(in: folder) { server in
                let engine = try engine(try device("one"), server.url, token: "nonsense")
                let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
                #expect(error?.code == .unauthenticated)
                #expect(error?.recovery == .needsApp)
            }
        }

        @Test(.timeLimit(.minutes(5))) func nobodyThereIsWaitedFor() async throws {
            let url = try await LiveServer.run(in: folder) { $0.url }
            let engine = try engine(try device("one"), url, token: "any")
            let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
            #expect(error?.code == .networkUnavailable)
            #expect(error?.recovery == .wait)
        }
    }
#endif
