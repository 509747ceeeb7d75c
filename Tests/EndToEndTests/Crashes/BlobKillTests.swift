#if Server
    import Foundation
    import NIOCore
    import Testing
    import TidemarkWire

    @testable import TidemarkCommand

    /// A real server that is killed while blobs come: what was kept goes on, and what is whole is right (A12).
    @Suite(.serialized, .timeLimit(.minutes(3))) struct BlobKillTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private func token() async throws -> String {
            let arguments = [
                "token", "--store", "sqlite:" + folder.path("sync.sqlite"), "--make-secret", "--sub", "ada", "--scope",
                "w=rw",
            ]
            let process = try ChildProcess(ServeTests.command, arguments)
            return await process.result().output.trimmingCharacters(in: .whitespacesAndNewlines)
        }

        @Test("Pieces that had come whole are there after a kill, and the rest completes the blob")
        func killedInMidBody() async throws {
            let blob = TestBlob(count: 3 * TestBlob.piece + 10)
            let token = try await token()
            let server = try await ServerProcess.start(folder.path("sync.sqlite"))
            let caller = Caller(url: server.url, token: token)
            let port = try #require(URL(string: server.url)?.port)
            let socket = try Socket(port: port)
            try await socket.write(
                "PUT \(blob.path()) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n"
                    + "Content-Length: \(blob.bytes.count)\r\n\r\n")
            #expect(try await socket.write(Array(blob.bytes.prefix(2 * TestBlob.piece + 1000))) == 0)
            let offset = "\(2 * TestBlob.piece)"
            try await poll { try await caller.head(blob).offset == offset }
            let again = try await server.restarted(folder.path("sync.sqlite"))
            #expect(try await caller.head(blob).offset == offset)
            #expect(try await caller.put(blob, 2 * TestBlob.piece..<blob.bytes.count).status == 201)
            #expect(try await caller.fetch(blob).bytes == blob.bytes)
            #expect(await again.stop() == 0)
        }

        /// Goes on with a blob until it is whole or the server does not answer.
        private func send(_ blob: TestBlob, to caller: Caller) async {
            while let head = try? await caller.head(blob), head.status == 404,
                let offset = head.offset.flatMap({ Int($0) })
            {
                let end = min(offset + TestBlob.piece, blob.bytes.count)
                guard let answer = try? await caller.put(blob, offset..<end), answer.status < 300 else { return }
            }
        }

        @Test("A server that is killed at any moment leaves no blob, or a whole one, and parts that go on")
        func killedAtAnyMoment() async throws {
            let blobs = (0..<4).map { TestBlob(count: 2 * TestBlob.piece + $0 * 1000, seed: $0) }
            let token = try await token()
            var server = try await ServerProcess.start(folder.path("sync.sqlite"))
            let caller = Caller(url: server.url, token: token, timeout: .seconds(5))
            for cycle in 0..<8 {
                async let sending: Void = withTaskGroup(of: Void.self) { tasks in
                    for blob in blobs { tasks.addTask { await send(blob, to: caller) } }
                }
                try await Task.sleep(for: .milliseconds(20 + cycle * 53 % 90))
                server = try await server.restarted(folder.path("sync.sqlite"))
                await sending
                for blob in blobs {
                    let head = try await caller.head(blob)
                    guard head.status == 200 else {
                        let offset = try #require(head.offset.flatMap { Int($0) })
                        #expect(offset % TestBlob.piece == 0)
                        continue
                    }
                    #expect(try await caller.fetch(blob).bytes == blob.bytes)
                }
            }
            for blob in blobs {
                await send(blob, to: caller)
                #expect(try await caller.fetch(blob).bytes == blob.bytes)
            }
            #expect(await server.stop() == 0)
        }
    }
#endif
