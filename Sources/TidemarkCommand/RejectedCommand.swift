#if Server
    import ArgumentParser
    import Foundation
    import Tidemark
    import TidemarkServer

    struct RejectedCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rejected",
            abstract: "List edits that a server refused: those of a device's file, or a server's own list.",
            discussion: """
                On a device each refused edit is kept with its reason, and with the edits that wait because they refer
                to a record whose insert was refused. Try one again, or let it go; what has to be sent for that goes
                with the next sync. A server keeps the newest refused edits of all devices for its operator, who may
                take them off that list; the devices keep theirs.
                Exit code 3: there are some.

                EXAMPLES
                  tidemark rejected app.sqlite
                  tidemark rejected app.sqlite --retry 12
                  tidemark rejected app.sqlite --retry 12 --set slug=home --set rank=3 --set note=NULL --set "code='7'"
                  tidemark rejected app.sqlite --discard 12
                  tidemark rejected --store sqlite:sync.sqlite --scope workspace:1 --json
                  tidemark rejected --store sqlite:sync.sqlite --discard 40
                """)

        @Argument(help: ArgumentHelp("A device's SQLite file.", valueName: "file"), completion: .file())
        var file: String?

        @Option(
            help: ArgumentHelp(
                "A server's store instead: sqlite:PATH or postgres://…; TIDEMARK_STORE, where no file is named either.",
                valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Of the server's list, those of one scope.", valueName: "name"))
        var scope: String?

        @Option(
            help: ArgumentHelp(
                "At most so many of the server's list, newest first; \(Self.standardLimit), if not given.",
                valueName: "count"))
        var limit: Int?
        private static let standardLimit = 100

        @Option(help: ArgumentHelp("Write the edit of this number again.", valueName: "number"))
        var retry: Int64?

        @Option(
            name: .customLong("set"),
            help: ArgumentHelp("With --retry, another value for a column; may be repeated.", valueName: "column=value"))
        var values: [String] = []

        @Option(help: ArgumentHelp("Let the edit of this number go.", valueName: "number"))
        var discard: Int64?

        @OptionGroup var output: ReportOptions

        func validate() throws {
            guard file == nil || store == nil else {
                throw ValidationError("Name a device's file, or a server's store with --store.")
            }
            guard file != nil || retry == nil else {
                throw ValidationError(
                    "--retry is for a device's file; a server's program has SyncServer.retryRejection.")
            }
            guard retry == nil || discard == nil else { throw ValidationError("Either --retry or --discard.") }
            guard values.isEmpty || retry != nil else { throw ValidationError("--set goes with --retry.") }
            _ = try ColumnValues.read(values)
            guard scope == nil || file == nil else { throw ValidationError("--scope goes with --store.") }
            guard limit == nil || file == nil else { throw ValidationError("--limit goes with --store.") }
            guard limit ?? 1 > 0 else { throw ValidationError("--limit is a number from 1.") }
        }

        func run() async throws {
            let refusals: [RefusedEdit]
            if let file {
                let isList = retry == nil && discard == nil
                refusals = try await deviceList(DeviceFile(file, isReadOnly: isList))
            } else {
                guard let store = try Settings(flags: [.store: store])[.store] else {
                    throw ValidationError("Name a device's file, or a server's store with --store.")
                }
                refusals = try await serverList(StoreAddress(store))
            }
            if output.json {
                Console.line(try JSON.text(refusals))
            } else {
                Excerpt.lines(refusals, "refused edits", by: \.lines).forEach(Console.line)
            }
            if !refusals.isEmpty { throw ExitCode(TidemarkTool.undecided) }
        }

        private func serverList(_ address: StoreAddress) async throws -> [RefusedEdit] {
            if let path = address.path, !FileManager.default.fileExists(atPath: path) {
                throw Failure("there is no store \(path)", hint: "name the one that the server uses")
            }
            let scope = try scope.map { try Scope(argument: $0) }
            let opened = try address.open(partitions: nil)
            defer { opened.close() }
            let server = SyncServer(store: opened.log)
            if let discard, try await !server.discardRejection(discard) {
                throw Failure(
                    "there is no refused edit \(discard)", hint: "`tidemark rejected --store …` lists them")
            }
            if let discard, !output.json {
                Console.line("\(discard): off the server's list; the device keeps the edit")
            }
            return try await server.rejections(in: scope, limit: limit ?? Self.standardLimit)
                .map(RefusedEdit.init)
        }

        private func deviceList(_ device: DeviceFile) async throws -> [RefusedEdit] {
            guard let engine = try device.lists() else { return [] }
            if let number = retry ?? discard {
                guard let operation = try await engine.rejectedOperations().first(where: { $0.id == number }) else {
                    throw Failure(
                        "there is no refused edit \(number)", hint: "`tidemark rejected \(device.path)` lists them")
                }
                let decision: RejectedDecision
                if retry != nil {
                    try await engine.retry(operation, changing: try ColumnValues.read(values))
                    decision = RejectedDecision(retried: operation, with: try ColumnValues.read(values))
                } else {
                    let before = try await engine.rejectedOperations().count
                    try await engine.discard(operation)
                    let gone = try await before - engine.rejectedOperations().count
                    decision = RejectedDecision(discarded: operation, others: gone - 1)
                }
                if !output.json { Console.line(decision.line) }
            }
            return try await engine.rejectedOperations().map(RefusedEdit.init)
        }
    }

    /// A refused edit, as the command tells it.
    struct RefusedEdit: Codable, Hashable {
        struct Record: Codable, Hashable { var table, record: String }

        /// The number in the device's file, or in the server's list.
        var number: Int64
        var scope, table, record, code, detail: String
        var hint: String?
        var isDelete: Bool
        /// The values as a person reads them; none where the server has not kept them.
        var fields: [String: String]?
        var at: Date
        /// A device's list: what waits.
        var dependants: [Record]?
        /// A server's list: whose it was.
        var sub, client, lane: String?
        /// The edit's number in that lane.
        var operation: Int64?

        init(_ operation: RejectedOperation) {
            number = operation.id
            (scope, table, record) = (operation.scope.name, operation.entity, operation.record)
            (code, detail, hint) = (operation.code, operation.detail, operation.hint)
            isDelete = operation.isDelete
            fields = operation.fields.mapValues(\.description)
            at = operation.rejectedAt
            dependants = operation.dependants.map { Record(table: $0.entity, record: $0.record) }
        }

        init(_ rejection: Rejection) {
            number = rejection.id
            (scope, table, record) = (rejection.scope.name, rejection.entity, rejection.record)
            (code, detail) = (rejection.code, rejection.detail)
            isDelete = rejection.isDelete
            fields = rejection.fields?.mapValues(\.description)
            at = rejection.rejectedAt
            (sub, client, lane) = (rejection.principal, rejection.client, rejection.lane)
            operation = rejection.number
        }

        var lines: [String] {
            let values = (fields ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            let what = isDelete ? "delete" : values.isEmpty ? "no values are kept" : values.joined(separator: ", ")
            // A row of an attached table is nobody's.
            let whose = sub.map { $0.isEmpty ? " · as the table has it" : " · \($0), device \(client ?? "")" } ?? ""
            var lines = [
                "\(number): \(table) \(record): \(detail) (\(code))",
                "  \(what) · \(at.formatted(.iso8601))\(whose)",
            ]
            if let hint, !hint.isEmpty { lines.append("  hint: \(hint)") }
            return lines
                + Excerpt.lines(dependants ?? [], "edits that wait for it") { dependant in
                    ["  waits for it: \(dependant.table) \(dependant.record)"]
                }
        }
    }
#endif
