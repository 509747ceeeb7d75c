#if Server
    import Foundation
    import NIOHTTP1
    import PostgresCluster
    import TidemarkHummingbird
    import TidemarkPostgres
    import TidemarkSQLite
    import TidemarkServer
    import TidemarkWire

    /// The stores that an operator may have.
    enum LiveStore: String, CaseIterable, Sendable { case sqlite, postgres }

    /// A server of other systems' clients, over real HTTP, on a clock that stands until it is moved.
    struct DialectServer: Sendable {
        let live: LiveServer
        let clock: Guarded<Int64>

        static let start: Int64 = 1_780_000_000_000

        static func run(
            _ kind: LiveStore, entities: [EntityDeclaration] = [], isStrict: Bool = false, paths: [EntityPath] = [],
            limits: Limits = Limits(), retention: Duration? = nil, sharedPageDelay: Duration? = nil,
            _ body: @Sendable (DialectServer) async throws -> Void
        ) async throws {
            let folder = try TemporaryFolder()
            let clock = Guarded(start)
            var configuration = SyncServer.Configuration()
            configuration.now = { Date(milliseconds: clock.withLock { $0 }) }
            configuration.retention = retention
            configuration.sharedPageDelay = sharedPageDelay
            if sharedPageDelay != nil {
                // Requests are counted by the same clock.
                configuration.uptime = { .milliseconds(clock.withLock { $0 }) }
            }
            let (store, close) = try await open(kind, in: folder)
            let server = SyncServer(
                store: store, entities: entities, isStrict: isStrict, limits: limits, configuration: configuration)
            try await LiveServer.serve(server, paths: paths) { live in
                try await body(DialectServer(live: live, clock: clock))
            }
            close()
            withExtendedLifetime(folder) {}
        }

        private static func open(
            _ kind: LiveStore, in folder: TemporaryFolder
        ) async throws -> (any ChangeStore, @Sendable () -> Void) {
            switch kind {
            case .sqlite:
                let store = try SQLiteStore(path: folder.path("sync.sqlite"))
                return (store, { try? store.close() })
            case .postgres:
                return try await offPool {
                    var configuration = PostgresStore.Configuration()
                    configuration.schema = "rest_" + UUID().uuidString.replacing("-", with: "").lowercased()
                    (configuration.writers, configuration.readers) = (2, 2)
                    let store = try PostgresStore(
                        url: try PostgresCluster.shared.get().url(), configuration: configuration)
                    return (store, { store.close() })
                }
            }
        }

        var server: SyncServer { live.server }

        /// Moves the clock on.
        func pass(_ milliseconds: Int64) { clock.withLock { $0 += milliseconds } }

        func caller(
            _ sub: String = "ada", scopes: [String: TokenClaims.Grant] = ["w": .readWrite], isService: Bool = false
        ) async throws -> PlainCaller {
            let claims = TokenClaims(
                subject: sub, expires: Date.now.addingTimeInterval(600), scopes: scopes, isService: isService)
            let token = try await TokenSigner(secret: LiveServer.secret).token(claims)
            return PlainCaller(caller: Caller(url: live.url, token: token))
        }
    }

    /// Somebody without a client library.
    struct PlainCaller: Sendable {
        let caller: Caller

        func get(_ path: String, _ headers: (String, String)...) async throws -> Answer {
            try await caller.send(.GET, path, nil, headers)
        }

        func put(_ path: String, _ body: String, _ headers: (String, String)...) async throws -> Answer {
            try await caller.send(.PUT, path, Array(body.utf8), headers + [("Content-Type", "application/json")])
        }

        func patch(_ path: String, _ body: String, _ headers: (String, String)...) async throws -> Answer {
            let type = ("Content-Type", "application/merge-patch+json")
            return try await caller.send(.PATCH, path, Array(body.utf8), headers + [type])
        }

        func delete(_ path: String, _ headers: (String, String)...) async throws -> Answer {
            try await caller.send(.DELETE, path, nil, headers)
        }

        func stamped(_ body: String, _ query: String = "") async throws -> Answer {
            try await caller.post("/sync/stamped" + query, body)
        }

        /// Whatever a list holds, page by page.
        func listAll(_ path: String, _ headers: (String, String)...) async throws -> [Answer] {
            var answers = [try await caller.send(.GET, path, nil, headers)]
            while let next = answers.last?.next, answers.count < 1000 {
                answers.append(try await caller.send(.GET, next, nil, headers))
            }
            return answers
        }
    }

    extension Answer {
        var tag: String { headers.first(name: "ETag") ?? "" }
        var stamp: Int64 { headers.first(name: "Tidemark-Stamp").flatMap { Int64($0) } ?? -1 }
        var deleted: [String]? {
            headers.first(name: "x-apiomat-delta-deleted").flatMap {
                try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String]
            }
        }
        var list: [[String: Any]] {
            (try? JSONSerialization.jsonObject(with: Data(bytes))) as? [[String: Any]] ?? []
        }
        var ids: [String] { list.map { $0["id"] as? String ?? "" } }
        var items: [[String: Any]] { member("items") as? [[String: Any]] ?? [] }
        /// The address behind `rel="next"`.
        var next: String? {
            headers.first(name: "Link").flatMap { $0.wholeMatch(of: /<([^>]*)>; rel="next"/) }.map { String($0.1) }
        }
    }
#endif
