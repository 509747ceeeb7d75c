#if Server
    import AsyncHTTPClient
    import Foundation
    import GRDB
    import Hummingbird
    import Logging
    import NIOCore
    import NIOHTTP1
    import ServiceLifecycle
    import TidemarkHummingbird
    import TidemarkSQLite
    import TidemarkServer
    import TidemarkWire

    @testable import TidemarkCommand

    /// The server of `tidemark serve` on a free loopback port, in this process.
    struct LiveServer: Sendable {
        static let secret = Array("not a secret: only these tests sign with it".utf8)

        let url: String
        let port: Int
        let server: SyncServer

        /// Runs a server for as long as `body` runs, over a store in `folder`.
        static func run<Result: Sendable>(
            in folder: TemporaryFolder, store name: String = "sync.sqlite", entities: [EntityDeclaration] = [],
            isStrict: Bool = false, limits: Limits = Limits(), serverLimits: ServerLimits = ServerLimits(),
            configuration: SyncServer.Configuration = SyncServer.Configuration(),
            _ body: @Sendable (LiveServer) async throws -> Result
        ) async throws -> Result {
            let store = try SQLiteStore(path: folder.path(name))
            let server = SyncServer(
                store: store, entities: entities, isStrict: isStrict, limits: limits, configuration: configuration)
            let result = try await serve(server, limits: serverLimits, body)
            try store.close()
            return result
        }

        /// Runs a server over a store of any kind.
        static func serve<Result: Sendable>(
            _ server: SyncServer, limits: ServerLimits = ServerLimits(), paths: [EntityPath] = [],
            _ body: @Sendable (LiveServer) async throws -> Result
        ) async throws -> Result {
            let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
            let app = try await ServerApplication(
                server: server, verifier: TokenVerifier(secret: secret), limits: limits, paths: paths, logger: silent
            ).application(address: .hostname("127.0.0.1", port: 0)) { continuation.yield($0) }
            return try await run(app, of: server, on: ports, body)
        }

        private static var silent: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }

        /// Runs a server behind a router of one's own.
        static func serve<Result: Sendable>(
            _ server: SyncServer, router: Router<SyncRequestContext>, limits: ServerLimits = ServerLimits(),
            _ body: @Sendable (LiveServer) async throws -> Result
        ) async throws -> Result {
            let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
            let app = Application(
                router: router, server: limits.http1(),
                configuration: limits.configuration(address: .hostname("127.0.0.1", port: 0), logger: silent),
                services: [server],
                onServerRunning: { channel in continuation.yield(channel.localAddress?.port ?? 0) }, logger: silent)
            return try await run(app, of: server, on: ports, body)
        }

        private static func run<Result: Sendable>(
            _ app: some ApplicationProtocol, of server: SyncServer, on ports: AsyncStream<Int>,
            _ body: @Sendable (LiveServer) async throws -> Result
        ) async throws -> Result {
            let group = ServiceGroup(configuration: ServiceGroupConfiguration(services: [app], logger: silent))
            return try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask { try await group.run() }
                var iterator = ports.makeAsyncIterator()
                let port = await iterator.next() ?? 0
                let outcome: Swift.Result<Result, any Error>
                do {
                    let live = LiveServer(url: "http://127.0.0.1:\(port)", port: port, server: server)
                    outcome = .success(try await body(live))
                } catch { outcome = .failure(error) }
                await group.triggerGracefulShutdown()
                try await tasks.waitForAll()
                return try outcome.get()
            }
        }

        /// The server's own program writes a task that was not there.
        func commitTask(to scope: Scope) async throws {
            let id = RecordID(stringLiteral: UUID().uuidString)
            _ = try await server.commit(to: scope) { $0.upsert("task", id: id, ["n": 1]) }
        }

        /// A token that grants everything to `sub`, unless told otherwise.
        static func token(
            _ sub: String = "ada", scopes: [String: TokenClaims.Grant] = ["*": .readWrite], expiresIn: Double = 600,
            secret: [UInt8] = secret
        ) async throws -> String {
            try await TokenSigner(secret: secret).token(
                TokenClaims(subject: sub, expires: Date.now.addingTimeInterval(expiresIn), scopes: scopes))
        }
    }

    /// A folder that is gone when the test is.
    final class TemporaryFolder: Sendable {
        let url = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID().uuidString)")

        init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
        deinit { try? FileManager.default.removeItem(at: url) }

        func path(_ name: String) -> String { url.appending(path: name).path(percentEncoded: false) }

        /// A file that another process may hold at the same time.
        func database(_ name: String) throws -> DatabaseQueue {
            var configuration = GRDB.Configuration()
            configuration.busyMode = .timeout(10)
            return try DatabaseQueue(path: path(name), configuration: configuration)
        }
    }
#endif
