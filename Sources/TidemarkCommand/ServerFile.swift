#if Server
    import Foundation
    import TidemarkHummingbird
    import TidemarkServer
    import Yams

    /// `tidemark.yaml` (its limits: Limits.md): what the operator declares. Every line is checked; a mistake stops the
    /// start.
    struct ServerFile {
        var isStrict = false
        /// How long deletions are kept at least, `nil`: for ever; and whether events go with them.
        var retention = SyncServer.Configuration().retention
        var expireEvents = false
        var forgetDevicesAfter: Duration?
        /// How long addresses of shared snapshot pages hold; `nil`: there are none.
        var sharedPageDelay: Duration?
        var entities: [EntityDeclaration] = []
        /// Entities as clients of other systems know them.
        var paths: [EntityPath] = []
        /// What is told of commits, at addresses of the operator's.
        var webhooks: [WebhookDeclaration] = []
        var limits = Limits()
        var serverLimits = ServerLimits()
        /// Settings that a flag or the environment may override.
        var settings: [Settings.Key: String] = [:]

        /// An absent file.
        init() {}

        init(path: String) throws {
            guard let data = FileManager.default.contents(atPath: path) else {
                throw Failure("the configuration file \(path) cannot be read", hint: "check the path")
            }
            guard let text = String(validating: data, as: UTF8.self) else {
                throw Failure("the configuration file \(path) is not UTF-8")
            }
            try self.init(text: text, path: path)
        }

        /// - Throws: ``Failure`` that begins with `path:line:column`.
        init(text: String, path: String) throws {
            guard let root = try Self.compose(text, path: path) else { return }
            let top = try CheckedNode(root, path: path, name: "the file").mapping(
                allowed: [
                    "strict", "retention", "expireEvents", "forgetDevicesAfter", "listen", "store", "partitions",
                    "secretFile", "logLevel", "limits", "entities", "paths", "snapshots",
                    "webhooks",
                ],
                explaining: [
                    "secret": "the secret comes from TIDEMARK_SECRET or from `secretFile`, never from this file"
                ])
            isStrict = try top["strict"]?.bool() ?? false
            if let node = top["retention"] { retention = try node.string() == "forever" ? nil : node.duration() }
            expireEvents = try top["expireEvents"]?.bool() ?? false
            forgetDevicesAfter = try top["forgetDevicesAfter"]?.duration()
            for key in [Settings.Key.listen, .store, .secretFile, .logLevel] {
                settings[key] = try top[key.rawValue]?.string()
            }
            settings[.partitions] = try top["partitions"].map {
                String(try $0.integer(in: StoreAddress.partitionRange))
            }
            if let node = top["listen"], let listen = settings[.listen] {
                do throws(Failure) { _ = try ListenAddress(listen) } catch {
                    throw node.failure(error.what, hint: error.hint)
                }
            }
            if let node = top["limits"] { try readLimits(node) }
            entities = try top["entities"].map { try EntityReader.entities($0) } ?? []
            paths = try top["paths"].map { try PathReader.paths($0) } ?? []
            webhooks = try top["webhooks"].map { try WebhookReader.webhooks($0) } ?? []
            sharedPageDelay = try top["snapshots"].flatMap { try Self.sharedPageDelay($0) }
        }

        var configuration: SyncServer.Configuration {
            var configuration = SyncServer.Configuration()
            configuration.sharedPageDelay = sharedPageDelay
            configuration.retention = retention
            configuration.expiresEvents = expireEvents
            if let forgetDevicesAfter { configuration.deviceRetention = forgetDevicesAfter }
            return configuration
        }

        private static func sharedPageDelay(_ node: CheckedNode) throws -> Duration? {
            guard let shared = try node.mapping(allowed: ["shared"])["shared"] else { return nil }
            guard let delay = try shared.mapping(allowed: ["delay"])["delay"] else {
                throw shared.failure("`shared` needs a `delay`", hint: "for example `shared: {delay: 5m}`")
            }
            let time = try delay.duration()
            guard .seconds(1) ... .seconds(3600) ~= time else {
                throw delay.failure("`delay` has to be from 1s to 1h")
            }
            return time
        }

        private static func compose(_ text: String, path: String) throws -> Node? {
            do {
                return try Yams.compose(yaml: text)
            } catch let error as YamlError {
                throw Self.failure(of: error, path: path)
            }
        }

        private static func failure(of error: YamlError, path: String) -> Failure {
            switch error {
            case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
                .composer(_, let problem, let mark, _):
                return Failure("\(path):\(mark.line):\(mark.column): \(problem)", hint: "correct the YAML there")
            case .duplicatedKeysInMapping(let names, let context):
                return Failure(
                    "\(path):\(context.mark.line):\(context.mark.column): `\(names.first ?? "")` is given twice",
                    hint: "keep one of them")
            case .reader(let problem, _, _, _): return Failure("\(path):1:1: \(problem)")
            case .no, .memory, .writer, .emitter, .representer, .dataCouldNotBeDecoded:
                return Failure("\(path):1:1: not a YAML document")
            }
        }

        private mutating func readLimits(_ node: CheckedNode) throws {
            let members = try node.mapping(allowed: [
                "page", "maximumPage", "operations", "bodyBytes", "recordBytes", "pageBytes", "connections",
                "unsentBytes", "firstRequestTimeout", "idleTimeout", "requestTimeout", "writeTimeout",
                "shutdownTimeout", "pushTime", "pushBytes", "pushLookups", "digestBytes", "bodiesBytes",
                "workBytes", "devices", "scopeRows", "scopeBytes", "windowBytes", "streams", "streamsPerPrincipal",
                "streamScopes", "socketBytes", "socketFrames", "socketPings", "requestsPerSecond", "scopesPerPrincipal",
                "deltaHeaderBytes", "keptPageBytes", "blobBytes", "scopeBlobBytes", "blobParts", "blobTransfers",
                "blobRate",
            ])
            let counts: [(String, WritableKeyPath<Limits, Int>, ClosedRange<Int>)] = [
                ("maximumPage", \.maximumPage, 1...100_000), ("page", \.defaultPage, 1...100_000),
                ("operations", \.operations, 1...100_000), ("bodyBytes", \.bodyBytes, 1024...1 << 30),
                ("recordBytes", \.recordBytes, 1024...1 << 28), ("pageBytes", \.pageBytes, 1024...1 << 30),
                ("pushBytes", \.pushBytes, 1...1 << 40), ("pushLookups", \.pushLookups, 1...1 << 40),
                ("digestBytes", \.digestBytes, 1...1 << 40), ("bodiesBytes", \.bodiesBytes, 1 << 20...1 << 40),
                ("workBytes", \.workBytes, 1 << 20...1 << 40), ("devices", \.devices, 1...1_000_000),
                ("streams", \.streams, 0...1_000_000), ("streamsPerPrincipal", \.streamsPerPrincipal, 0...1_000_000),
                ("streamScopes", \.streamScopes, 1...1000), ("scopeRows", \.scopeRows, 1...1 << 50),
                ("scopeBytes", \.scopeBytes, 1...1 << 50), ("windowBytes", \.windowBytes, 1...1 << 50),
                ("requestsPerSecond", \.requestsPerSecond, 0...1_000_000),
                ("scopesPerPrincipal", \.scopesPerPrincipal, 0...1_000_000_000),
                ("deltaHeaderBytes", \.deltaHeaderBytes, 64...12 << 10), ("blobBytes", \.blobBytes, 0...1 << 40),
                ("scopeBlobBytes", \.scopeBlobBytes, 0...1 << 50), ("blobParts", \.blobParts, 1...1_000_000),
                ("blobTransfers", \.blobTransfers, 1...100_000),
                ("keptPageBytes", \.keptPageBytes, 0...1 << 40),
            ]
            for (name, path, range) in counts {
                if let value = try members[name]?.integer(in: range) { limits[keyPath: path] = value }
            }
            let ofConnections: [(String, WritableKeyPath<ServerLimits, Int>, ClosedRange<Int>)] = [
                ("connections", \.connections, 1...1_000_000), ("unsentBytes", \.unsentBytes, 1024...1 << 40),
                ("socketBytes", \.socketBytes, 1024...1 << 24), ("socketFrames", \.socketFrames, 1...1_000_000),
                ("socketPings", \.socketPings, 1...1000), ("blobRate", \.blobRate, 1...1 << 30),
            ]
            for (name, path, range) in ofConnections {
                if let value = try members[name]?.integer(in: range) { serverLimits[keyPath: path] = value }
            }
            let times: [(String, WritableKeyPath<ServerLimits, Duration>)] = [
                ("firstRequestTimeout", \.firstRequestTimeout), ("idleTimeout", \.idleTimeout),
                ("requestTimeout", \.requestTimeout), ("writeTimeout", \.writeTimeout),
                ("shutdownTimeout", \.shutdownTimeout),
            ]
            for (name, path) in times {
                if let value = try members[name]?.duration() { serverLimits[keyPath: path] = value }
            }
            if let value = try members["pushTime"]?.duration() { limits.pushTime = value }
            serverLimits.drainedBytes = max(serverLimits.drainedBytes, limits.bodyBytes * 2)
            if limits.defaultPage > limits.maximumPage {
                throw (members["page"] ?? node).failure(
                    "the usual page of \(limits.defaultPage) is larger than the largest, \(limits.maximumPage)",
                    hint: "lower `page` or raise `maximumPage`")
            }
            if limits.recordBytes > limits.bodyBytes {
                throw (members["recordBytes"] ?? members["bodyBytes"] ?? node).failure(
                    "a record of \(limits.recordBytes) bytes does not fit into a request of \(limits.bodyBytes)",
                    hint: "lower `recordBytes` or raise `bodyBytes`")
            }
        }
    }
#endif
