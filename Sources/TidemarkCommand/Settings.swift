#if Server
    import Configuration
    import Foundation

    /// Where a setting comes from, the first that has it: a flag, the environment (`TIDEMARK_…`), the YAML file.
    struct Settings {
        /// Everything that can be set, as it is written in the file, and how it is asked for in the environment.
        enum Key: String, CaseIterable {
            case listen, store, partitions, secretFile, logLevel, config

            var path: ConfigKey { ["tidemark", rawValue] }
        }

        let file: ServerFile
        private let reader: ConfigReader

        /// - Throws: ``Failure`` where the YAML file cannot be read or holds a mistake.
        init(
            flags: [Key: String?], environment: [String: String] = ProcessInfo.processInfo.environment
        ) throws {
            let above: [any ConfigProvider] = [
                Self.provider("flags", flags.compactMapValues { $0 }),
                EnvironmentVariablesProvider(
                    environmentVariables: environment, secretsSpecifier: .specific(["TIDEMARK_SECRET"])),
            ]
            let path = ConfigReader(providers: above).string(forKey: Key.config.path)
            file = try path.map { try ServerFile(path: $0) } ?? ServerFile()
            reader = ConfigReader(providers: above + [Self.provider("file", file.settings)])
        }

        subscript(key: Key) -> String? { reader.string(forKey: key.path) }

        /// The signing secret as the environment gives it; there is no flag and no line in the file for it.
        var secret: String? { reader.string(forKey: ["tidemark", "secret"], isSecret: true) }

        private static func provider(_ name: String, _ values: [Key: String]) -> InMemoryProvider {
            let pairs = values.map { key, value in
                (AbsoluteConfigKey(key.path), ConfigValue(.string(value), isSecret: false))
            }
            return InMemoryProvider(name: name, values: Dictionary(pairs) { first, _ in first })
        }
    }

    /// `127.0.0.1:8080`, `localhost:0`, `[::1]:8080`.
    struct ListenAddress: Hashable, CustomStringConvertible {
        static let standard = "127.0.0.1:8080"

        let host: String
        let port: Int

        init(_ text: String) throws(Failure) {
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count >= 2, let port = parts.last.flatMap({ UInt16($0) }) else { throw Self.malformed(text) }
            var host = parts.dropLast().joined(separator: ":")
            if host.hasPrefix("["), host.hasSuffix("]") {
                host = String(host.dropFirst().dropLast())
            } else if parts.count > 2 {
                throw Self.malformed(text)
            }
            guard !host.isEmpty else { throw Self.malformed(text) }
            self.host = host
            self.port = Int(port)
        }

        /// Whether only programs on this machine can connect.
        var isLoopback: Bool {
            if host == "localhost" || host == "::1" { return true }
            let parts = host.split(separator: ".", omittingEmptySubsequences: false)
            return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
        }

        var description: String { url(port: port) }

        func url(port: Int) -> String { host.contains(":") ? "http://[\(host)]:\(port)" : "http://\(host):\(port)" }

        private static func malformed(_ text: String) -> Failure {
            Failure(
                "'\(text)' is not an address to listen on",
                hint: "write HOST:PORT, for example 127.0.0.1:8080; port 0 takes a free one")
        }
    }
#endif
