#if Server
    import Foundation
    import TidemarkSQLite
    import TidemarkServer
    import Testing

    @testable import TidemarkCommand

    /// A server's list of refused edits as its operator meets it.
    @Suite struct ServerListTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private func rejected(
            _ flags: [String]
        ) async throws -> (status: Int32, edits: [RefusedEdit], errors: String) {
            let (status, output, errors) = try await ChildProcess(
                ServeTests.command, ["rejected", "--store", "sqlite:" + folder.path("sync.sqlite"), "--json"] + flags
            ).result()
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            let edits = try? decoder.decode([RefusedEdit].self, from: Data(output.utf8))
            return (status, edits ?? [], errors)
        }

        @Test func theOperatorLetsARefusalGo() async throws {
            let store = try SQLiteStore(path: folder.path("sync.sqlite"))
            // Edits of records that the scope does not know.
            let operations = (1...2).map { number in
                #"""
                {"lane":"lane-aaaa","number":\#(number),"type":"upsert","entity":"task","id":"t\#(number)",\#
                "baseVersion":5,"fields":{}}
                """#
            }
            let body = #"{"scope":"w","clientId":"device-aaaa","operations":[\#(operations.joined(separator: ","))]}"#
            _ = try await SyncServer(store: store).exchange(Array(body.utf8), mode: .pushOnly) { _ in
                .readWrite(as: "ada")
            }
            try store.close()
            let listed = try await rejected([])
            #expect(listed.status == 3)
            #expect(listed.edits.map(\.record) == ["t2", "t1"])
            #expect(listed.edits.map(\.operation) == [2, 1])
            let newest = String(try #require(listed.edits.first).number)
            #expect(try await rejected(["--discard", newest]).edits.map(\.record) == ["t1"])
            let again = try await rejected(["--discard", newest])
            #expect(again.status == 1 && again.errors.contains("\nhint: "), "\(again.errors)")
            #expect(try await rejected(["--retry", newest]).status != 0)
        }
    }
#endif
