#if Server
    import ArgumentParser
    import Foundation
    import TidemarkServer
    import TidemarkWire

    struct RemedyCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remedy",
            abstract: "Ask something of a device: that it slows down, fills anew, compares itself or stops.",
            discussion: """
                slow-down  asks and sends at most once in --interval, for a day at most
                refill     fills the scope anew from a snapshot; edits are kept
                verify     compares the tables with the server's records once, and puts right what differs
                stop       syncs no more and shows --message; edits are kept, and go once another remedy comes
                clear      nothing any more: ends a stop and a slowing

                The device hears it with its next exchange, a stopped one within the hour or when its app starts, and
                says what came of it; `tidemark devices` shows that. A newer remedy takes the place of the one before.
                Devices of versions that know no remedies pass over them, and stay pending. A server may run meanwhile.

                EXAMPLES
                  tidemark devices remedy refill --store sqlite:sync.sqlite --device phone-4711
                  tidemark devices remedy slow-down --interval 10m --store sqlite:sync.sqlite --device phone-4711
                  tidemark devices remedy stop --message "Please update the app." --device phone-4711 --scope w:1
                """)

        @Argument(
            help: ArgumentHelp("slow-down, refill, verify, stop or clear.", valueName: "remedy"),
            completion: .list(["slow-down", "refill", "verify", "stop", "clear"]))
        var kind: String

        @Option(help: ArgumentHelp(StoreAddress.help, valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Declarations and settings, as YAML.", valueName: "file"), completion: .file())
        var config: String?

        @Option(help: ArgumentHelp("The device, as `tidemark devices` lists it.", valueName: "name"))
        var device: String

        @Option(help: ArgumentHelp("Its user, where several have a device of this name.", valueName: "name"))
        var user: String?

        @Option(help: ArgumentHelp("One scope; if not given, all scopes of the device.", valueName: "name"))
        var scope: String?

        @Option(help: ArgumentHelp("With slow-down, 1s to 24h: 10m, if not given.", valueName: "time"))
        var interval: String?

        @Option(help: ArgumentHelp("With stop, what the user is to read: one line.", valueName: "text"))
        var message: String?

        @OptionGroup var output: ReportOptions

        func validate() throws { _ = try remedy() }

        func run() async throws {
            let remedy = try remedy()
            let scope = try scope.map { try Scope(argument: $0) }
            let opened = try OpenStore(store: store, config: config)
            defer { opened.close() }
            do {
                let asked = try await SyncServer(store: opened.log).remedy(remedy, for: device, of: user, in: scope)
                try output.tell(DevicesReport(FleetPage(devices: asked, total: asked.count), at: Date()))
            } catch let error as RemedyError { throw Failure(error.detail, hint: error.hint) }
        }

        private func remedy() throws -> Remedy {
            guard interval == nil || kind == "slow-down" else {
                throw ValidationError("--interval goes with slow-down.")
            }
            guard message == nil || kind == "stop" else { throw ValidationError("--message goes with stop.") }
            switch kind {
            case "slow-down":
                guard let time = Duration(text: interval ?? "10m") else {
                    throw ValidationError("--interval is a time such as 30s, 10m or 2h.")
                }
                return .slowDown(interval: time)
            case "refill": return .refill
            case "verify": return .verify
            case "stop":
                guard let message else { throw ValidationError("stop needs --message: what the user is to read.") }
                return .stop(message: message)
            case "clear": return .clear
            default: throw ValidationError("A remedy is slow-down, refill, verify, stop or clear.")
            }
        }
    }

    /// A remedy, as the command tells it.
    struct RemedyLine: Codable, Hashable {
        var number: Int64
        var kind: String
        /// Of a slowing, in seconds.
        var interval: Int64?
        /// Of a stop.
        var message: String?
        var askedAt: Date
        /// The device's word, and when it came: done, failed or refused; none while it is pending.
        var outcome, code: String?
        var toldAt: Date?
        /// What a comparison found, and put right.
        var differing, repaired: Int64?

        init(_ kept: KeptRemedy) {
            (number, kind, askedAt, toldAt) = (kept.number, kept.remedy.kind, kept.asked, kept.told)
            switch kept.remedy {
            case .slowDown(let time): interval = time.wholeSeconds
            case .stop(let text): message = text
            case .refill, .verify, .clear: break
            }
            (outcome, code) = (kept.outcome?.result.rawValue, kept.outcome?.code)
            (differing, repaired) = (kept.outcome?.differing, kept.outcome?.repaired)
        }

        /// One cell: `stop pending`, `refill done`, `verify done (3 differed, 3 repaired)`.
        var text: String {
            let name = kind == "slowDown" ? "slow-down" : kind
            var text = "\(name) \(outcome ?? "pending")"
            if let code { text += " (\(code.printable))" }
            if let differing { text += " (\(differing) differed, \(repaired ?? 0) repaired)" }
            return text
        }
    }
#endif
