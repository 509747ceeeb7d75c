#if Server
    import Foundation
    import TidemarkSpawning

    /// A program that this one started, followed by its process id.
    ///
    /// Its output goes to files that have no name any more: nothing has to be read while it runs, and nobody else who
    /// is started meanwhile can hold a pipe open.
    final class ChildProcess: Sendable {
        /// Where this very program stands, so that it can be started again.
        static var executable: URL {
            let link = "/proc/self/exe"
            if let path = try? FileManager.default.destinationOfSymbolicLink(atPath: link) {
                return URL(filePath: path)
            }
            return URL(filePath: CommandLine.arguments.first ?? "tidemark")
        }

        private static let pause = Duration.milliseconds(3)

        private let program: Spawned
        private let output: Output
        private let errors: Output

        /// Starts a program. `environment` is all that it gets, beside `PATH`, `HOME` and `LD_LIBRARY_PATH`.
        init(_ executable: URL, _ arguments: [String], environment: [String: String] = [:]) throws {
            output = try Output()
            errors = try Output()
            let kept = ["PATH", "HOME", "LD_LIBRARY_PATH"]
            let inherited = ProcessInfo.processInfo.environment.filter { kept.contains($0.key) }
            program = try Spawned(
                [executable.path(percentEncoded: false)] + arguments,
                environment: inherited.merging(environment) { $1 }, output: output.descriptor, errors: errors.descriptor
            )
        }

        var pid: pid_t { program.pid }

        /// Everything that the program has written so far.
        var standardOutput: String { output.text }
        var standardError: String { errors.text }

        var isRunning: Bool { program.isRunning }

        /// Sends a signal, unless the program has ended already.
        func signal(_ number: Int32) { program.signal(number) }

        /// Waits for a line that begins with `start`; `nil` once the program ended without one, or time is up.
        func line(startingWith start: String, within limit: Duration = .seconds(30)) async throws -> String? {
            let deadline = ContinuousClock.now + limit
            while true {
                let wasRunning = isRunning
                let lines = output.text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
                if let line = lines.first(where: { $0.hasPrefix(start) }) { return String(line) }
                guard wasRunning, ContinuousClock.now < deadline else { return nil }
                try await Task.sleep(for: Self.pause)
            }
        }

        /// Waits for the end: the exit code, or minus the signal that ended it. A caller that is cancelled takes the
        /// program with it.
        func wait() async -> Int32 {
            while isRunning {
                do { try await Task.sleep(for: Self.pause) } catch {
                    signal(SIGKILL)
                    await Task.yield()
                }
            }
            return program.exitCode ?? -1
        }

        /// Waits for the end, and gives the exit code with all that was written.
        func result() async -> (status: Int32, output: String, errors: String) {
            let status = await wait()
            return (status, output.text, errors.text)
        }

        /// Ends the program at once and waits until it is gone.
        func end() async {
            signal(SIGKILL)
            _ = await wait()
        }
    }

    /// A file without a name that a program writes to.
    private final class Output: Sendable {
        let descriptor: Int32

        init() throws {
            let folder = FileManager.default.temporaryDirectory.path(percentEncoded: false)
            var template = Array("\(folder)/tidemark-output-XXXXXX".utf8CString)
            descriptor = mkstemp(&template)
            guard descriptor >= 0 else { throw Failure("no file can be made in \(folder)") }
            unlink(template)
            _ = fcntl(descriptor, F_SETFL, O_APPEND)
        }

        deinit { close(descriptor) }

        var text: String {
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 14)
            while true {
                let count = pread(descriptor, &buffer, buffer.count, off_t(bytes.count))
                guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
                bytes += buffer.prefix(count)
            }
        }
    }
#endif
