#if Server
    import Foundation
    import GRDB
    import Testing
    import Tidemark
    import TidemarkAsyncHTTPClient
    import TidemarkServer
    import TidemarkWire

    /// Attachments from one device to another, over the real server and both transports.
    @Suite(.serialized) struct AttachmentEndToEndTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private func withServer(_ body: @Sendable (String, String) async throws -> Void) async throws {
            let token = try await LiveServer.token()
            let entities: [EntityDeclaration] = [.state("note", attachments: ["photo"])]
            try await LiveServer.run(in: folder, entities: entities) { server in try await body(server.url, token) }
        }

        private func device(
            _ name: String, _ url: String, _ token: String, isSystems: Bool
        ) async throws
            -> (pool: DatabasePool, engine: SyncEngine)
        {
            let pool = try DatabasePool(path: folder.path(name))
            try await pool.write { try $0.execute(sql: "CREATE TABLE note (id TEXT PRIMARY KEY, photo TEXT)") }
            let root = try #require(URL(string: url))
            let transport: any Transport =
                isSystems ? HTTPTransport(root) { token } : AsyncHTTPClientTransport(root) { token }
            let engine = try SyncEngine(
                for: pool, tables: [.table("note", attachments: [.attachment("photo")])], scopes: ["w:1"],
                transport: transport,
                attachments: AttachmentConfiguration(folder: URL(filePath: folder.path("files-of-\(name)"))))
            return (pool, engine)
        }

        @Test(.timeLimit(.minutes(2)), arguments: [true, false]) func fromOneDeviceToAnother(
            isSystems: Bool
        ) async throws {
            try await withServer { url, token in
                let (ada, here) = try await device("ada-\(isSystems)", url, token, isSystems: isSystems)
                let (_, there) = try await device("bob-\(isSystems)", url, token, isSystems: isSystems)
                for (id, size) in [("empty", 0), ("small", 1000), ("large", 3_000_001)] {
                    let bytes = Data(
                        (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ size &+ (isSystems ? 1 : 0)) })
                    let photo = try await here.attachments.add(bytes)
                    try await ada.write { db in
                        try db.execute(
                            sql: "INSERT INTO note VALUES (?, ?)",
                            arguments: ["\(id)-\(isSystems)", photo.description])
                    }
                    try await here.syncNow()
                    try await there.syncNow()
                    try await here.attachments.transfer()
                    #expect(try await here.attachments.state(of: photo) == .uploaded)
                    let file = try await there.attachments.fetch(photo)
                    #expect(try Data(contentsOf: file) == bytes)
                }
            }
        }
    }
#endif
