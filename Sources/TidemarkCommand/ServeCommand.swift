#if Server
    import ArgumentParser
    import Foundation
    import Hummingbird
    import Logging
    import ServiceLifecycle
    import TidemarkHummingbird
    import TidemarkServer
    import UnixSignals

    /// Options that say where the store and the secret are, for every command that needs the secret.
    struct SecretOptions: ParsableArguments {
        @Option(help: ArgumentHelp(StoreAddress.help, valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Declarations and settings, as YAML.", valueName: "file"), completion: .file())
        var config: String?

        @Option(
            help: ArgumentHelp("A file with the signing secret, at least 32 bytes.", valueName: "file"),
            completion: .file())
        var secretFile: String?

        var flags: [Settings.Key: String?] { [.store: store, .config: config, .secretFile: secretFile] }
    }

    struct ServeCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "serve",
            abstract: "Run the sync server.",
            discussion: """
                Settings come from flags, then from the environment (TIDEMARK_LISTEN, TIDEMARK_STORE,
                TIDEMARK_PARTITIONS, TIDEMARK_SECRET_FILE, TIDEMARK_CONFIG, TIDEMARK_LOG_LEVEL), then from the YAML
                file. The signing secret is TIDEMARK_SECRET or a key file. Without one the server listens on this
                machine only, with a secret that it makes and keeps beside the store.

                With a store in PostgreSQL any number of servers may share it, behind whatever spreads the load; all of
                them need the same secret. Its address belongs into TIDEMARK_STORE or the file where it has a password:
                what stands on a command line can be seen by others.

                Under `webhooks` the file names addresses that are told of commits, and where their secrets are.

                Once connections are accepted, one line goes to standard output: `listening on http://HOST:PORT`.
                SIGTERM and SIGINT finish the requests under way and end the server.

                EXAMPLES
                  tidemark serve --store sqlite:sync.sqlite
                  tidemark serve --listen 127.0.0.1:0 --store sqlite:sync.sqlite --config tidemark.yaml
                  TIDEMARK_SECRET=$(cat key) tidemark serve --listen 0.0.0.0:8080 --store sqlite:/var/lib/t/sync.sqlite
                  TIDEMARK_STORE='postgres://tidemark@db/tidemark?sslmode=verify-full' tidemark serve --secret-file key
                """)

        @Option(help: ArgumentHelp("HOST:PORT; port 0 takes a free one.", valueName: "address"))
        var listen: String?

        @Option(
            help: ArgumentHelp(
                "Into how many parts a new store in PostgreSQL divides its tables by scope; 0: none.",
                valueName: "number"))
        var partitions: String?

        @OptionGroup var secret: SecretOptions

        @Option(
            help: ArgumentHelp("trace, debug, info, notice, warning or error.", valueName: "level"),
            completion: .list(Logger.Level.allCases.map(\.rawValue)))
        var logLevel: String?

        func run() async throws {
            var flags = secret.flags
            flags[.listen] = .some(listen)
            flags[.partitions] = .some(partitions)
            flags[.logLevel] = .some(logLevel)
            let settings = try Settings(flags: flags)
            let address = try ListenAddress(settings[.listen] ?? ListenAddress.standard)
            let store = try StoreAddress(settings[.store])
            let logger = try Self.logger(settings)
            try store.checkFolder()
            let key = try Secret.resolve(settings, store: store, isLoopback: address.isLoopback)
            let opened = try store.open(partitions: settings[.partitions])
            defer { opened.close() }
            if opened.isOtherwisePartitioned {
                logger.warning("The store keeps the partitions that it was made with.")
            }
            let file = settings.file
            var configuration = file.configuration
            configuration.hooks = try file.webhooks.map { try Webhook($0).hook }
            configuration.onHookEvent = { event in
                HookMetrics.record(event)
                Webhook.log(event, to: logger)
            }
            let server = SyncServer(
                store: opened.log, entities: file.entities, isStrict: file.isStrict, limits: file.limits,
                configuration: configuration)
            let limits = Self.fitted(file.serverLimits, logger)
            let app = try await ServerApplication(
                server: server, verifier: TokenVerifier(secret: key), limits: limits, paths: file.paths, logger: logger
            ).application(address: .hostname(address.host, port: address.port)) { port in
                Console.line("listening on \(address.url(port: port))")
            }
            Memory.returnFreePages()
            try await Self.serve(app, address: address, limits: limits, logger: logger)
        }

        /// Lowers the number of connections to the descriptors that the system has: a server that runs out of them
        /// takes nobody.
        private static func fitted(_ limits: ServerLimits, _ logger: Logger) -> ServerLimits {
            let room = Descriptors.room(forConnections: limits.mostConnections)
            guard room < limits.mostConnections else { return limits }
            var limits = limits
            limits.connections = max(1, room - room / 16)
            logger.warning(
                "The system allows fewer descriptors than `limits.connections` needs.",
                metadata: ["connections": "\(limits.connections)"])
            return limits
        }

        private static func logger(_ settings: Settings) throws -> Logger {
            let name = settings[.logLevel] ?? Logger.Level.notice.rawValue
            guard let level = Logger.Level(rawValue: name) else {
                let names = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
                throw Failure("'\(name)' is not a log level", hint: "use one of \(names)")
            }
            var logger = Logger(label: "tidemark") { StreamLogHandler.standardError(label: $0) }
            logger.logLevel = level
            return logger
        }

        private static func serve(
            _ app: some Service, address: ListenAddress, limits: ServerLimits, logger: Logger
        ) async throws {
            var configuration = ServiceGroupConfiguration(
                services: [app], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
            configuration.maximumGracefulShutdownDuration = limits.shutdownTimeout
            do {
                try await ServiceGroup(configuration: configuration).run()
            } catch {
                throw Failure(
                    "cannot listen on \(address): \(error)",
                    hint: "another program may be using the port; --listen takes another, and port 0 a free one")
            }
        }
    }
#endif
