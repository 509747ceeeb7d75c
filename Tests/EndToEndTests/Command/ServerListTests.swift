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
            #expect(again.status == 1 && again.errors.contains(#""hint":"#), "\(again.errors)")
            #expect(try await rejected(["--retry", newest]).status != 0)
        }

        @Test("Nothing of an edit reaches the operator's terminal as an order or as a line of its own")
        func terminal() async throws {
            let store = try SQLiteStore(path: folder.path("sync.sqlite"))
            let body = #"""
                {"scope":"w","clientId":"device-aaaa","operations":[{"lane":"lane-aaaa","number":1,"type":"upsert",\#
                "entity":"task","id":"t\u202e","baseVersion":5,"fields":{"a\u009b":"\u001b]0;x\u0007\n9: task t"}}]}
                """#
            _ = try await SyncServer(store: store).exchange(Array(body.utf8), mode: .pushOnly) { _ in
                .readWrite(as: "ada\u{1b}[2J")
            }
            try store.close()
            let (_, output, _) = try await ChildProcess(
                ServeTests.command, ["rejected", "--store", "sqlite:" + folder.path("sync.sqlite")]
            ).result()
            #expect(output.contains("\\u001b[2J"), "\(output)")
            let orders = output.unicodeScalars.filter { $0 != "\n" && ($0.value < 0x20 || 0x7f...0x9f ~= $0.value) }
            #expect(orders.isEmpty && !output.contains("\u{202e}"))
            #expect(!output.contains("\n9: task"))
        }
    }
#endif
