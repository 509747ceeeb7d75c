import Foundation

/// A program that this process has started. Not Foundation's `Process`: on Linux that one reads past a buffer where
/// some thirteen hundred files are open, as they are while hundreds of tests run.
package final class Spawned: Sendable {
    /// Why there is no answer of it.
    package struct Failed: Error, CustomStringConvertible {
        package let description: String
    }

    private let pid: pid_t
    private let lock = NSLock()
    nonisolated(unsafe) private var ended: Int32?  // because it is only touched under `lock`

    /// - Parameters:
    ///   - command: the program's path, and its arguments.
    ///   - input: what it reads; nothing, if not given.
    ///   - output: where it writes, errors too; nowhere, if not given.
    package init(_ command: [String], input: Int32? = nil, output: Int32? = nil) throws {
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
        defer { close(null) }
        posix_spawn_file_actions_adddup2(&actions, input ?? null, 0)
        posix_spawn_file_actions_adddup2(&actions, output ?? null, 1)
        posix_spawn_file_actions_adddup2(&actions, output ?? null, 2)
        // What else is open here, a pipe or a server's connection, would not end for its reader while the program runs.
        #if canImport(Darwin)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_CLOEXEC_DEFAULT))
        #else
            for descriptor in 3...Self.highestDescriptor() { posix_spawn_file_actions_addclose(&actions, descriptor) }
        #endif
        let environment = ProcessInfo.processInfo.environment.map { "\($0)=\($1)" }
        let (words, variables) = (command.map { strdup($0) } + [nil], environment.map { strdup($0) } + [nil])
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

    package var isRunning: Bool { status == nil }

    /// The status that it has ended with; `nil` while it runs.
    private var status: Int32? {
        lock.withLock {
            if ended == nil {
                var status: Int32 = 0
                if waitpid(pid, &status, WNOHANG) == pid { ended = status }
            }
            return ended
        }
    }

    /// Waits for its end, and says whether that was a good one. Blocks the thread.
    @discardableResult
    package func wait() -> Bool {
        while true {
            if let status { return status == 0 }
            Thread.sleep(forTimeInterval: 0.002)
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
