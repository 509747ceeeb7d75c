#if Server
    import Foundation
    import Testing

    @testable import TidemarkCommand

    /// The command as an operator meets it: real processes, their exit codes and their words.
    @Suite(.serialized) struct ServeTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        /// `tidemark` stands beside the tests.
        static var command: URL { ChildProcess.executable.deletingLastPathComponent().appending(path: "tidemark") }

        private func run(
            _ arguments: [String], environment: [String: String] = [:]
        ) async throws -> (status: Int32, output: String, errors: String) {
            try await ChildProcess(Self.command, arguments, environment: environment).result()
        }

        @Test(
            "A server that cannot start says why and what to do, without the store's password",
            arguments: [
                ([], "no store is named"), (["--store", "postgres:x"], "not a store"),
                (["--store", "postgres://ada:hush@127.0.0.1:1/x", "--listen", "0.0.0.0:0"], "a secret of its own"),
                (["--store", "postgres://ada:hush@127.0.0.1:1/x"], "no store in a file beside which"),
                (["--store", "sqlite:/nowhere/at/all/x.sqlite"], "does not exist"),
                (["--store", "sqlite:FOLDER/x", "--listen", "0.0.0.0:0"], "needs a secret of its own"),
                (["--store", "sqlite:FOLDER/x", "--listen", "nonsense"], "not an address"),
                (["--store", "sqlite:FOLDER/x", "--secret-file", "FOLDER/none"], "cannot be read"),
                (["--store", "sqlite:FOLDER/x", "--config", "FOLDER/none"], "cannot be read"),
                (["--store", "sqlite:FOLDER/x", "--log-level", "loud"], "not a log level"),
                (["--store", "sqlite:FOLDER/x", "--partitions", "4"], "a store in a file has no partitions"),
                (["--store", "sqlite:FOLDER/x", "--partitions", "many"], "not a number of partitions"),
            ])
        func refusals(arguments: [String], what: String) async throws {
            let path = folder.url.path(percentEncoded: false)
            let (status, output, errors) = try await run(
                ["serve"] + arguments.map { $0.replacing("FOLDER", with: path) })
            #expect(status == 1)
            #expect(output.isEmpty)
            #expect(errors.hasPrefix("error: ") && errors.contains(what) && errors.contains("\nhint: "), "\(errors)")
            #expect(!errors.contains("hush"))
        }

        @Test(
            "A secret that can be guessed is refused, and stands in no message",
            arguments: ["short", "changeme-changeme-changeme-changeme", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"])
        func weakSecrets(secret: String) async throws {
            for listen in ["127.0.0.1:0", "0.0.0.0:0"] {
                let (status, _, errors) = try await run(
                    ["serve", "--store", "sqlite:" + folder.path("x"), "--listen", listen],
                    environment: ["TIDEMARK_SECRET": secret])
                #expect(status == 1)
                #expect(!errors.contains(secret), "a secret never goes into a log")
            }
        }

        @Test("A call that is misspelled ends with 64, and one for help with 0")
        func usage() async throws {
            #expect(try await run(["serve", "--nonsense"]).status == 64)
            #expect(try await run(["--help"]).status == 0)
            #expect(try await run(["token", "--sub", "a", "--scope", "b"]).status == 64)
        }

        @Test func aGeneratedSecretIsTheOwnersAlone() async throws {
            let store = ["--store", "sqlite:" + folder.path("x")]
            let token = try await run(["token", "--sub", "ada", "--scope", "w=rw", "--make-secret"] + store)
            #expect(token.status == 0)
            let attributes = try FileManager.default.attributesOfItem(atPath: folder.path("x.secret"))
            #expect(attributes[.posixPermissions] as? Int == 0o600)

            let server = try await ServerProcess.start(folder.path("x"))
            let caller = Caller(url: server.url, token: token.output.trimmingCharacters(in: .whitespacesAndNewlines))
            #expect(try await caller.get("/sync/changes?scope=w").status == 200)
            #expect(try await caller.get("/sync/changes?scope=v").status == 403)
            #expect(await server.stop() == 0)
        }

        @Test("a mistyped store gets no secret, and so no token that no server takes")
        func aTokenMakesNoSecret() async throws {
            let mistyped = ["--store", "sqlite:" + folder.path("sinc.sqlite")]
            let token = try await run(["token", "--sub", "ada", "--scope", "w=rw"] + mistyped)
            #expect(token.status == 1 && token.output.isEmpty)
            #expect(token.errors.contains("no secret is kept beside") && token.errors.contains("--make-secret"))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).isEmpty)
            let server = try await ServerProcess.start(folder.path("sync.sqlite"))
            let right = ["--store", "sqlite:" + folder.path("sync.sqlite")]
            #expect(try await run(["token", "--sub", "ada", "--scope", "w=rw"] + right).status == 0)
            #expect(await server.stop() == 0)
        }

        @Test func aPortInUseIsSaid() async throws {
            let first = try await ServerProcess.start(folder.path("a"))
            let (status, _, errors) = try await run(
                ["serve", "--store", "sqlite:" + folder.path("b"), "--listen", String(first.url.dropFirst(7))])
            #expect(status == 1)
            #expect(errors.contains("cannot listen on"), "\(errors)")
            #expect(await first.stop() == 0)
        }
    }

    /// `tidemark serve` as a process of its own.
    struct ServerProcess: Sendable {
        let process: ChildProcess
        let url: String

        static func start(_ store: String, at address: String = "127.0.0.1:0") async throws -> ServerProcess {
            try await start(["--listen", address, "--store", "sqlite:\(store)"])
        }

        static func start(
            _ arguments: [String], environment: [String: String] = [:]
        ) async throws -> ServerProcess {
            let process = try ChildProcess(ServeTests.command, ["serve"] + arguments, environment: environment)
            let start = "listening on "
            guard let line = try await process.line(startingWith: start) else {
                await process.end()
                throw Failure("the server did not start: \(process.standardError)")
            }
            return ServerProcess(process: process, url: String(line.dropFirst(start.count)))
        }

        /// Kills the server, and starts it again over its store at the same address.
        func restarted(_ store: String) async throws -> ServerProcess {
            await process.end()
            return try await Self.start(store, at: String(url.dropFirst("http://".count)))
        }

        /// Asks the server to end, and gives its exit code.
        func stop() async -> Int32 {
            process.signal(SIGTERM)
            return await process.wait()
        }
    }
#endif
