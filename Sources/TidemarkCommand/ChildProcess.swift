#if Server
    import Foundation

    #if canImport(Glibc)
        import Glibc
    #endif

    /// A program that this one started, followed by its process id.
    ///
    /// Its output goes to files that have no name any more: nothing has to be read while it runs, and nobody else who
    /// is started meanwhile can hold a pipe open.
    actor ChildProcess {
        /// Where this very program stands, so that it can be started again.
        static var executable: URL {
            let link = "/proc/self/exe"
            if let path = try? FileManager.default.destinationOfSymbolicLink(atPath: link) {
                return URL(filePath: path)
            }
            return URL(filePath: CommandLine.arguments.first ?? "tidemark")
        }

        private static let pause = Duration.milliseconds(3)

        nonisolated let pid: pid_t
        private let output: Output
        private let errors: Output
        /// How it ended: the exit code, or minus the signal. Once known, the id may belong to somebody else.
        private var end: Int32?

        /// Starts a program. `environment` is all that it gets, beside `PATH`, `HOME` and `LD_LIBRARY_PATH`.
        init(_ executable: URL, _ arguments: [String], environment: [String: String] = [:]) throws {
            output = try Output()
            errors = try Output()
            let path = executable.path(percentEncoded: false)
            let kept = ["PATH", "HOME", "LD_LIBRARY_PATH"]
            let inherited = ProcessInfo.processInfo.environment.filter { kept.contains($0.key) }
            let all = inherited.merging(environment) { $1 }.map { "\($0.key)=\($0.value)" }
            pid = try Self.spawn(path, [path] + arguments, all, output.descriptor, errors.descriptor)
        }

        private static func spawn(
            _ path: String, _ arguments: [String], _ environment: [String], _ output: Int32, _ errors: Int32
        ) throws -> pid_t {
            #if canImport(Glibc)
                var actions = posix_spawn_file_actions_t()
            #else
                var actions: posix_spawn_file_actions_t?
            #endif
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
            posix_spawn_file_actions_adddup2(&actions, output, 1)
            posix_spawn_file_actions_adddup2(&actions, errors, 2)
            var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
            var settings: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
            defer { for word in words + settings { free(word) } }
            var pid: pid_t = 0
            let status = posix_spawn(&pid, path, &actions, nil, &words, &settings)
            guard status == 0 else { throw Failure("\(path) cannot be started: \(String(cString: strerror(status)))") }
            return pid
        }

        /// Everything that the program has written so far.
        nonisolated var standardOutput: String { output.text }
        nonisolated var standardError: String { errors.text }

        var isRunning: Bool {
            guard end == nil else { return false }
            var status: Int32 = 0
            guard waitpid(pid, &status, WNOHANG) != 0 else { return true }
            let signal = status & 0x7f
            end = signal == 0 ? (status >> 8) & 0xff : -signal
            return false
        }

        /// Sends a signal, unless the program has ended already.
        func signal(_ number: Int32) {
            if isRunning { _ = kill(pid, number) }
        }

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
            return end ?? -1
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
            // A program that is started gets only the descriptors that are handed over on purpose.
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
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
