#if Server
    import Foundation
    import GRDB

    /// The demo's server: a process that can be stopped, put back to an older copy of its store, and started again at
    /// the same address.
    actor DemoServer {
        nonisolated let url: String
        nonisolated let store: String
        private let folder: URL
        private var process: ChildProcess

        /// Starts a server over a store in `folder`, and waits until it listens.
        init(in folder: URL) async throws {
            self.folder = folder
            store = "sqlite:" + DemoWorld.path(folder, Self.file)
            let declared = "entities: {photo: {attachments: [image]}}\n"
            try Data(declared.utf8).write(to: folder.appending(path: Self.settings))
            (process, url) = try await Self.start(store, at: "127.0.0.1:0", in: folder)
        }

        private static let file = "server.sqlite"
        private static let copy = "server-copy.sqlite"
        private static let settings = "tidemark.yaml"

        private static func start(
            _ store: String, at address: String, in folder: URL
        ) async throws -> (ChildProcess, url: String) {
            let process = try ChildProcess(
                ChildProcess.executable,
                ["serve", "--listen", address, "--store", store, "--config", DemoWorld.path(folder, settings)])
            let start = "listening on "
            do {
                guard let line = try await process.line(startingWith: start) else {
                    throw Failure("the server did not start", hint: process.standardError)
                }
                return (process, String(line.dropFirst(start.count)))
            } catch {
                await process.end()
                throw error
            }
        }

        /// Copies the store while the server runs, as a nightly backup would.
        nonisolated func copyStore() throws {
            let source = try DatabaseQueue(path: DemoWorld.path(folder, Self.file))
            let target = try DatabaseQueue(path: DemoWorld.path(folder, Self.copy))
            try source.backup(to: target)
            try target.close()
            try source.close()
        }

        /// Kills the server, puts the copy in the place of its store, and starts it again.
        func loseEverythingSinceTheCopy() async throws {
            await process.end()
            let files = FileManager.default
            let path = DemoWorld.path(folder, Self.file)
            for suffix in ["", "-wal", "-shm"] where files.fileExists(atPath: path + suffix) {
                try files.removeItem(atPath: path + suffix)
            }
            try files.moveItem(atPath: DemoWorld.path(folder, Self.copy), toPath: path)
            let address = url.split(separator: "/").last.map(String.init) ?? "127.0.0.1:0"
            (process, _) = try await Self.start(store, at: address, in: folder)
        }

        /// Asks the server to end, and waits. Returns its exit code.
        func stop() async -> Int32 {
            process.signal(SIGTERM)
            return await process.wait()
        }

        /// Ends it at once.
        func end() async { await process.end() }
    }
#endif
