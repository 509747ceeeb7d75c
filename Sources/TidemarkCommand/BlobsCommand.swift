#if Server
    import ArgumentParser
    import Foundation
    import TidemarkServer

    struct BlobsCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "blobs",
            abstract: "Compare the blobs of a store with the records that name them.",
            discussion: """
                Counts blobs and unfinished uploads, names in records of blobs that are not there (their devices have
                not sent them yet, or a backup lacks them), and blobs that no record names, which go by themselves
                after `retention`, and seven days at least. Nothing is removed. What names blobs is said by
                `attachments` in the configuration file. It reads all records of entities with attachments; a server
                may run meanwhile.

                Where something is missing it ends with 3.

                EXAMPLES
                  tidemark blobs --store sqlite:sync.sqlite --config tidemark.yaml
                  tidemark blobs --store sqlite:sync.sqlite --config tidemark.yaml --scope user:17 --json
                """)

        @Option(help: ArgumentHelp(StoreAddress.help, valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Declarations and settings, as YAML.", valueName: "file"), completion: .file())
        var config: String?

        @Option(help: ArgumentHelp("Only this scope, with its sub-scopes.", valueName: "name"))
        var scope: String?

        @OptionGroup var output: ReportOptions

        func run() async throws {
            let scope = try scope.map { try Scope(argument: $0) }
            let settings = try Settings(flags: [.store: store, .config: config])
            let file = settings.file
            guard file.entities.contains(where: { !$0.attachments.isEmpty }) else {
                throw Failure(
                    "no entity has attachments, so nothing could be said to name a blob",
                    hint: "give the server's file with --config; it declares them as `attachments: [photo]`")
            }
            let address = try StoreAddress(settings[.store])
            try address.checkFile()
            let opened = try address.open(partitions: settings[.partitions])
            defer { opened.close() }
            let server = SyncServer(store: opened.log, entities: file.entities, configuration: file.configuration)
            let verification = try await server.verifyBlobs(in: scope)
            try output.tell(BlobsReport(verification))
            if verification.missing > 0 { throw ExitCode(TidemarkTool.undecided) }
        }
    }

    /// The result of a comparison, for people and for programs.
    struct BlobsReport: Codable, Hashable, Report {
        var scopes, blobs: Int
        /// Bytes of the blobs, and of what is being sent.
        var bytes: Int64
        /// Uploads that are not finished.
        var parts: Int
        /// Names of blobs that are not there.
        var missing: Int
        /// Blobs that no record names.
        var unnamed: Int

        init(_ verification: BlobVerification) {
            (scopes, blobs, bytes) = (verification.scopes, verification.blobs, verification.bytes)
            (parts, missing, unnamed) = (verification.parts, verification.missing, verification.unnamed)
        }

        var lines: [String] {
            [
                "\(blobs.counted("blob")) and \(parts.counted("unfinished upload")) in \(scopes.counted("scope")),"
                    + " \(bytes) bytes",
                "\(missing.counted("name")) of blobs that are not there",
                "\(unnamed.counted("blob")) that no record names",
            ]
        }
    }
#endif
