#if Server
    import Foundation
    import PostgresCluster
    import TidemarkSpawning
    import TidemarkHummingbird
    import Testing

    /// The page of other systems' wires: its commands run as they stand there, against the command's own server.
    @Suite(.serialized) struct DialectDocumentTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        /// A fenced block, and the comment that stands before it.
        struct Block: Equatable {
            var name: String
            var text: String

            static func all(in page: String) -> [Block] {
                page.matches(of: /<!-- ([a-z ]+) -->\n```[a-z]*\n((?:(?!```)[^\n]*\n)*)```/)
                    .map { Block(name: String($0.1), text: String($0.2)) }
            }
        }

        /// The first line of an answer that an output does not have in its place; `…` stands for a part of a line.
        static func missing(of answers: String, in output: String) -> String? {
            var rest = output.replacing("\r\n", with: "\n")[...]
            for line in answers.split(separator: "\n") {
                for (index, piece) in line.split(separator: "…").enumerated() {
                    guard let place = rest.range(of: piece), index == 0 || !rest[..<place.lowerBound].contains("\n")
                    else { return String(line) }
                    rest = rest[place.upperBound...]
                }
            }
            return nil
        }

        private static func page() throws -> String {
            let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent()
            return try String(contentsOf: root.appending(path: "Documentation/Dialects.md"), encoding: .utf8)
        }

        @Test(.timeLimit(.minutes(2)), arguments: LiveStore.allCases)
        func itsCommandsAnswerAsItSays(kind: LiveStore) async throws {
            let blocks = Block.all(in: try Self.page())
            let configuration = try #require(blocks.first { $0.name == "configuration" })
            try configuration.text.write(toFile: folder.path("tidemark.yaml"), atomically: true, encoding: .utf8)
            try String(decoding: LiveServer.secret, as: UTF8.self)
                .write(toFile: folder.path("key"), atomically: true, encoding: .utf8)
            let cluster = kind == .postgres ? try await offPool { try PostgresCluster() } : nil
            let server = try await ServerProcess.start(
                [
                    "--listen", "127.0.0.1:0", "--config", folder.path("tidemark.yaml"), "--secret-file",
                    folder.path("key"),
                ],
                environment: ["TIDEMARK_STORE": cluster?.url() ?? "sqlite:" + folder.path("sync.sqlite")])
            let token = try await LiveServer.token(scopes: ["user:ada": .readWrite])
            var runs = 0
            for (block, answers) in zip(blocks, blocks.dropFirst()) where block.name == "run" {
                #expect(answers.name == "answers")
                let script = "export TIDEMARK=\(server.url) TOKEN=\(token)\n" + block.text
                let output = try await offPool { try Spawned.output(of: ["/bin/sh", "-c", script]) }
                #expect(Self.missing(of: answers.text, in: output) == nil, "\(output)")
                runs += 1
            }
            #expect(runs >= 5)
            #expect(await server.stop() == 0)
        }

        @Test func anAnswerThatIsNotThereIsNoticed() {
            let page = "<!-- run -->\n```sh\na\nb\n```\n\n<!-- answers -->\n```\n{\"a\":…}\n```\n"
            #expect(
                Block.all(in: page) == [
                    Block(name: "run", text: "a\nb\n"), Block(name: "answers", text: "{\"a\":…}\n"),
                ])
            #expect(Self.missing(of: "HTTP 200\n{\"a\":…}", in: "HTTP 200\r\nX: 1\r\n\r\n{\"a\":5}") == nil)
            #expect(Self.missing(of: "{\"a\":…}\nHTTP 200", in: "HTTP 200\n{\"a\":5}") == "HTTP 200")
            #expect(Self.missing(of: "{\"a\":…}", in: "{\"a\":5\n}") == "{\"a\":…}")
            #expect(Self.missing(of: "{\"b\":1}", in: "{\"a\":5}") == "{\"b\":1}")
        }
    }
#endif
