#if Server
    import ArgumentParser
    import Foundation
    import Tidemark

    struct ConflictsCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "conflicts",
            abstract: "List edits of a device's file that met somebody else's, and decide them.",
            discussion: """
                Each conflict says what was set here, what elsewhere, and what stands by which rule. One that is open
                waits for a decision; a resolved one may be decided again, which writes a new edit. What has to be sent
                for that goes with the next sync. The list keeps the newest 10,000, and all that are open.
                Exit code 3: some are open.

                EXAMPLES
                  tidemark conflicts app.sqlite
                  tidemark conflicts app.sqlite --open --json
                  tidemark conflicts app.sqlite --keep-mine 12
                  tidemark conflicts app.sqlite --take-theirs 12
                  tidemark conflicts app.sqlite --merge 12 --set title=Both --set rank=3 --set note=NULL
                  tidemark conflicts app.sqlite --dismiss 12
                """)

        @Argument(help: ArgumentHelp("The device's SQLite file.", valueName: "file"), completion: .file())
        var file: String

        @Flag(help: "Only those that wait for a decision.")
        var open = false

        @Option(help: ArgumentHelp("Write the values set here again.", valueName: "number"))
        var keepMine: Int64?

        @Option(help: ArgumentHelp("Let the values set elsewhere stand.", valueName: "number"))
        var takeTheirs: Int64?

        @Option(help: ArgumentHelp("Write the values of --set.", valueName: "number"))
        var merge: Int64?

        @Option(
            name: .customLong("set"),
            help: ArgumentHelp("With --merge, a column's value; may be repeated.", valueName: "column=value"))
        var values: [String] = []

        @Option(help: ArgumentHelp("Take the resolved conflict of this number off the list.", valueName: "number"))
        var dismiss: Int64?

        @OptionGroup var output: ReportOptions

        func validate() throws {
            guard [keepMine, takeTheirs, merge, dismiss].compactMap(\.self).count < 2 else {
                throw ValidationError("One of --keep-mine, --take-theirs, --merge and --dismiss.")
            }
            guard values.isEmpty || merge != nil else { throw ValidationError("--set goes with --merge.") }
            guard merge == nil || !values.isEmpty else {
                throw ValidationError("--merge takes the values to write: --set column=value.")
            }
            _ = try ColumnValues.read(values)
        }

        func run() async throws {
            let isDecision = keepMine ?? takeTheirs ?? merge ?? dismiss != nil
            let device = try DeviceFile(file, isReadOnly: !isDecision)
            let engine = try device.lists()
            if isDecision {
                let line = try await decide(engine)
                if !output.json { Console.line(line) }
            }
            let all = try await engine?.conflicts() ?? []
            let met = (open ? all.filter(\.isOpen) : all).map(MetEdit.init)
            if output.json {
                Console.line(try JSON.text(met))
            } else {
                Excerpt.lines(met, "conflicts", by: \.lines).forEach(Console.line)
            }
            if all.contains(where: \.isOpen) { throw ExitCode(TidemarkTool.undecided) }
        }

        /// Returns what was decided, in a sentence.
        private func decide(_ engine: SyncEngine?) async throws -> String {
            let number = keepMine ?? takeTheirs ?? merge ?? dismiss ?? 0
            guard let engine, let conflict = try await engine.conflicts().first(where: { $0.id == number }) else {
                throw Failure("there is no conflict \(number)", hint: "`tidemark conflicts \(file)` lists them")
            }
            let what = "\(number): \(conflict.entity) \(conflict.record)"
            if dismiss != nil {
                guard !conflict.isOpen else {
                    throw Failure(
                        "conflict \(number) is open", hint: "decide it with --keep-mine, --take-theirs or --merge")
                }
                try await engine.dismiss(conflict)
                return "\(what) is off the list"
            }
            let set = try ColumnValues.read(values)
            let (resolution, said): (Conflict.Resolution, String) =
                if keepMine != nil {
                    (.keepMine, "what was set here stands")
                } else if takeTheirs != nil {
                    (.takeTheirs, "what was set elsewhere stands")
                } else {
                    (
                        .merge(set),
                        set.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
                            .joined(separator: ", ") + " stands"
                    )
                }
            try await engine.resolve(conflict, with: resolution)
            return "\(what): \(said), and goes with the next sync where it has to be sent"
        }
    }

    /// An edit that met somebody else's, as the command tells it.
    struct MetEdit: Codable, Hashable {
        /// A column's values as a person reads them.
        struct Field: Codable, Hashable { var name, base, mine, theirs, result: String }

        /// The number in the file.
        var number: Int64
        var scope, table, record, rule: String
        var isOpen, isDelete, isDeletedElsewhere: Bool
        var fields: [Field]
        var at: Date

        init(_ conflict: Conflict) {
            number = conflict.id
            (scope, table, record) = (conflict.scope.name, conflict.entity, conflict.record)
            rule = conflict.rule.rawValue
            (isOpen, isDelete) = (conflict.isOpen, conflict.isDelete)
            isDeletedElsewhere = conflict.isDeletedElsewhere
            at = conflict.noticedAt
            fields = conflict.fields.map { field in
                Field(
                    name: field.name, base: field.base?.description ?? "-",
                    mine: field.mine?.description ?? (conflict.isDelete ? "deleted" : "-"),
                    theirs: field.theirs?.description ?? (conflict.isDeletedElsewhere ? "deleted" : "-"),
                    result: field.result?.description ?? (conflict.isOpen ? "undecided" : "deleted"))
            }
        }

        var lines: [String] {
            let state = isOpen ? "open" : "resolved by \(rule)"
            let met = isDeletedElsewhere ? "deleted elsewhere" : isDelete ? "deleted here" : nil
            let head = "\(number): \(table) \(record): \([state, met].compactMap(\.self).joined(separator: ", "))"
            return ["\(head) · \(at.formatted(.iso8601))"]
                + fields.map { "  \($0.name): \($0.mine) here, \($0.theirs) elsewhere, \($0.result) stands" }
        }
    }
#endif
