#if Server
    import ArgumentParser
    import Foundation
    import TidemarkServer
    import TidemarkWire

    struct CompactCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "compact",
            abstract: "Let go of what no device needs any more.",
            discussion: """
                `tidemark serve` does this by itself, once in an hour. What goes: rows that newer ones have replaced;
                deletions that are older than `retention` of the configuration file (90d) and that every known device
                has, and events with them where `expireEvents` says so; devices that were not heard of for
                `forgetDevicesAfter` (90d); blobs that no record names, where the file declares attachments, and uploads
                that nobody goes on with. A server may run meanwhile.

                History ages by a clock that is kept in the store and follows this machine's slowly, so that a clock
                which jumps ahead cannot make everything old. --trust-clock takes this machine's clock at its word.

                EXAMPLES
                  tidemark compact --store sqlite:sync.sqlite --config tidemark.yaml --dry-run
                  tidemark compact --store sqlite:sync.sqlite --config tidemark.yaml --json
                """)

        @Option(help: ArgumentHelp(StoreAddress.help, valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Declarations and settings, as YAML.", valueName: "file"), completion: .file())
        var config: String?

        @Flag(help: "Only say what would go.")
        var dryRun = false

        @Flag(help: "This machine's clock is right, however far it is from the store's.")
        var trustClock = false

        @OptionGroup var output: ReportOptions

        func run() async throws {
            let settings = try Settings(flags: [.store: store, .config: config])
            let address = try StoreAddress(settings[.store])
            try address.checkFile()
            let opened = try address.open(partitions: settings[.partitions])
            defer { opened.close() }
            let configuration = settings.file.configuration
            let server = SyncServer(
                store: opened.log, entities: settings.file.entities, configuration: configuration)
            let compaction = try await server.compact(trustingClock: trustClock, isRehearsal: dryRun)
            let report = CompactReport(
                compaction, isDryRun: dryRun, keepsHistory: configuration.retention == nil,
                expiresEvents: configuration.expiresEvents)
            try output.tell(report)
        }
    }

    /// The result of a compaction, for people and for programs.
    struct CompactReport: Codable, Hashable, Report {
        var dryRun: Bool
        /// Replaced rows; not counted ahead.
        var replaced: Int?
        /// Deletions and events.
        var expired: Int
        var devices, lanes: Int
        /// Blobs that no record names, their bytes, and uploads that nobody goes on with.
        var blobs, parts: Int
        var blobBytes: Int64
        /// Seconds by which the store's clock of ages is behind this machine's.
        var clockBehind: Int64
        /// Whether deletions are kept for ever.
        var keepsHistory: Bool
        /// Whether events go with them.
        var expiresEvents: Bool

        init(_ compaction: Compaction, isDryRun: Bool, keepsHistory: Bool, expiresEvents: Bool) {
            dryRun = isDryRun
            replaced = compaction.superseded
            expired = compaction.expired
            devices = compaction.devices
            lanes = compaction.lanes
            (blobs, parts, blobBytes) = (compaction.blobs, compaction.parts, compaction.blobBytes)
            let (wall, present) = (compaction.wall.milliseconds, compaction.present.milliseconds)
            clockBehind = wall.saturatingSubtracting(present) / 1000
            self.keepsHistory = keepsHistory
            self.expiresEvents = expiresEvents
        }

        /// Less is not worth a remark: a server that runs is always a little behind.
        private static let remarkable: Int64 = 24 * 3600

        var lines: [String] {
            let history = expiresEvents ? "\(expired) deletions and events" : expired.counted("deletion")
            var parts = [history, devices.counted("device"), lanes.counted("lane")]
            if let replaced { parts.insert(replaced.counted("replaced row"), at: 0) }
            if blobs > 0 { parts.append("\(blobs.counted("blob")) of \(blobBytes) bytes") }
            if self.parts > 0 { parts.append(self.parts.counted("unfinished upload")) }
            var lines = ["\(dryRun ? "would remove" : "removed") " + parts.joined(separator: ", ")]
            if keepsHistory { lines.append("deletions are kept for ever: `retention` says so") }
            if clockBehind > Self.remarkable {
                lines.append(
                    "the clock by which history ages is \(clockBehind / 3600) h behind this machine's;"
                        + " if this machine's is right, --trust-clock sets it")
            }
            return lines
        }
    }
#endif
