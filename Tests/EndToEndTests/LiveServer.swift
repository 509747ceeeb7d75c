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
            _ body: @Sendable (LiveServer) async throws -> Result
        ) async throws -> Result {
            let store = try SQLiteStore(path: folder.path(name))
            let server = SyncServer(store: store, entities: entities, isStrict: isStrict, limits: limits)
            let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
            let app = try await ServerApplication(
                server: server, verifier: TokenVerifier(secret: secret), limits: serverLimits,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            ).application(address: .hostname("127.0.0.1", port: 0)) { continuation.yield($0) }
            let group = ServiceGroup(
                configuration: ServiceGroupConfiguration(
                    services: [app], logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
            let result = try await withThrowingTaskGroup(of: Void.self) { tasks in
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
            try store.close()
            return result
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
