#if Server
    import Foundation
    import GRDB
    import Synchronization
    import Testing
    import Tidemark
    import TidemarkAsyncHTTPClient
    import TidemarkHummingbird
    import TidemarkSQLite
    import TidemarkServer
    import TidemarkWire

    /// Devices that hear of each other's edits over real HTTP: no tick comes while a test runs.
    @Suite("Devices that are nudged (B3, E6)", .serialized, .timeLimit(.minutes(5)))
    struct NudgedDeviceTests {
        enum Way: Sendable, CaseIterable { case urlLoading, asyncHTTPClient }

        private final class Device: Sendable {
            let pool: DatabasePool
            let engine: SyncEngine
            private let running = Mutex<Task<Void, any Error>?>(nil)

            init(_ file: String, _ transport: any Transport, scopes: [Scope] = ["w:1"]) throws {
                pool = try DatabasePool(path: file)
                try pool.write { db in
                    try db.execute(sql: "CREATE TABLE IF NOT EXISTS note (id TEXT PRIMARY KEY, w TEXT, body TEXT)")
                }
                var configuration = SyncConfiguration()
                (configuration.tick, configuration.pollInterval) = (.seconds(3600), .seconds(3600))
                configuration.backoff = .init(
                    base: .milliseconds(50), maximum: .milliseconds(500), jitter: .milliseconds(10))
                let table = SyncedTable.table("note", scope: .column("w", prefix: "w:"))
                engine = try SyncEngine(
                    for: pool, tables: [table], scopes: scopes, transport: transport, configuration: configuration)
            }

            func run() { running.withLock { $0 = Task { [engine] in try await engine.run() } } }

            deinit { running.withLock { $0?.cancel() } }

            func write(_ id: String, in scope: String = "1") async throws {
                try await pool.write { db in
                    try db.execute(sql: "INSERT INTO note VALUES (?, ?, 'text')", arguments: [id, scope])
                }
            }

            func wait(for id: String) async throws {
                try await poll {
                    let count = try await self.pool.read { db in
                        try Int.fetchOne(db, sql: "SELECT count(*) FROM note WHERE id = ?", arguments: [id])
                    }
                    return count == 1
                }
            }

            func waitUntilListening() async throws {
                try await poll {
                    let status = try await self.engine.status()
                    return status.receivesNudges && status.activity == .idle
                }
            }
        }

        private static func transport(_ way: Way, _ url: String, _ token: String) throws -> any Transport {
            let root = try #require(URL(string: url))
            return switch way {
            case .urlLoading: HTTPTransport(root) { token }
            case .asyncHTTPClient: AsyncHTTPClientTransport(root) { token }
            }
        }

        @Test("An edit here is there at once, and one there here", arguments: Way.allCases)
        func nudged(way: Way) async throws {
            let folder = try TemporaryFolder()
            let token = try await LiveServer.token()
            try await LiveServer.run(in: folder) { live in
                let one = try Device(folder.path("one"), Self.transport(way, live.url, token))
                let two = try Device(folder.path("two"), Self.transport(way, live.url, token))
                for device in [one, two] { device.run() }
                for device in [one, two] { try await device.waitUntilListening() }
                for round in 0..<5 {
                    try await one.write("one\(round)")
                    try await two.wait(for: "one\(round)")
                    try await two.write("two\(round)")
                    try await one.wait(for: "two\(round)")
                }
            }
        }

        @Test("A scope that the token does not grant keeps nobody from hearing of the others", arguments: Way.allCases)
        func refused(way: Way) async throws {
            let folder = try TemporaryFolder()
            let (all, some) = (try await LiveServer.token(), try await LiveServer.token(scopes: ["w:1": .readWrite]))
            try await LiveServer.run(in: folder) { live in
                let one = try Device(folder.path("one"), Self.transport(way, live.url, all), scopes: ["w:1", "w:2"])
                let two = try Device(folder.path("two"), Self.transport(way, live.url, some), scopes: ["w:1", "w:2"])
                for device in [one, two] { device.run() }
                try await one.waitUntilListening()
                try await poll { try await two.engine.status().receivesNudges }
                try await one.write("one")
                try await two.wait(for: "one")
            }
        }

        @Test(
            "Behind a server that went away and came back, what was written meanwhile is heard of",
            arguments: Way.allCases)
        func restarted(way: Way) async throws {
            let folder = try TemporaryFolder()
            let token = try await LiveServer.token()
            let door = Door()
            let device = try Device(folder.path("one"), door)
            try await LiveServer.run(in: folder) { live in
                door.open(try Self.transport(way, live.url, token))
                device.run()
                try await device.waitUntilListening()
            }
            try await poll { try await !device.engine.status().receivesNudges }
            try await LiveServer.run(in: folder) { live in
                _ = try await live.server.commit(to: "w:1") {
                    $0.upsert("note", id: "meanwhile", ["w": "1", "body": "text"])
                }
                door.open(try Self.transport(way, live.url, token))
                try await device.wait(for: "meanwhile")
                try await device.waitUntilListening()
                _ = try await live.server.commit(to: "w:1") {
                    $0.upsert("note", id: "afterwards", ["w": "1", "body": "text"])
                }
                try await device.wait(for: "afterwards")
            }
        }

        /// A transport to whichever server there is at the time.
        private final class Door: StreamingTransport {
            private let inner = Mutex<(any Transport)?>(nil)

            func open(_ transport: any Transport) { inner.withLock { $0 = transport } }

            func send(_ request: TransportRequest) async throws -> TransportResponse {
                guard let transport = inner.withLock({ $0 }) else { throw URLError(.cannotConnectToHost) }
                return try await transport.send(request)
            }

            func follow(
                _ request: TransportRequest, receiving receive: @Sendable ([UInt8]) async throws -> Void
            ) async throws -> TransportResponse {
                guard let transport = inner.withLock({ $0 as? any StreamingTransport }) else {
                    throw URLError(.cannotConnectToHost)
                }
                return try await transport.follow(request, receiving: receive)
            }
        }
    }
#endif
