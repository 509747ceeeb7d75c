#if Server
    import Foundation
    import GRDB
    import Testing
    import Tidemark
    import TidemarkAsyncHTTPClient
    import TidemarkServer
    import TidemarkWire

    @Suite("Declarations are kept in the file, and fetched where they have changed (F4)", .timeLimit(.minutes(5)))
    struct KeptDeclarationTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        /// A start of an app.
        private func sync(_ pool: DatabasePool, _ url: String, isSystems: Bool = false) async throws {
            let root = try #require(URL(string: url))
            let token = try await LiveServer.token()
            let transport: any Transport =
                isSystems ? HTTPTransport(root) { token } : AsyncHTTPClientTransport(root) { token }
            try await SyncEngine(for: pool, tables: [.table("task")], scopes: ["w"], transport: transport).syncNow()
        }

        @Test("A start asks whether the declarations are still those that the file keeps")
        func asked() async throws {
            let pool = try DatabasePool(path: folder.path("one"))
            try await pool.write { db in try db.execute(sql: "CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT)") }
            let entities = (0..<40).map { EntityDeclaration.state("table\($0)") }
            for (declared, statuses) in [(entities, [200, 304]), (entities + [.state("more")], [200, 304])] {
                try await LiveServer.run(in: folder, entities: declared) { server in
                    try await CachingProxy.run(before: server.url) { proxy, url in
                        for isSystems in [false, true] {
                            try await sync(pool, url, isSystems: isSystems)
                        }
                        #expect(proxy.requests(for: "/sync/declarations").map(\.status) == statuses)
                    }
                }
            }
            // One that cannot be read is fetched whole.
            try await pool.write { db in
                try db.execute(sql: "UPDATE tidemark_meta SET value = '{' WHERE key = 'declarations'")
            }
            try await LiveServer.run(in: folder, entities: entities) { server in
                try await CachingProxy.run(before: server.url) { proxy, url in
                    try await sync(pool, url)
                    #expect(proxy.requests(for: "/sync/declarations").map(\.status) == [200])
                }
            }
        }
    }
#endif
