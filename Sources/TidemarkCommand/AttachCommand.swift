#if Server
    import ArgumentParser
    import Foundation
    import TidemarkPostgres
    import TidemarkServer
    import TidemarkWire

    struct AttachCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "attach",
            abstract: "Sync a PostgreSQL table of your own.",
            discussion: """
                Puts triggers on a table in the store's database. From then on its rows are records: what any program
                writes to it reaches the devices, and what devices send lands in it, in one transaction with the log.
                Rows that are there already are taken over in batches, while other programs go on writing; a command
                that was interrupted goes on when it is given again. Servers may run meanwhile.

                No column travels that is not named: --read for those that devices get, --write for those that they
                write, too, or --all-columns. The key always travels, and the scope's column.

                Every row has a scope: one for all (--scope), or the one that a column names (--scope-column), behind
                --scope-prefix. With --add-scope-column the column is made, and --scope is what it begins with.
                Without --table, the tables that are attached are listed; with --print-sqlite, the statements that make
                their tables on devices. Given again with other columns, a table goes on with those, without a pause:
                so it does after ADD COLUMN, after its name or a column's has changed, and after ATTACH PARTITION.

                The role of --store has to own the table; servers need the same rights in it.
                Exit code 3: some tables of --all are attached, and others cannot be.

                EXAMPLES
                  tidemark attach --store postgres://… --table public.todo --entity todo \\
                    --scope-column list_id --scope-prefix list: --write title,done --read author
                  tidemark attach --store postgres://… --table country --scope world --read name,capital
                  tidemark attach --store postgres://… --all --scope shop --all-columns
                  tidemark attach --store postgres://… --print-sqlite
                """)

        @Option(help: ArgumentHelp("Where the log is kept: postgres://…", valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Declarations and settings, as YAML.", valueName: "file"), completion: .file())
        var config: String?

        @Option(help: ArgumentHelp("The table: SCHEMA.NAME, or a name in public.", valueName: "name"))
        var table: String?

        @Flag(
            help:
                "All tables of a schema. Columns named by --read and --write that a table lacks are passed over for it."
        )
        var all = false

        @Option(help: ArgumentHelp("The schema of --all; public, if not given.", valueName: "name"))
        var schema: String?

        @Flag(help: "Print the statements that make the attached tables on devices.")
        var printSqlite = false

        @Option(help: ArgumentHelp("The entity's name on the devices; the table's, if not given.", valueName: "name"))
        var entity: String?

        @Option(help: ArgumentHelp("The scope of all rows.", valueName: "scope"))
        var scope: String?

        @Option(help: ArgumentHelp("The column that names a row's scope.", valueName: "column"))
        var scopeColumn: String?

        @Option(help: ArgumentHelp("What stands before the column's value in a scope's name.", valueName: "text"))
        var scopePrefix: String?

        @Flag(help: "Make the scope's column: a text with the scope's whole name.")
        var addScopeColumn = false

        @Option(help: ArgumentHelp("Columns that devices get, with commas between.", valueName: "list"))
        var read: String?

        @Option(help: ArgumentHelp("Columns that devices get and write, with commas between.", valueName: "list"))
        var write: String?

        @Flag(help: "Devices get and write all columns.")
        var allColumns = false

        @Flag(help: "Delete the log's records of the entity that the table does not have.")
        var tableWins = false

        @OptionGroup var output: ReportOptions

        func validate() throws {
            guard all || schema == nil else {
                throw ValidationError("--schema goes with --all: name the table SCHEMA.TABLE.")
            }
            // The options that say how rows travel.
            let isDeclared =
                [scope, scopeColumn, scopePrefix, read, write].contains { $0 != nil } || addScopeColumn || allColumns
                || tableWins
            if printSqlite {
                guard !output.json else { throw ValidationError("--print-sqlite prints SQL: leave --json out.") }
                guard !all, !isDeclared else {
                    throw ValidationError("--print-sqlite is of attached tables: only --table and --entity go with it.")
                }
            } else if all {
                guard table == nil else { throw ValidationError("--all names every table: leave --table out.") }
                guard entity == nil else {
                    throw ValidationError("--all takes each table under its own name: leave --entity out.")
                }
                guard !addScopeColumn else {
                    throw ValidationError("--add-scope-column is of one table: name it with --table.")
                }
                try checkDeclaration()
            } else if table != nil {
                try checkDeclaration()
            } else if isDeclared || entity != nil {
                throw ValidationError("Name the table with --table, or take --all.")
            }
        }

        private func checkDeclaration() throws {
            guard !allColumns || (read == nil && write == nil) else {
                throw ValidationError("--all-columns leaves nothing to name: leave --read and --write out.")
            }
            guard scopeColumn != nil || (scopePrefix == nil && !addScopeColumn) else {
                throw ValidationError("--scope-prefix and --add-scope-column go with --scope-column.")
            }
            guard !addScopeColumn || scopePrefix == nil else {
                throw ValidationError("A column that is made holds whole names: leave --scope-prefix out.")
            }
            guard addScopeColumn || (scope == nil) != (scopeColumn == nil) else {
                throw ValidationError("Say where rows belong: either --scope SCOPE or --scope-column COLUMN.")
            }
        }

        func run() async throws {
            let place = try place()
            let settings = try Settings(flags: [.store: store, .config: config])
            let tables = try TableCommands(settings)
            defer { tables.close() }
            guard let place, !printSqlite else { return try await list(tables) }
            guard let table else { return try await attachAll(tables, place) }
            let name = table.split(separator: ".").last.map(String.init) ?? table
            let report = try await attach(try plan(table, entity ?? name, tables, place, columns), tables)
            try output.tell(report)
        }

        private func attach(_ plan: PostgresStore.TablePlan, _ tables: TableCommands) async throws -> AttachReport {
            try await tables.attach(plan) { rows in
                if !output.json { Console.note("\(plan.table): \(rows.counted("row")) taken over") }
            }
        }

        private func list(_ tables: TableCommands) async throws {
            let all = try await tables.told { try await tables.store.attachedTables() }
            if printSqlite {
                let shown = all.filter { status in
                    (entity ?? status.entity) == status.entity
                        && [nil, status.table, String(status.table.trimmingPrefix("public."))].contains(table)
                }
                if shown.isEmpty {
                    let isNamed = table != nil || entity != nil
                    throw Failure(
                        isNamed ? "no such table is attached" : "no table is attached",
                        hint: isNamed
                            ? "`tidemark attach` lists those that are" : "`tidemark attach --table` attaches one"
                    )
                }
                for line in shown.flatMap({ $0.deviceTable.split(separator: "\n") }) { Console.line(String(line)) }
                return
            }
            let reports = all.map(AttachedReport.init)
            try output.tell(reports)
            if reports.isEmpty, !output.json { Console.line("no table is attached") }
        }

        /// Attaches the tables one after the other; a table that cannot be is told with its reason.
        private func attachAll(_ tables: TableCommands, _ place: PostgresStore.TablePlan.Place) async throws {
            let found = try await tables.told { try await tables.store.tables(inSchema: schema ?? "public") }
            guard !found.isEmpty else {
                throw Failure(
                    "there is no table in the schema \(schema ?? "public") that could be attached",
                    hint: "name another with --schema; the role of --store has to be allowed into it")
            }
            if let column = (names(read) + names(write)).first(where: { name in
                !found.contains { $0.columns.contains(name) }
            }) {
                throw Failure(
                    "no table of the schema has the column \(column)", hint: "check --read and --write")
            }
            var reports: [AttachedOrNot] = []
            for candidate in found {
                do {
                    let columns = columns.limited(to: candidate.columns)
                    let plan = try plan(candidate.table, candidate.name, tables, place, columns)
                    let report = try await attach(plan, tables)
                    reports.append(AttachedOrNot(table: candidate.table, report: report))
                } catch let failure as Failure {
                    reports.append(AttachedOrNot(table: candidate.table, failure: failure))
                }
            }
            try output.tell(reports)
            let refused = reports.count { $0.report == nil }
            guard refused > 0 else { return }
            let what = "\(refused) of \(reports.count) tables \(refused == 1 ? "is" : "are") not attached"
            let hint = "the reasons stand above; attach those with --table, or leave them"
            guard refused < reports.count else { throw Failure(what, hint: hint) }
            if !output.json { Console.note("\(what): \(hint)") }
            throw ExitCode(TidemarkTool.undecided)
        }

        private func plan(
            _ table: String, _ entity: String, _ tables: TableCommands, _ place: PostgresStore.TablePlan.Place,
            _ columns: PostgresStore.TablePlan.Columns
        ) throws -> PostgresStore.TablePlan {
            var plan = PostgresStore.TablePlan(table: table, entity: entity, place: place, columns: columns)
            plan.tableWins = tableWins
            plan.subscope = tables.file.entities.first { Identifier.isSameName($0.name, plan.entity) }?.subscope
            try tables.check(plan.entity)
            return plan
        }

        private func names(_ list: String?) -> [String] { list?.split(separator: ",").map(String.init) ?? [] }

        private var columns: PostgresStore.TablePlan.Columns {
            allColumns ? .all : .named(read: names(read), write: names(write))
        }

        /// Where rows belong; `nil` where nothing is attached.
        private func place() throws -> PostgresStore.TablePlan.Place? {
            let scope = try scope.map { try Scope(argument: $0) }
            guard let scopeColumn else { return scope.map { .scope($0) } }
            return addScopeColumn
                ? .newColumn(scopeColumn, initially: scope) : .column(scopeColumn, prefix: scopePrefix ?? "")
        }
    }

    struct DetachCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "detach",
            abstract: "Stop syncing a PostgreSQL table of your own.",
            discussion: """
                Takes over what other programs have written by now, and takes the triggers off the table. The table
                keeps its rows and the log its records; neither follows the other any more. The scope's column stays,
                unless --drop-scope-column is given and `tidemark attach` has made it. Exit code 1: it was not attached,
                or another program holds the table; nothing is left half done.

                EXAMPLES
                  tidemark detach --store postgres://… --entity todo
                """)

        @Option(help: ArgumentHelp("Where the log is kept: postgres://…", valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Declarations and settings, as YAML.", valueName: "file"), completion: .file())
        var config: String?

        @Option(help: ArgumentHelp("The entity that the table's rows are.", valueName: "name"))
        var entity: String

        @Flag(help: "Drop the scope's column, where `tidemark attach` has made it, with what is in it.")
        var dropScopeColumn = false

        @OptionGroup var output: ReportOptions

        func run() async throws {
            let settings = try Settings(flags: [.store: store, .config: config])
            let tables = try TableCommands(settings)
            defer { tables.close() }
            let report = try await tables.detach(entity, dropsScopeColumn: dropScopeColumn)
            try output.tell(report)
        }
    }
#endif
