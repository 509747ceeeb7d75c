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

                EXAMPLES
                  tidemark attach --store postgres://… --table public.todo --entity todo \\
                    --scope-column list_id --scope-prefix list: --write title,done --read author
                  tidemark attach --store postgres://… --table country --scope world --read name,capital
                  tidemark attach --store postgres://… --all --scope shop --all-columns
                  tidemark attach --store postgres://… --print-sqlite
                """)

        @Option(help: ArgumentHelp("Where the log is kept: postgres://…", valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Declarations and settings, as YAML.", valueName: "file"))
        var config: String?

        @Option(help: ArgumentHelp("The table: SCHEMA.NAME, or a name in public.", valueName: "name"))
        var table: String?

        @Flag(help: "All tables of a schema; of --read and --write, each table's own columns.")
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

        @Flag(help: "The log has records of the entity: make them what the table says.")
        var tableWins = false

        @Flag(help: "Report as JSON.")
        var json = false

        func run() async throws {
            let settings = try Settings(flags: [.store: store, .config: config])
            let tables = try TableCommands(settings)
            defer { tables.close() }
            if all { return try await attachAll(tables) }
            guard schema == nil else { throw ValidationError("--schema goes with --all: name the table SCHEMA.TABLE.") }
            guard let table, !printSqlite else { return try await list(tables) }
            let report = try await tables.attach(try plan(table, tables, columns: columns())) { rows in
                if !json { Console.note("\(rows) rows") }
            }
            if json { Console.line(try JSON.text(report)) } else { report.lines.forEach(Console.line) }
        }

        private func list(_ tables: TableCommands) async throws {
            let all = try await tables.told { try await tables.store.attachedTables() }
            if printSqlite {
                let shown = all.filter { status in
                    (entity ?? status.entity) == status.entity
                        && [nil, status.table, String(status.table.trimmingPrefix("public."))].contains(table)
                }
                if shown.isEmpty { throw Failure("no such table is attached", hint: "attach it first") }
                for line in shown.flatMap({ $0.deviceTable.split(separator: "\n") }) { Console.line(String(line)) }
                return
            }
            let reports = all.map(AttachedReport.init)
            if json { return Console.line(try JSON.text(reports)) }
            reports.flatMap(\.lines).forEach(Console.line)
            if reports.isEmpty { Console.line("no table is attached") }
        }

        /// Attaches the tables one after the other; a table that cannot be is told with its reason.
        private func attachAll(_ tables: TableCommands) async throws {
            guard table == nil, entity == nil, !addScopeColumn, !printSqlite else {
                throw ValidationError("--all takes each table under its own name: leave --table and --entity out.")
            }
            let found = try await tables.told { try await tables.store.tables(inSchema: schema ?? "public") }
            guard !found.isEmpty else { throw Failure("there is no table in the schema \(schema ?? "public")") }
            var reports: [AttachedOrNot] = []
            for candidate in found {
                do {
                    let columns = try columns().limited(to: candidate.columns)
                    let report = try await tables.attach(try plan(candidate.table, tables, columns: columns)) { _ in }
                    reports.append(AttachedOrNot(table: candidate.table, report: report))
                } catch let failure as Failure {
                    reports.append(AttachedOrNot(table: candidate.table, failure: failure))
                }
            }
            if json { Console.line(try JSON.text(reports)) } else { reports.flatMap(\.lines).forEach(Console.line) }
            let refused = reports.count { $0.report == nil }
            if refused > 0 { throw Failure("\(refused) of \(reports.count) tables are not attached") }
        }

        private func plan(
            _ table: String, _ tables: TableCommands, columns: PostgresStore.TablePlan.Columns
        ) throws -> PostgresStore.TablePlan {
            var plan = PostgresStore.TablePlan(
                table: table, entity: entity ?? table.split(separator: ".").last.map(String.init) ?? table,
                place: try place(), columns: columns)
            plan.tableWins = tableWins
            plan.subscope = tables.file.entities.first { Identifier.isSameName($0.name, plan.entity) }?.subscope
            try tables.check(plan.entity)
            return plan
        }

        private func columns() throws -> PostgresStore.TablePlan.Columns {
            func list(_ names: String?) -> [String] { names?.split(separator: ",").map(String.init) ?? [] }
            guard allColumns else { return .named(read: list(read), write: list(write)) }
            guard read == nil, write == nil else {
                throw ValidationError("--all-columns leaves nothing to name: leave --read and --write out.")
            }
            return .all
        }

        private func place() throws -> PostgresStore.TablePlan.Place {
            let scope = try scope.map { text in
                guard let scope = Scope(text) else { throw Failure("'\(text)' is not a scope") }
                return scope
            }
            switch (scope, scopeColumn) {
            case (let scope, let column?) where addScopeColumn:
                guard scopePrefix == nil else {
                    throw ValidationError("A column that is made holds whole names; leave --scope-prefix out.")
                }
                return .newColumn(column, initially: scope)
            case (nil, let column?): return .column(column, prefix: scopePrefix ?? "")
            case (let scope?, nil) where !addScopeColumn && scopePrefix == nil: return .scope(scope)
            default: throw ValidationError("Say where rows belong: --scope SCOPE or --scope-column COLUMN.")
            }
        }
    }

    struct DetachCommand: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "detach",
            abstract: "Stop syncing a PostgreSQL table of your own.",
            discussion: """
                Takes over what other programs have written by now, and takes the triggers off the table. The table
                keeps its rows and the log its records; neither follows the other any more. The scope's column stays,
                unless --drop-scope-column is given and `tidemark attach` has made it.

                EXAMPLES
                  tidemark detach --store postgres://… --entity todo
                """)

        @Option(help: ArgumentHelp("Where the log is kept: postgres://…", valueName: "store"))
        var store: String?

        @Option(help: ArgumentHelp("Declarations and settings, as YAML.", valueName: "file"))
        var config: String?

        @Option(help: ArgumentHelp("The entity that the table's rows are.", valueName: "name"))
        var entity: String

        @Flag(help: "Drop the scope's column, where `tidemark attach` has made it, with what is in it.")
        var dropScopeColumn = false

        @Flag(help: "Report as JSON.")
        var json = false

        func run() async throws {
            let settings = try Settings(flags: [.store: store, .config: config])
            let tables = try TableCommands(settings)
            defer { tables.close() }
            let report = try await tables.detach(entity, dropsScopeColumn: dropScopeColumn)
            if json { return Console.line(try JSON.text(report)) }
            report.lines.forEach(Console.line)
        }
    }
#endif
