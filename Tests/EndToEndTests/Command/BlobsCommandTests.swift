#if Server
    import Foundation
    import TidemarkSQLite
    import TidemarkServer
    import TidemarkWire
    import Testing

    @testable import TidemarkCommand

    /// `tidemark blobs` as an operator meets it (A12).
    @Suite(.serialized) struct BlobsCommandTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private func blobs(_ words: [String] = [], _ flags: [String] = []) async throws -> (Int32, String, String) {
            try await ChildProcess(
                ServeTests.command,
                ["blobs"] + words + [
                    "--store", "sqlite:" + folder.path("sync.sqlite"), "--config", folder.path("tidemark.yaml"),
                ] + flags
            ).result()
        }

        /// The file of a blob.
        private func file(of blob: TestBlob) throws -> URL {
            let all = FileManager.default.enumerator(
                at: folder.url.appending(path: "sync.sqlite-blobs"), includingPropertiesForKeys: nil)
            return try #require(
                all?.allObjects.compactMap { $0 as? URL }.first { $0.lastPathComponent == blob.hash })
        }

        @Test("Names without a blob, and blobs without a name, are counted")
        func counted() async throws {
            let blob = TestBlob(count: 1000)
            try "entities:\n  task: {attachments: [photo]}\n".write(
                toFile: folder.path("tidemark.yaml"), atomically: true, encoding: .utf8)
            try await LiveServer.run(in: folder, entities: [.state("task", attachments: ["photo"])]) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                for blob in [blob, TestBlob(count: 10)] { #expect(try await caller.put(blob).status == 201) }
                try await server.server.commit(to: "w") { changes in
                    changes.upsert("task", id: "a", ["photo": .text(blob.reference)])
                    changes.upsert("task", id: "b", ["photo": .text(TestBlob(count: 11).reference)])
                }
            }
            let (status, output, errors) = try await blobs()
            #expect(status == 3 && errors.isEmpty, "\(errors)")
            #expect(output.hasPrefix("2 blobs and 0 unfinished uploads in 1 scope, 1010 bytes\n1 name of"), "\(output)")
            let (_, json, _) = try await blobs([], ["--json", "--scope", "w"])
            let report = try JSONDecoder().decode(BlobsReport.self, from: Data(json.utf8))
            #expect((report.missing, report.unnamed, report.blobs) == (1, 1, 2))
        }

        @Test("A damaged blob is found, removed where that is asked for, and missing then")
        func rehashed() async throws {
            let (good, bad) = (TestBlob.large, TestBlob(count: 1000, seed: 2))
            try "entities:\n  task: {attachments: [photo]}\n".write(
                toFile: folder.path("tidemark.yaml"), atomically: true, encoding: .utf8)
            try await LiveServer.run(in: folder, entities: [.state("task", attachments: ["photo"])]) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                for blob in [good, bad] { #expect(try await caller.put(blob).status == 201) }
                try await server.server.commit(to: "w") { changes in
                    changes.upsert("task", id: "a", ["photo": .text(good.reference)])
                    changes.upsert("task", id: "b", ["photo": .text(bad.reference)])
                }
            }
            let (sound, text, none) = try await blobs(["verify"], ["--rehash"])
            #expect(sound == 0 && none.isEmpty && text.contains("2 blobs read"), "\(text)\(none)")
            var bytes = bad.bytes
            bytes[7] ^= 1
            try Data(bytes).write(to: try file(of: bad))
            #expect(try await blobs().0 == 0)
            let (damaged, list, _) = try await blobs(["verify"], ["--rehash"])
            #expect(damaged == 3 && list.contains("damaged: \(bad.hash) in scope w, differs\n"), "\(list)")
            let (removed, json, _) = try await blobs(["verify"], ["--rehash", "--remove-damaged", "--json"])
            let report = try JSONDecoder().decode(BlobsReport.self, from: Data(json.utf8))
            #expect(removed == 3 && report.missing == 1 && report.blobs == 1)
            #expect(report.rehash?.list.map(\.hash) == [bad.hash] && report.rehash?.removed == 1)
            let (usage, _, refusal) = try await blobs(["verify"], ["--remove-damaged"])
            #expect(usage == 64 && refusal.contains("--rehash"))
        }

        @Test("The blobs of a scope are listed by hash, page by page, with its unfinished uploads counted")
        func listed() async throws {
            let all = (1...3).map { TestBlob(count: 100 * $0, seed: $0) }.sorted { $0.hash < $1.hash }
            try await LiveServer.run(in: folder) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                for blob in all { #expect(try await caller.put(blob).status == 201) }
                #expect(try await caller.put(TestBlob.large, 0..<TestBlob.piece).status == 202)
            }
            func list(_ flags: [String]) async throws -> (status: Int32, output: String, errors: String) {
                let store = ["--store", "sqlite:" + folder.path("sync.sqlite")]
                return try await ChildProcess(ServeTests.command, ["blobs", "list"] + store + flags).result()
            }
            func page(_ flags: [String]) async throws -> BlobListReport {
                let decoder = JSONDecoder()
                decoder.dateDecodingStrategy = .iso8601
                let result = try await list(["--scope", "w", "--json"] + flags)
                #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
                return try decoder.decode(BlobListReport.self, from: Data(result.output.utf8))
            }
            let first = try await page(["--limit", "2"])
            #expect(first.blobs.map(\.hash) == all.prefix(2).map(\.hash) && first.next == all[1].hash)
            #expect(first.blobs.map(\.size) == all.prefix(2).map { Int64($0.bytes.count) })
            #expect((first.total, first.parts) == (3, 1))
            #expect(first.bytes == Int64(600 + TestBlob.large.bytes.count))
            let rest = try await page(["--limit", "2", "--after", all[1].hash])
            #expect(rest.blobs.map(\.hash) == [all[2].hash] && rest.next == nil)
            let text = try await list(["--scope", "w", "--limit", "2"]).output
            #expect(text.hasPrefix(all[0].hash + "  ") && text.contains("--after \(all[1].hash)\n3 blobs and 1 unfin"))
            #expect(try await page(["--limit", "3"]).next == nil)
            for wrong in [["--scope", "w", "--limit", "0"], ["--scope", "w", "--after", "x"], []] {
                #expect(try await list(wrong).status == 64)
            }
        }

        @Test("A file that declares no attachments is not enough")
        func undeclared() async throws {
            try "strict: true\n".write(toFile: folder.path("tidemark.yaml"), atomically: true, encoding: .utf8)
            let (status, _, errors) = try await blobs()
            #expect(status == 1 && errors.contains("attachments: [photo]"), "\(errors)")
        }
    }
#endif
