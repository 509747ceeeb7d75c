#if Server
    import Foundation
    import Testing
    import TidemarkWire

    @testable import TidemarkCommand

    /// A real server that finds no room for more bytes of a blob, and then some (A12).
    @Suite(.serialized, .timeLimit(.minutes(2))) struct BlobFullDiskTests {
        private static let prlimit = "/usr/bin/prlimit"
        static var hasLimits: Bool { FileManager.default.isExecutableFile(atPath: prlimit) }

        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        /// Starts `tidemark` so that it can write no file beyond so many bytes, as on a disk without more room.
        static func tidemark(room bytes: Int, _ words: [String]) throws -> ChildProcess {
            let command = ServeTests.command.path(percentEncoded: false)
            // The signal would end it; ignored, it leaves a write that failed.
            let shell = ["/bin/sh", "-c", #"trap '' XFSZ; exec "$0" "$@""#, command]
            return try ChildProcess(
                URL(filePath: prlimit), ["--fsize=\(bytes):"] + shell + words,
                environment: ["TIDEMARK_SECRET": String(decoding: LiveServer.secret, as: UTF8.self)])
        }

        private func start(room bytes: Int) async throws -> ServerProcess {
            let process = try Self.tidemark(
                room: bytes, ["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:" + folder.path("sync.sqlite")])
            let start = "listening on "
            guard let line = try await process.line(startingWith: start) else {
                await process.end()
                throw Failure("the server did not start: \(process.standardError)")
            }
            return ServerProcess(process: process, url: String(line.dropFirst(start.count)))
        }

        @Test(
            "An upload that finds no room is refused by its code, keeps its pieces, and goes on once there is some",
            .enabled(if: BlobFullDiskTests.hasLimits))
        func full() async throws {
            let blob = TestBlob(count: 12 * TestBlob.piece + 7)
            let kept = 8 * TestBlob.piece
            // Some of the next piece is written before the room ends.
            let server = try await start(room: kept + 1000)
            let caller = Caller(url: server.url, token: try await LiveServer.token())
            #expect(try await caller.put(blob, 0..<kept).status == 202)
            for _ in 0..<2 {
                let refused = try await caller.put(blob, kept..<kept + TestBlob.piece)
                #expect(refused.status == 503 && refused.code == .unavailable, "\(refused.status) \(refused.text)")
                #expect(try await caller.head(blob).offset == "\(kept)")
            }
            // What finds room is taken meanwhile.
            let small = TestBlob(count: 1000, seed: 2)
            #expect(try await caller.put(small).status == 201)
            #expect(try await caller.push([upsert("a", #""title":"x""#)]).status == 200)

            let raised = try await ChildProcess(
                URL(filePath: Self.prlimit), ["--pid", "\(server.process.pid)", "--fsize=\(1 << 30):"]
            ).result()
            #expect(raised.status == 0, "\(raised.errors)")
            #expect(try await caller.put(blob, kept..<blob.bytes.count).status == 201)
            for blob in [blob, small] { #expect(try await caller.fetch(blob).bytes == blob.bytes) }
            #expect(await server.stop() == 0)
        }
    }
#endif
