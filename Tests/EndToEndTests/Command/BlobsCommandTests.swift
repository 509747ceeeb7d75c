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

        private func blobs(_ flags: [String] = []) async throws -> (Int32, String, String) {
            try await ChildProcess(
                ServeTests.command,
                [
                    "blobs", "--store", "sqlite:" + folder.path("sync.sqlite"), "--config",
                    folder.path("tidemark.yaml"),
                ] + flags
            ).result()
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
            let (_, json, _) = try await blobs(["--json", "--scope", "w"])
            let report = try JSONDecoder().decode(BlobsReport.self, from: Data(json.utf8))
            #expect((report.missing, report.unnamed, report.blobs) == (1, 1, 2))
        }

        @Test("A file that declares no attachments is not enough")
        func undeclared() async throws {
            try "strict: true\n".write(toFile: folder.path("tidemark.yaml"), atomically: true, encoding: .utf8)
            let (status, _, errors) = try await blobs()
            #expect(status == 1 && errors.contains("attachments: [photo]"), "\(errors)")
        }
    }
#endif
