#if canImport(Glibc)
    import Foundation
    import Glibc

    /// Why the measurement ends without a figure.
    struct BlobBenchFailure: Error, CustomStringConvertible { let description: String }

    /// The server, a process of its own, with limits under which the measurement fits.
    final class BlobServer {
        private let process: Process
        private let binary: URL
        private let environment: [String: String]
        let port: Int
        var pid: pid_t { process.processIdentifier }

        private static let settings = """
            entities: {photo: {attachments: [image]}}
            limits: {blobBytes: 8589934592, scopeBlobBytes: 68719476736, requestsPerSecond: 0}

            """
        private static let looks = 1500
        private static let pause: UInt32 = 20_000

        /// Starts it, and returns once it says where it listens.
        ///
        /// - Parameter folder: where its store is.
        init(in folder: URL) throws {
            guard let path = ProcessInfo.processInfo.environment["TIDEMARK_BIN"] else {
                throw BlobBenchFailure(description: "name the server's program in TIDEMARK_BIN")
            }
            let config = folder.appending(path: "tidemark.yaml")
            try Data(Self.settings.utf8).write(to: config)
            let secret = Data((0..<48).map { _ in UInt8.random(in: .min ... .max) }).base64EncodedString()
            let environment = ProcessInfo.processInfo.environment.merging(["TIDEMARK_SECRET": secret]) { $1 }
            let binary = URL(filePath: path)
            let said = folder.appending(path: "server.out")
            let store = "sqlite:" + folder.appending(path: "server.sqlite").path
            let process = try Self.start(
                binary, ["serve", "--listen", "127.0.0.1:0", "--store", store, "--config", config.path], environment,
                output: said)
            var port: Int?
            for _ in 0..<Self.looks where port == nil && process.isRunning {
                usleep(Self.pause)
                port = try Self.port(in: said)
            }
            guard let port else {
                Self.end(process)
                throw BlobBenchFailure(description: "the server did not start")
            }
            (self.process, self.binary, self.environment, self.port) = (process, binary, environment, port)
        }

        /// A token that may write everywhere.
        func token(in folder: URL) throws -> String {
            let said = folder.appending(path: "token.out")
            let arguments = ["token", "--sub", "ada", "--scope", "*=rw", "--ttl", "2h"]
            let maker = try Self.start(binary, arguments, environment, output: said)
            for _ in 0..<Self.looks where maker.isRunning { usleep(Self.pause) }
            Self.end(maker)
            let text = try String(contentsOf: said, encoding: .utf8)
            let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
            guard !token.isEmpty else { throw BlobBenchFailure(description: "there is no token") }
            return token
        }

        func end() { Self.end(process) }

        private static func start(
            _ binary: URL, _ arguments: [String], _ environment: [String: String], output: URL
        ) throws -> Process {
            try Data().write(to: output)
            let process = Process()
            process.executableURL = binary
            process.arguments = arguments
            process.environment = environment
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = try FileHandle(forWritingTo: output)
            try process.run()
            return process
        }

        private static func end(_ process: Process) {
            guard process.isRunning else { return }
            process.terminate()
            for _ in 0..<looks where process.isRunning { usleep(pause) }
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        }

        /// The port in the line `listening on http://127.0.0.1:PORT`, once it is whole.
        private static func port(in said: URL) throws -> Int? {
            let text = try String(contentsOf: said, encoding: .utf8)
            guard text.hasPrefix("listening on "), let line = text.split(separator: "\n").first,
                text.contains("\n")
            else { return nil }
            return line.split(separator: ":").last.flatMap { Int($0) }
        }
    }
#endif
