#if Server
    import Foundation
    import Synchronization

    /// A program that this one started, followed by its process id.
    actor ChildProcess {
        /// Where this very program stands, so that it can be started again.
        static var executable: URL {
            let link = "/proc/self/exe"
            if let path = try? FileManager.default.destinationOfSymbolicLink(atPath: link) { return URL(filePath: path) }
            return URL(filePath: CommandLine.arguments.first ?? "tidemark")
        }

        private let process = Process()
        private let output = Output()
        private let errors = Output()
        private let exit: Task<Int32, Never>
        nonisolated let pid: Int32

        /// Starts a program. `environment` is all that it gets, beside `PATH` and `HOME`.
        init(_ executable: URL, _ arguments: [String], environment: [String: String] = [:]) throws {
            let inherited = ProcessInfo.processInfo.environment.filter { ["PATH", "HOME", "LD_LIBRARY_PATH"].contains($0.key) }
            process.executableURL = executable
            process.arguments = arguments
            process.environment = inherited.merging(environment) { $1 }
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = output.pipe()
            process.standardError = errors.pipe()
            let (exits, continuation) = AsyncStream.makeStream(of: Int32.self)
            process.terminationHandler = { process in
                let wasKilled = process.terminationReason == .uncaughtSignal
                continuation.yield(wasKilled ? -process.terminationStatus : process.terminationStatus)
                continuation.finish()
            }
            exit = Task {
                for await status in exits { return status }
                return -1
            }
            try process.run()
            pid = process.processIdentifier
        }

        /// Everything that the program has written so far.
        nonisolated var standardOutput: String { output.text }
        nonisolated var standardError: String { errors.text }

        /// Waits for a line that begins with `start`; `nil` once the program ended without one, or time is up.
        nonisolated func line(startingWith start: String, within limit: Duration = .seconds(30)) async throws -> String? {
            let deadline = ContinuousClock.now + limit
            while true {
                let isAtEnd = output.isAtEnd
                let lines = output.text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                if let line = lines.first(where: { $0.hasPrefix(start) }) { return String(line) }
                guard !isAtEnd, ContinuousClock.now < deadline else { return nil }
                try await Task.sleep(for: .milliseconds(5))
            }
        }

        /// Waits for the end, and gives the exit code with all that was written.
        nonisolated func result() async -> (status: Int32, output: String, errors: String) {
            let status = await wait()
            while !output.isAtEnd || !errors.isAtEnd { try? await Task.sleep(for: .milliseconds(2)) }
            return (status, output.text, errors.text)
        }

        /// Sends a signal, unless the program has ended already.
        func signal(_ number: Int32) {
            guard process.isRunning else { return }
            _ = kill(pid, number)
        }

        /// Waits for the end: the exit code, or minus the signal that ended it.
        nonisolated func wait() async -> Int32 { await exit.value }

        /// Ends the program at once and waits until it is gone.
        func end() async {
            signal(SIGKILL)
            _ = await wait()
        }
    }

    /// What a program writes, gathered as it comes.
    private final class Output: Sendable {
        private let state = Mutex<(bytes: [UInt8], isAtEnd: Bool)>(([], false))

        var text: String { state.withLock { String(decoding: $0.bytes, as: UTF8.self) } }
        var isAtEnd: Bool { state.withLock { $0.isAtEnd } }

        func pipe() -> Pipe {
            let pipe = Pipe()
            pipe.fileHandleForReading.readabilityHandler = { handle in
                let chunk = handle.availableData
                if chunk.isEmpty { handle.readabilityHandler = nil }
                self.state.withLock { state in
                    state.bytes += chunk
                    state.isAtEnd = chunk.isEmpty
                }
            }
            return pipe
        }
    }
#endif
