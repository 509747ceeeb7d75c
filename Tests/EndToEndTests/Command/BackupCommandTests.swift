#if Server
    import Foundation
    import GRDB
    import Testing
    import Tidemark
    import TidemarkAsyncHTTPClient
    import TidemarkSQLite
    import TidemarkServer
    import TidemarkWire

    @testable import TidemarkCommand

    /// `tidemark backup` of a server that is at work, and a server on the copy (A12).
    @Suite(.serialized, .timeLimit(.minutes(3))) struct BackupCommandTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private func run(_ words: [String]) async throws -> (status: Int32, output: String, errors: String) {
            try await ChildProcess(ServeTests.command, words).result()
        }

        private var secret: [String: String] { ["TIDEMARK_SECRET": String(decoding: LiveServer.secret, as: UTF8.self)] }

        private func serve(_ store: String, at address: String = "127.0.0.1:0") async throws -> ServerProcess {
            try await ServerProcess.start(
                ["--listen", address, "--store", "sqlite:" + store, "--config", folder.path("tidemark.yaml")],
                environment: secret)
        }

        private func device(
            _ name: String, _ url: String, _ token: String
        ) async throws -> (pool: DatabasePool, engine: SyncEngine) {
            let pool = try DatabasePool(path: folder.path(name))
            try await pool.write {
                try $0.execute(sql: "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, photo TEXT)")
            }
            let root = try #require(URL(string: url))
            let engine = try SyncEngine(
                for: pool, tables: [.table("note", attachments: [.attachment("photo")])], scopes: ["w"],
                transport: AsyncHTTPClientTransport(root) { token },
                attachments: AttachmentConfiguration(folder: URL(filePath: folder.path("files-of-\(name)"))))
            return (pool, engine)
        }

        private func title(_ pool: DatabasePool, _ id: String) async throws -> String? {
            try await pool.read { db in
                try String.fetchOne(db, sql: "SELECT title FROM note WHERE id = ?", arguments: [id])
            }
        }

        /// Uploads one blob after the other until it is over.
        private static func upload(
            to url: String, _ token: String, _ begun: AsyncStream<Void>.Continuation, until isOver: Guarded<Bool>
        ) async throws {
            let caller = Caller(url: url, token: token)
            var seed = 100
            while !isOver.withLock({ $0 }) {
                let blob = TestBlob(count: TestBlob.piece + seed, seed: seed)
                if try await caller.put(blob).status == 201 { begun.yield() }
                seed += 1
            }
        }

        @Test("A server on the copy has every blob that it has a row of, and a device that knows more keeps its edits")
        func restored() async throws {
            try "entities:\n  note: {attachments: [photo]}\n".write(
                toFile: folder.path("tidemark.yaml"), atomically: true, encoding: .utf8)
            let token = try await LiveServer.token()
            let server = try await serve(folder.path("sync.sqlite"))
            let url = server.url
            let (pool, ada) = try await device("ada", url, token)
            var photos: [BlobReference] = []
            for number in 1...3 {
                let photo = try await ada.attachments.add(Data(TestBlob(count: 400_000, seed: number).bytes))
                photos.append(photo)
                try await pool.write { db in
                    try db.execute(
                        sql: "INSERT INTO note VALUES (?, 'before', ?)", arguments: ["n\(number)", photo.description])
                }
            }
            try await ada.syncNow()
            try await ada.attachments.transfer()

            let (begun, begin) = AsyncStream.makeStream(of: Void.self)
            let isOver = Guarded(false)
            defer { isOver.withLock { $0 = true } }
            let uploads = Task { try await Self.upload(to: url, token, begin, until: isOver) }
            _ = await begun.first { _ in true }
            let copy = folder.path("copy")
            let words = ["backup", copy, "--store", "sqlite:" + folder.path("sync.sqlite")]
            let made = try await run(words + ["--json"])
            #expect(made.status == 0, "\(made.errors)")
            let report = try JSONDecoder().decode(BackupReport.self, from: Data(made.output.utf8))
            #expect(report.blobs >= 4 && report.missing == 0)
            isOver.withLock { $0 = true }
            try await uploads.value
            let again = try await run(words)
            #expect(again.status == 1 && again.errors.contains("is there already"), "\(again.errors)")

            // What the copy does not know.
            try await pool.write { db in
                try db.execute(sql: "UPDATE note SET title = 'after' WHERE id = 'n1'")
                try db.execute(sql: "INSERT INTO note VALUES ('n4', 'after', NULL)")
            }
            try await ada.syncNow()
            await server.process.end()
            let other = try await serve(copy + "/sync.sqlite", at: String(url.dropFirst("http://".count)))
            let store = ["--store", "sqlite:" + copy + "/sync.sqlite", "--config", folder.path("tidemark.yaml")]
            let verified = try await run(["blobs", "verify", "--rehash"] + store)
            #expect(verified.status == 0, "\(verified.output)\(verified.errors)")
            #expect(verified.output.hasPrefix("\(report.blobs) blobs and 0 unfinished uploads"), "\(verified.output)")

            // The first one may come by a connection of the server that is gone.
            _ = try? await ada.syncNow()
            for _ in 0..<2 { try await ada.syncNow() }
            let (theirs, bob) = try await device("bob", url, token)
            try await bob.syncNow()
            for id in ["n1", "n4"] { #expect(try await title(theirs, id) == "after") }
            #expect(try await title(theirs, "n2") == "before")
            for photo in photos {
                let fetched = try Data(contentsOf: try await bob.attachments.fetch(photo))
                let kept = try #require(try ada.attachments.data(for: photo))
                #expect(fetched == kept)
            }
            #expect(await other.stop() == 0)
        }

        @Test("The WAL is left to the server that writes to it, which would wait while it is folded in")
        func wal() async throws {
            let store = try SQLiteStore(path: folder.path("sync.sqlite"))
            defer { try? store.close() }
            let server = SyncServer(store: store, entities: [.state("task")])
            try await server.commit(to: "w") { $0.upsert("task", id: "a", ["text": "one"]) }
            let wal = URL(filePath: folder.path("sync.sqlite-wal"))
            let before = try Data(contentsOf: wal).count
            let made = try await run(["backup", folder.path("copy"), "--store", "sqlite:" + folder.path("sync.sqlite")])
            #expect(made.status == 0, "\(made.errors)")
            let after = try Data(contentsOf: wal).count
            #expect(before > 0 && after >= before)
        }

        @Test(
            "A copy that finds no room leaves nothing behind, and is made once there is some",
            .enabled(if: BlobFullDiskTests.hasLimits))
        func full() async throws {
            try await LiveServer.run(in: folder) { server in
                let text = String(repeating: "x", count: 200_000)
                for id in ["a", "b", "c"] {
                    try await server.server.commit(to: "w") {
                        $0.upsert("task", id: .init(stringLiteral: id), ["text": .text(text)])
                    }
                }
            }
            let words = ["backup", folder.path("copy"), "--store", "sqlite:" + folder.path("sync.sqlite")]
            let refused = try await BlobFullDiskTests.tidemark(room: 200_000, words).result()
            #expect(refused.status == 1 && refused.errors.hasPrefix("error: "), "\(refused.status) \(refused.errors)")
            let left = try FileManager.default.contentsOfDirectory(
                atPath: folder.url.path(percentEncoded: false))
            #expect(left.filter { $0.hasPrefix("copy") } == [])
            #expect(try await run(words).status == 0)
        }

        @Test("A store in PostgreSQL, or none, is said to be so")
        func refused() async throws {
            let remote = try await run(["backup", folder.path("copy"), "--store", "postgres://ada@127.0.0.1:1/x"])
            #expect(remote.status == 1 && remote.errors.contains("pg_dump"), "\(remote.errors)")
            let none = try await run(["backup", folder.path("copy"), "--store", "sqlite:" + folder.path("none.sqlite")])
            #expect(none.status == 1 && none.errors.contains("does not exist"), "\(none.errors)")
            #expect(try await run(["backup"]).status == 64)
        }
    }
#endif
