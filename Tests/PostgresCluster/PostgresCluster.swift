package import Foundation
import TidemarkSpawning

/// A PostgreSQL server of this process: made at its first use, on a socket in a folder of its own, and gone with the
/// process, however that ends.
package final class PostgresCluster: Sendable {
    /// One for all tests of the process, where nothing restarts it.
    package static let shared = Result { try PostgresCluster() }

    /// Why there is none.
    package struct Missing: Error, CustomStringConvertible {
        package let description: String

        package init(_ description: String) { self.description = description }
    }

    private let folder: URL
    private let keeper: Spawned
    private let input: Pipe
    private let bin: String
    private let port: Int

    /// - Parameters:
    ///   - isDurable: whether commits wait for the disk.
    ///   - tlsPort: where it listens at `localhost` too, for those alone who come over TLS.
    package init(isDurable: Bool = false, tlsPort: Int? = nil) throws {
        bin = try Self.binaries()
        port = tlsPort ?? 5432
        folder = URL(filePath: "/tmp").appending(path: "tidemark-pg-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        input = Pipe()
        var command = ["/bin/sh", "-c", Self.script, "sh", bin, folder.path]
        command.append("-c fsync=\(isDurable ? "on" : "off") -p \(port)")
        command.append(tlsPort == nil ? "" : "tls")
        if getuid() == 0 {
            // initdb refuses to work for root.
            let user = try Self.unprivilegedUser()
            _ = try Spawned.output(of: ["/bin/chown", user, folder.path])
            command = ["/usr/bin/setpriv", "--reuid=\(user)", "--regid=\(user)", "--init-groups"] + command
        }
        keeper = try Spawned(command, input: input.fileHandleForReading.fileDescriptor)
        // Its end of the pipe is its alone: it notices when this process is gone.
        try input.fileHandleForReading.close()
        try waitUntilReady()
    }

    deinit {
        guard keeper.isRunning else { return }
        try? input.fileHandleForWriting.close()
        // Whoever lets go of a server may be a task, and should not wait for its end.
        Thread { [keeper] in keeper.wait() }.start()
    }

    /// Where a database of the cluster is; the role may do everything and needs no password.
    package func url(database: String = "postgres", user: String = "tidemark") -> String {
        let path = folder.path.replacingOccurrences(of: "/", with: "%2F")
        return "postgres://\(user)@\(path):\(port)/\(database)"
    }

    /// Where it is for those who come over TLS.
    package func tlsURL(_ options: String) -> String { "postgres://tidemark@localhost:\(port)/postgres?\(options)" }

    /// What it shows that it is by; its own authority.
    package var certificate: String { folder.appending(path: "server.crt").path }

    /// Ends the server as a power cut would, and removes the folder.
    package func stop() {
        guard keeper.isRunning else { return }
        try? input.fileHandleForWriting.close()
        keeper.wait()
    }

    /// Stops the server with a mode of `pg_ctl`, and starts it again where that is wanted.
    package func restart(mode: String = "immediate", after pause: TimeInterval = 0) throws {
        try say("stop \(mode)")
        if pause > 0 { Thread.sleep(forTimeInterval: pause) }
        try say("start")
    }

    /// Stops the server with a mode of `pg_ctl`.
    package func halt(mode: String = "immediate") throws { try say("stop \(mode)") }

    /// Starts a server that was stopped.
    package func start() throws { try say("start") }

    /// Runs statements as the superuser and returns what psql prints, without frames.
    @discardableResult
    package func psql(_ sql: String) throws -> String {
        let command = [bin + "/psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", url(), "-c", sql]
        return try Spawned.output(of: command).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    // MARK: The keeper

    /// Keeps the server as long as its input is open, so that nothing is left of it when a test process crashes. It
    /// answers each command by a file. As many connections as all tests together could have: those that begin at the
    /// same time have 350 on two cores.
    private static let script = #"""
        bin="$1"; folder="$2"; options="$3"; tls="$4"
        cd "$folder" || exit 1
        start() {
            "$bin/pg_ctl" -D data -l log -w -o "-k $folder -c listen_addresses='${tls:+localhost}' $options" start
        }
        certify() {
            openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
                -addext subjectAltName=DNS:localhost -keyout server.key -out server.crt &&
            echo "ssl = on
            ssl_key_file = '$folder/server.key'
            ssl_cert_file = '$folder/server.crt'" >> data/postgresql.conf &&
            printf 'local all all trust\nhostssl all all localhost trust\n' >data/pg_hba.conf
        }
        trap '' INT TERM HUP
        {
            "$bin/initdb" -D data -U tidemark -A trust -E UTF8 --locale=C --no-sync &&
            echo "max_connections = 2000
            shared_buffers = 64MB
            max_wal_size = 2GB
            deadlock_timeout = 200ms" >> data/postgresql.conf && { [ -z "$tls" ] || certify; } && start
        } >setup 2>&1
        echo $? >answer.new; mv answer.new answer
        while read -r verb mode; do
            case "$verb" in
                stop) "$bin/pg_ctl" -D data -m "$mode" -w stop ;;
                start) start ;;
            esac >>setup 2>&1
            echo $? >answer.new; mv answer.new answer
        done
        "$bin/pg_ctl" -D data -m immediate -w stop >/dev/null 2>&1
        cd /; rm -rf "$folder"
        """#

    private func say(_ command: String) throws {
        try? FileManager.default.removeItem(at: folder.appending(path: "answer"))
        try input.fileHandleForWriting.write(contentsOf: Data((command + "\n").utf8))
        try waitUntilReady()
    }

    private func waitUntilReady() throws {
        let answer = folder.appending(path: "answer")
        for _ in 0..<1200 {
            if let text = try? String(contentsOf: answer, encoding: .utf8), !text.isEmpty {
                if text.hasPrefix("0") { return }
                break
            }
            guard keeper.isRunning else { break }
            Thread.sleep(forTimeInterval: 0.05)
        }
        let said = try? String(contentsOf: folder.appending(path: "setup"), encoding: .utf8)
        throw Missing("PostgreSQL does not start: \(said ?? "no word of it")")
    }

    // MARK: What is installed

    /// The newest version that is installed, whether its folder is on the path or not.
    private static func binaries() throws -> String {
        let files = FileManager.default
        var folders: [String] = []
        for root in ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"] {
            let names = (try? files.contentsOfDirectory(atPath: root)) ?? []
            folders += names.filter { Int($0) != nil || $0.hasPrefix("postgresql") }
                .sorted { $0.compare($1, options: .numeric) == .orderedDescending }
                .map { "\(root)/\($0)/bin" }
        }
        folders += (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        guard let folder = folders.first(where: { files.isExecutableFile(atPath: $0 + "/initdb") }) else {
            throw Missing("PostgreSQL is not installed: no initdb found; Scripts/setup installs it")
        }
        return folder
    }

    private static func unprivilegedUser() throws -> String {
        for user in ["postgres", "nobody"] where getpwnam(user) != nil { return user }
        throw Missing("there is no user whom PostgreSQL could run as")
    }
}

/// What blocks, away from the threads that tasks run on.
package func offPool<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread { continuation.resume(with: Swift.Result { try work() }) }.start()
    }
}
