import Foundation

/// A program that this process has started; of what is open here it has only what is handed over.
///
/// Not Foundation's `Process`: on Linux that one reads past a buffer where some thirteen hundred files are open, as
/// they are while hundreds of tests run.
package final class Spawned: Sendable {
    /// Why there is no answer of it.
    package struct Failed: Error, CustomStringConvertible {
        package let description: String
    }

    package let pid: Int32
    private let lock = NSLock()
    nonisolated(unsafe) private var ended: Int32?  // because it is only touched under `lock`

    /// - Parameters:
    ///   - command: the program's path, and its arguments.
    ///   - environment: its variables; this process's, if not given.
    ///   - input: what it reads; nothing, if not given.
    ///   - output: where it writes; nowhere, if not given.
    ///   - errors: where it writes errors; with the rest, if not given.
    package init(
        _ command: [String], environment: [String: String] = ProcessInfo.processInfo.environment, input: Int32? = nil,
        output: Int32? = nil, errors: Int32? = nil
    ) throws {
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
            var attributes: posix_spawnattr_t?
        #else
            var actions = posix_spawn_file_actions_t()
            var attributes = posix_spawnattr_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        guard null >= 0 else { throw Failed(description: "/dev/null cannot be opened") }
        defer { close(null) }
        posix_spawn_file_actions_adddup2(&actions, input ?? null, 0)
        posix_spawn_file_actions_adddup2(&actions, output ?? null, 1)
        posix_spawn_file_actions_adddup2(&actions, errors ?? output ?? null, 2)
        // Another descriptor, a pipe or a server's connection, would not end for its reader while the program runs.
        #if canImport(Darwin)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_CLOEXEC_DEFAULT))
        #else
            for descriptor in 3...Self.highestDescriptor() { posix_spawn_file_actions_addclose(&actions, descriptor) }
        #endif
        let words = command.map { strdup($0) } + [nil]
        let variables = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for text in words + variables { free(text) } }
        var pid: pid_t = 0
        let error = posix_spawn(&pid, command[0], &actions, &attributes, words, variables)
        guard error == 0 else {
            throw Failed(description: "\(command[0]) does not start: \(String(cString: strerror(error)))")
        }
        self.pid = pid
    }

    /// The highest that may be open when the program starts; others open files meanwhile.
    private static func highestDescriptor() -> Int32 {
        let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return (open.compactMap { Int32($0) }.max() ?? 1024) + 64
    }

    package var isRunning: Bool { exitCode == nil }

    /// How it ended: the exit code, or minus the signal; `nil` while it runs.
    package var exitCode: Int32? { lock.withLock { reaped() } }

    /// Under `lock`: its id is another program's as soon as it is reaped.
    private func reaped() -> Int32? {
        if ended == nil {
            var status: Int32 = 0
            let found = waitpid(pid, &status, WNOHANG)
            if found == pid {
                let signal = status & 0x7f
                ended = signal == 0 ? (status >> 8) & 0xff : -signal
            } else if found < 0, errno == ECHILD {
                // Where SIGCHLD is ignored the system reaps it, and says nothing of how it ended.
                ended = -1
            }
        }
        return ended
    }

    /// Waits for its end, and says whether that was a good one. Blocks the thread.
    @discardableResult
    package func wait() -> Bool {
        while true {
            if let exitCode { return exitCode == 0 }
            Thread.sleep(forTimeInterval: 0.002)
        }
    }

    /// Sends a signal, unless it has ended: then its id may be another program's.
    package func signal(_ number: Int32) {
        lock.withLock {
            if reaped() == nil { kill(pid, number) }
        }
    }

    // MARK: What a program says

    /// Runs a program to its end and returns what it says. Blocks the thread.
    package static func output(of command: [String]) throws -> String {
        // A file and no pipe: that one stays open for as long as some other program runs that was started meanwhile.
        let path = FileManager.default.temporaryDirectory.appending(path: "tidemark-said-\(UUID())").path
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failed(description: "\(path) cannot be made") }
        unlink(path)
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        let isGood = try Spawned(command, output: descriptor).wait()
        try file.seek(toOffset: 0)
        let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        guard isGood else { throw Failed(description: "\(command[0]): \(text)") }
        return text
    }
}
