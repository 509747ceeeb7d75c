#if canImport(Glibc)
    import Foundation
    import GRDB
    import Glibc
    import Tidemark
    #if Server
        import TidemarkAsyncHTTPClient
    #endif

    /// Measures attachments through a device's own code, against a server that is a process of its own, on loopback:
    /// `Benchmarks/blob-speed`. Exit code 1 where a target is missed or bytes do not arrive.
    struct BlobBench: Sendable {
        struct Options: Sendable {
            /// The size of the large file.
            var mebibytes = 1024
            /// How many small files there are.
            var count = 10_000
            /// How many files travel at once; `nil` for as many as with a device that is not configured.
            var parallelTransfers: Int?
            /// What is measured.
            var parts: Set<String> = ["large", "small", "beside"]
            /// Whether devices send with URL loading, as an app does that brings no other transport, and not with
            /// AsyncHTTPClient: on Linux that one takes less of the processor.
            var usesURLLoading = false

            init(_ words: [String]) throws {
                var words = words[...]
                while let name = words.popFirst() {
                    if name == "--url-loading" {
                        usesURLLoading = true
                        continue
                    }
                    if name == "--only", let part = words.popFirst(), parts.contains(part) {
                        parts = [part]
                        continue
                    }
                    guard let number = words.popFirst().flatMap({ Int($0) }), 1...1_000_000 ~= number else {
                        throw BlobBenchFailure(description: "\(name) needs a number")
                    }
                    switch name {
                    case "--size-mib": mebibytes = number
                    case "--count": count = number
                    case "--parallel": parallelTransfers = number
                    default:
                        throw BlobBenchFailure(
                            description: "\(name): there are --size-mib, --count, --parallel, --only and --url-loading")
                    }
                }
            }
        }

        let options: Options
        let folder: URL
        let serverPort: Int
        let serverPID: pid_t
        let token: String

        /// No run takes longer.
        private static let longest = Duration.seconds(600)

        static func run(_ words: [String]) async {
            do {
                let options = try Options(words)
                let isHeld = try await withThrowingTaskGroup(of: Bool.self) { group in
                    group.addTask { try await measure(options) }
                    group.addTask {
                        try await Task.sleep(for: longest)
                        throw BlobBenchFailure(description: "it takes longer than \(longest)")
                    }
                    defer { group.cancelAll() }
                    return try await group.next() ?? false
                }
                exit(isHeld ? 0 : 1)
            } catch {
                say("no figure: \(error)")
                exit(1)
            }
        }

        private static func measure(_ options: Options) async throws -> Bool {
            let name = "tidemark-blobs-\(UUID().uuidString)"
            let folder = FileManager.default.temporaryDirectory.appending(path: name)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let server = try BlobServer(in: folder)
            defer { server.end() }
            let bench = BlobBench(
                options: options, folder: folder, serverPort: server.port, serverPID: server.pid,
                token: try server.token(in: folder))
            var held: [Bool] = []
            if options.parts.contains("large") { held += try await bench.large() }
            if options.parts.contains("small") { held += try await bench.small() }
            if options.parts.contains("beside") { held += try await bench.beside() }
            return held.allSatisfy { $0 }
        }

        // MARK: Devices

        struct Device: Sendable {
            let pool: DatabasePool
            let engine: SyncEngine
            var attachments: Attachments { engine.attachments }

            /// Writes a row that names a file.
            func name(_ reference: String, id: String) async throws {
                try await pool.write { db in
                    try db.execute(sql: "INSERT INTO photo (id, image) VALUES (?, ?)", arguments: [id, reference])
                }
            }
        }

        /// - Parameter port: the server's, or that of a wire before it.
        func device(
            _ name: String, in scope: Scope, port: Int, download: SyncedTable.Attachment.Download = .onDemand
        ) throws -> Device {
            guard let url = URL(string: "http://127.0.0.1:\(port)") else {
                throw BlobBenchFailure(description: "no address of port \(port)")
            }
            let pool = try DatabasePool(path: folder.appending(path: "\(name).sqlite").path)
            try pool.write { db in
                try db.execute(sql: "CREATE TABLE photo (id TEXT PRIMARY KEY, title TEXT, image TEXT)")
            }
            var configuration = SyncConfiguration()
            configuration.receivesNudges = false
            // What is measured is what a cut costs in bytes; how long a device waits behind one is configured.
            configuration.backoff = SyncConfiguration.Backoff(
                base: .milliseconds(20), maximum: .seconds(1), jitter: .milliseconds(20))
            var files = AttachmentConfiguration(folder: folder.appending(path: "files-of-\(name)"))
            files.parallelTransfers = options.parallelTransfers ?? files.parallelTransfers
            let engine = try SyncEngine(
                for: pool, tables: [.table("photo", attachments: [.attachment("image", download: download)])],
                scopes: [scope], transport: transport(url), configuration: configuration,
                attachments: files)
            return Device(pool: pool, engine: engine)
        }

        private func transport(_ url: URL) -> any Transport {
            #if Server
                if !options.usesURLLoading { return AsyncHTTPClientTransport(url) { [token] in token } }
            #endif
            return HTTPTransport(url) { [token] in token }
        }

        /// Runs a device until its file stands as wanted, and returns the seconds.
        func run(_ device: Device, until reference: BlobReference, is wanted: AttachmentState) async throws -> Double {
            let running = Task { try await device.engine.run() }
            defer { running.cancel() }
            let taken = try await seconds {
                while true {
                    let state = try await device.attachments.state(of: reference)
                    if state == wanted { break }
                    if case .failed(let reason) = state { throw BlobBenchFailure(description: "failed: \(reason)") }
                    try await Task.sleep(for: .milliseconds(20))
                }
            }
            running.cancel()
            _ = await running.result
            return taken
        }

        /// A file like no other, that was never in memory as a whole.
        func file(_ name: String, mebibytes: Int) throws -> URL {
            let url = folder.appending(path: name)
            try Data().write(to: url)
            let file = try FileHandle(forWritingTo: url)
            defer { try? file.close() }
            var piece = (0..<(1 << 20)).map { (place: Int) in UInt8(truncatingIfNeeded: (place &* place &* 31) >> 7) }
            for index in 0..<mebibytes {
                let mark = Array("\(name) \(index) ".utf8)
                piece.replaceSubrange(0..<mark.count, with: mark)
                try file.write(contentsOf: Data(piece))
            }
            return url
        }

        // MARK: Lines

        /// Unlike `print`, at once, also where a program reads it.
        static func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

        /// Prints a figure with its target, and returns whether that is held.
        static func tell(_ name: String, _ value: Double, _ unit: String, atMost limit: Double) -> Bool {
            line(name, value, unit, "at most", limit, value <= limit)
        }

        static func tell(_ name: String, _ value: Double, _ unit: String, atLeast limit: Double) -> Bool {
            line(name, value, unit, "at least", limit, value >= limit)
        }

        private static func line(
            _ name: String, _ value: Double, _ unit: String, _ bound: String, _ limit: Double, _ isHeld: Bool
        ) -> Bool {
            let start = "  " + name.padding(toLength: 50, withPad: " ", startingAt: 0)
            let (figure, target) = (String(format: "%10.2f", value), String(format: "%g", limit))
            say("\(start) \(figure) \(unit); target \(bound) \(target): \(isHeld ? "held" : "MISSED")")
            return isHeld
        }
    }
#endif
