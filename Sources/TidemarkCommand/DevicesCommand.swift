#if Server
    import ArgumentParser
    import Foundation
    import TidemarkServer
    import TidemarkWire

    /// A subcommand of its own does the work of a plain `tidemark devices`: options of a command that has subcommands
    /// take those of the same name away from them.
    struct DevicesCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "devices",
            abstract: "List the devices that a server knows: who is behind, with what, and why.",
            discussion: """
                `tidemark devices list --help` has the options of the list, and `tidemark devices remedy --help` says
                what can be asked of a device.

                EXAMPLES
                  tidemark devices --store sqlite:sync.sqlite
                  tidemark devices --store sqlite:sync.sqlite --behind 1000 --seen-before 7d
                  tidemark devices remedy refill --store sqlite:sync.sqlite --device phone-4711
                """,
            subcommands: [DeviceListCommand.self, RemedyCommand.self], defaultSubcommand: DeviceListCommand.self)
    }

    struct DeviceListCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "List the devices that a server knows: who is behind, with what, and why.",
            discussion: """
                A device has one line for each of its scopes. The server knows itself when it last heard of a device
                that may write and how far the device had come then, up to an hour late. All else is the device's own
                word, which nobody has checked: edits that wait and for how long, edits refused, rows quarantined,
                versions, and the code of a failure. Its counts are rounded down to 1, 2 or 5 times a power of ten.
                A server may run meanwhile. `tidemark devices remedy` asks something of a device.

                EXAMPLES
                  tidemark devices --store sqlite:sync.sqlite
                  tidemark devices --store sqlite:sync.sqlite --behind 1000 --seen-before 7d
                  tidemark devices --store postgres://tidemark@db.internal/tidemark --with-errors --sort oldest --json
                """)

        @Option(help: ArgumentHelp(StoreAddress.help, valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Declarations and settings, as YAML.", valueName: "file"), completion: .file())
        var config: String?

        @Option(help: ArgumentHelp("Devices of one scope.", valueName: "name"))
        var scope: String?

        @Option(help: ArgumentHelp("Devices of one user, as tokens name him in `sub`.", valueName: "name"))
        var user: String?

        @Option(help: ArgumentHelp("Devices that lack at least so many changes.", valueName: "changes"))
        var behind: Int64?

        @Flag(help: "Devices with a failure, refused edits or quarantined rows.")
        var withErrors = false

        @Option(help: ArgumentHelp("Devices that were not heard of for so long: 12h, 30d.", valueName: "time"))
        var seenBefore: String?

        @Option(
            help: ArgumentHelp(
                "What comes first: behind (if not given), seen, pending or oldest.", valueName: "order"),
            completion: .list(FleetQuery.Order.allCases.map(\.rawValue)), transform: order)
        var sort: FleetQuery.Order = .behind

        @Option(help: ArgumentHelp("At most so many.", valueName: "count"))
        var limit = 100

        @OptionGroup var output: ReportOptions

        @Sendable private static func order(_ text: String) throws -> FleetQuery.Order {
            guard let order = FleetQuery.Order(rawValue: text) else {
                throw ValidationError("--sort takes behind, seen, pending or oldest.")
            }
            return order
        }

        func validate() throws {
            guard limit > 0 else { throw ValidationError("--limit is a number from 1.") }
            guard seenBefore.map({ Duration(text: $0) != nil }) ?? true else {
                throw ValidationError("--seen-before is a time such as 45s, 30m, 12h or 30d.")
            }
        }

        func run() async throws {
            let now = Date()
            let query = try query(at: now)
            let opened = try OpenStore(store: store, config: config)
            defer { opened.close() }
            let page = try await SyncServer(store: opened.log).devices(query)
            try output.tell(DevicesReport(page, at: now))
        }

        private func query(at now: Date) throws -> FleetQuery {
            var query = FleetQuery()
            query.scope = try scope.map { try Scope(argument: $0) }
            query.principal = user
            query.leastBehind = behind
            query.hasTrouble = withErrors
            query.seenBefore = seenBefore.flatMap { Duration(text: $0) }.map { silence in
                now - TimeInterval(silence.wholeSeconds)
            }
            (query.order, query.limit) = (sort, limit)
            return query
        }
    }

    extension OpenStore {
        /// Opens the store that is named, which has to be there.
        init(store: String?, config: String?) throws {
            let settings = try Settings(flags: [.store: store, .config: config])
            let address = try StoreAddress(settings[.store])
            try address.checkFile()
            self = try address.open(partitions: settings[.partitions])
        }
    }

    /// The list, for people and for programs.
    struct DevicesReport: Codable, Hashable, Report {
        var devices: [DeviceLine]
        /// How many there are, shown or not.
        var total: Int

        init(_ page: FleetPage, at now: Date) {
            devices = page.devices.map { DeviceLine($0, at: now) }
            total = page.total
        }

        var lines: [String] {
            guard !devices.isEmpty else { return ["no such device is known"] }
            let rows = [DeviceLine.heading] + devices.map(\.cells)
            let widths = DeviceLine.heading.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
            let rest = total - devices.count
            return rows.map { cells in
                zip(cells, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }
                    .joined(separator: "  ").trimmingCharacters(in: .whitespaces)
            } + (rest > 0 ? ["… and \(rest) more; --limit shows more of them"] : [])
        }
    }

    /// A device in one scope.
    struct DeviceLine: Codable, Hashable {
        /// When the list was made.
        var now: Date
        var sub, client, scope: String
        var seen: Date
        /// Changes that it lacks, and when the first of them came.
        var behind: Int64
        var behindSince: Date?
        /// The device's own word, and when it came; none of these where it tells nothing.
        var reportedAt: Date?
        var pending, refused, quarantined: Int64?
        /// When the oldest edit that waits was made.
        var oldest: Date?
        var app, library, error: String?
        /// What the operator asked of it last.
        var remedy: RemedyLine?

        private enum CodingKeys: String, CodingKey {
            case now, sub, client, scope, seen, behind, behindSince, reportedAt, pending, refused, quarantined, oldest
            case app, library, error, remedy
        }

        init(_ device: FleetDevice, at now: Date) {
            self.now = now
            (sub, client, scope) = (device.name.principal, device.name.client, device.scope.name)
            seen = device.seen
            (behind, behindSince) = (device.behind, device.behindSince)
            reportedAt = device.reportedAt
            (pending, oldest) = (device.report?.pending, device.oldestEdit)
            (refused, quarantined) = (device.report?.refused, device.report?.quarantined)
            (app, library, error) = (device.report?.app, device.report?.library, device.report?.error)
            remedy = device.remedy.map(RemedyLine.init)
        }

        static let heading = [
            "user", "device", "scope", "seen", "behind", "pending", "oldest", "refused", "quarantined", "app",
            "library", "error", "remedy",
        ]

        var cells: [String] {
            let lack = behindSince.map { "\(behind), \(age($0))" } ?? "\(behind)"
            return [
                Self.shown(sub), Self.shown(client), Self.shown(scope), age(seen), lack,
                pending.map(String.init) ?? "-",
                oldest.map(age) ?? "-", refused.map(String.init) ?? "-", quarantined.map(String.init) ?? "-",
                Self.shown(app), Self.shown(library), Self.shown(error),
                remedy.map { "\($0.text), \(age($0.toldAt ?? $0.askedAt))" } ?? "-",
            ]
        }

        /// A text of anybody's in one cell: nothing of it moves the others.
        private static func shown(_ text: String?) -> String {
            guard let text = text?.printable else { return "-" }
            return text.count > cellWidth ? "\(text.prefix(cellWidth - 1))…" : text
        }

        private static let cellWidth = 32

        /// `12 s`, `5 min`, `3 h`, `40 d`.
        private func age(_ moment: Date) -> String {
            let seconds = max(0, now.timeIntervalSince(moment))
            let units: [(Double, String)] = [(86_400, "d"), (3600, "h"), (60, "min")]
            for (length, name) in units where seconds >= length { return "\(Int(seconds / length)) \(name)" }
            return "\(Int(seconds)) s"
        }
    }
#endif
