#if Server
    import ArgumentParser
    import Foundation
    import TidemarkServer

    /// A subcommand of its own does the work of a plain `tidemark blobs`, as with `tidemark devices`.
    struct BlobsCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "blobs",
            abstract: "Compare the blobs of a store with the records that name them, or list them.",
            discussion: """
                `tidemark blobs verify --help` has the options of the comparison, and `tidemark blobs list --help` those
                of the list.

                EXAMPLES
                  tidemark blobs --store sqlite:sync.sqlite --config tidemark.yaml
                  tidemark blobs verify --rehash --store sqlite:sync.sqlite --config tidemark.yaml
                  tidemark blobs list --store sqlite:sync.sqlite --scope user:17
                """,
            subcommands: [BlobVerifyCommand.self, BlobListCommand.self], defaultSubcommand: BlobVerifyCommand.self)
    }

    struct BlobVerifyCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "verify",
            abstract: "Compare the blobs of a store with the records that name them, and with their hashes.",
            discussion: """
                Counts blobs and unfinished uploads, names in records of blobs that are not there (their devices have
                not sent them yet, or a backup lacks them), and blobs that no record names, which go by themselves
                after `retention`, and seven days at least. What names blobs is said by `attachments` in the
                configuration file. It reads all records of entities with attachments; a server may run meanwhile.

                --rehash also reads every blob and compares its bytes with its name, as fast as the disk is. Nothing is
                removed but with --remove-damaged: a damaged blob counts as missing from then on. A device that has the
                bytes sends them again when its scope is filled anew: `tidemark devices remedy refill`.

                Where something is missing or damaged it ends with 3.

                EXAMPLES
                  tidemark blobs verify --store sqlite:sync.sqlite --config tidemark.yaml --scope user:17 --json
                  tidemark blobs verify --rehash --store sqlite:sync.sqlite --config tidemark.yaml
                  tidemark blobs verify --rehash --remove-damaged --store sqlite:sync.sqlite --config tidemark.yaml
                """)

        @Option(help: ArgumentHelp(StoreAddress.help, valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Declarations and settings, as YAML.", valueName: "file"), completion: .file())
        var config: String?

        @Option(help: ArgumentHelp("Only this scope, with its sub-scopes.", valueName: "name"))
        var scope: String?

        @Flag(help: "Read every blob, and compare its SHA-256 with its name.")
        var rehash = false

        @Flag(help: "With --rehash: remove blobs whose bytes are wrong, so that they can be sent again.")
        var removeDamaged = false

        @OptionGroup var output: ReportOptions

        func validate() throws {
            guard rehash || !removeDamaged else { throw ValidationError("--remove-damaged goes with --rehash.") }
        }

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
            // First, so that what is removed is missing in what comes behind.
            let found = try await rehash ? readAll(server, scope) : nil
            let verification = try await server.verifyBlobs(in: scope)
            try output.tell(BlobsReport(verification, found))
            if verification.missing > 0 || found?.damaged ?? 0 > 0 { throw ExitCode(TidemarkTool.undecided) }
        }

        private func readAll(_ server: SyncServer, _ scope: Scope?) async throws -> BlobRehash {
            let line = LiveLine(isJSON: output.json)
            defer { line.end() }
            return try await server.rehashBlobs(in: scope, removingDamaged: removeDamaged) { rehash in
                let damaged = rehash.damaged > 0 ? " · \(rehash.damaged) damaged" : ""
                let known = rehash.expected.counted("blob")
                line.show("read \(rehash.blobs) of \(known), \(Int(rehash.bytes).asBytes)\(damaged)")
            }
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
        /// Where every blob was read.
        var rehash: RehashReport?

        init(_ verification: BlobVerification, _ rehash: BlobRehash? = nil) {
            (scopes, blobs, bytes) = (verification.scopes, verification.blobs, verification.bytes)
            (parts, missing, unnamed) = (verification.parts, verification.missing, verification.unnamed)
            self.rehash = rehash.map(RehashReport.init)
        }

        var lines: [String] {
            [
                "\(blobs.counted("blob")) and \(parts.counted("unfinished upload")) in \(scopes.counted("scope")),"
                    + " \(bytes) bytes",
                "\(missing.counted("name")) of blobs that are not there",
                "\(unnamed.counted("blob")) that no record names",
            ] + (rehash?.lines ?? [])
        }
    }

    /// The findings of a run that read every blob.
    struct RehashReport: Codable, Hashable {
        struct Damaged: Codable, Hashable {
            var scope, hash: String
            var size: Int64
            /// `differs`, `lost` or `unreadable`.
            var damage: String
            var removed: Bool
        }

        var blobs: Int
        var bytes: Int64
        var damaged, removed: Int
        /// The first of the damaged ones, ``BlobRehash/listLimit`` at most.
        var list: [Damaged]

        init(_ rehash: BlobRehash) {
            (blobs, bytes, damaged, removed) = (rehash.blobs, rehash.bytes, rehash.damaged, rehash.removed)
            list = rehash.list.map { blob in
                Damaged(
                    scope: blob.scope.name, hash: blob.hash, size: blob.size, damage: blob.damage.rawValue,
                    removed: blob.isRemoved)
            }
        }

        private static let shown = 20

        var lines: [String] {
            var lines = ["\(blobs.counted("blob")) read, \(bytes) bytes: \(damaged) damaged, \(removed) removed"]
            lines += list.prefix(Self.shown).map { blob in
                "damaged: \(blob.hash) in scope \(blob.scope), \(blob.damage)" + (blob.removed ? ", removed" : "")
            }
            if damaged > Self.shown {
                lines.append("… and \(damaged - Self.shown) more; --json lists \(BlobRehash.listLimit)")
            }
            return lines
        }
    }
#endif
