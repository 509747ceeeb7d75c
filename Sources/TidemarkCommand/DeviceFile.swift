#if Server
    import Foundation
    import GRDB
    import Tidemark
    import TidemarkServer
    import TidemarkWire

    /// Any SQLite file with tables of its own, as a device that syncs.
    struct DeviceFile {
        let path: String
        let database: DatabaseQueue

        /// Opens a file that exists; its journal mode stays as it is.
        init(_ path: String) throws {
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue else {
                throw Failure("there is no file \(path)", hint: "name an SQLite file that holds the tables to sync")
            }
            self.path = path
            var configuration = GRDB.Configuration()
            configuration.busyMode = .timeout(10)
            do {
                database = try DatabaseQueue(path: path, configuration: configuration)
                _ = try database.read { db in try db.tableExists("tidemark_meta") }
            } catch {
                throw Failure("\(path) cannot be opened", because: error, hint: "check that it is an SQLite database")
            }
        }

        /// The tables that are synced: those that the file remembers, whether their triggers stand or a rebuild took
        /// them away, and those that triggers came to with a new name.
        func syncedTables() throws -> [String] {
            let captured =
                "SELECT tbl_name AS name FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'tidemark_*'"
            guard try database.read({ db in try db.tableExists("tidemark_table") }) else {
                return try names("SELECT DISTINCT name FROM (\(captured))")
            }
            return try names(
                """
                SELECT name FROM tidemark_table
                WHERE EXISTS (SELECT 1 FROM sqlite_master AS m WHERE m.type = 'table' AND m.name = tidemark_table.name)
                UNION \(captured)
                """)
        }

        /// Tables that were synced once and are in the file no more.
        func vanishedTables() throws -> [String] {
            guard try database.read({ db in try db.tableExists("tidemark_table") }) else { return [] }
            return try names(
                """
                SELECT name FROM tidemark_table
                WHERE NOT EXISTS (
                  SELECT 1 FROM sqlite_master AS m WHERE m.type = 'table' AND m.name = tidemark_table.name)
                """)
        }

        /// The scopes that the file has synced before.
        func scopes() throws -> [Scope] {
            guard try database.read({ db in try db.tableExists("tidemark_scope") }) else { return [] }
            let known = try names("SELECT name FROM tidemark_scope").compactMap { Scope($0)?.parent }
            return known.enumerated().filter { known.firstIndex(of: $1) == $0 }.map(\.element)
        }

        /// The tables that can be synced.
        func ownTables() throws -> [String] { try database.read { db in try SyncedTable.syncable(in: db) } }

        /// Whether the warnings are others than those that were said last.
        func noteWarnings(_ warnings: [String]) throws -> Bool {
            try database.write { db in try SyncedTable.noteWarnings(warnings, in: db) }
        }

        /// The tables and scopes of last time, as the file's own app declared them; `nil` where nothing is synced yet.
        func declared() throws -> Declared? {
            let scopes = try scopes()
            let names = try syncedTables()
            guard let first = scopes.first, !names.isEmpty else { return nil }
            let known = try database.read { db in try SyncedTable.declared(in: db) }
            let tables = names.map { name in
                var table = known.first { $0.name == name } ?? .table(name, scope: .constant(first))
                table.references.removeAll { reference in
                    !names.contains { Identifier.isSameName($0, reference.table) }
                }
                return table
            }
            return Declared(tables: tables, scopes: scopes)
        }

        /// Whether no app has ever synced this file.
        func isOurs() throws -> Bool { try database.read { db in try SyncedTable.isOurs(db) } }

        func noteCommand() throws { try database.write { db in try SyncedTable.noteCommand(db) } }

        /// The tables of last time with those named, and all scopes of the file with this one: whoever works on one
        /// scope leaves the others as they are. With `mayRelease`, a file whose only scope never came to anything is
        /// synced into this one instead.
        func declared(with named: [String] = [], in scope: Scope, mayRelease: Bool = false) throws -> Declared {
            var declared = try declared() ?? Declared(tables: [], scopes: [])
            var named = named
            if mayRelease, declared.scopes.count == 1, !declared.isFit(for: scope, named) {
                try database.write { db in try SyncedTable.release(db, beside: scope) }
                let rest = try self.declared() ?? Declared(tables: [], scopes: [])
                // Tables that were released are synced into this scope from now on.
                named += declared.tables.map(\.name).filter { rest[$0] == nil && !named.contains($0) }
                declared = rest
            }
            let spelled = try spelled(named)
            for name in spelled where declared[name] == nil {
                declared.tables.append(.table(name, scope: .constant(scope)))
            }
            guard !declared.tables.isEmpty else {
                throw Failure("no table of \(path) is synced yet", hint: "name them with --table; \(try list())")
            }
            guard declared.isFit(for: scope, spelled) else {
                let scopes = declared.scopes.map(\.name).joined(separator: ", ")
                throw Failure(
                    "the tables of \(path) hold no rows of \(scope)",
                    hint: "the file is synced with \(scopes); another scope needs tables of its own")
            }
            if !declared.scopes.contains(scope) { declared.scopes.append(scope) }
            return declared
        }

        /// The names as the file spells them, or one error that says of each table why it cannot be synced.
        private func spelled(_ named: [String]) throws -> [String] {
            do { return try database.read { db in try SyncedTable.spelled(named, in: db) } } catch let error
                as SyncError
            {
                let failure = Failure(error)
                throw Failure(
                    failure.what, hint: [failure.hint, try list()].compactMap { $0 }.joined(separator: " · "))
            }
        }

        private func list() throws -> String {
            let own = try ownTables()
            return own.isEmpty ? "it has no tables that can be synced" : "its tables: \(own.joined(separator: ", "))"
        }

        /// The scope to sync: the one named, or the one of last time.
        func scope(named: String?) throws -> Scope {
            let known = try scopes()
            if let named {
                guard let scope = Scope(named), scope.subscope == nil else {
                    throw Failure("'\(named)' is not a scope", hint: "use letters, digits and . _ : @ -, at most 128")
                }
                return scope
            }
            guard let scope = known.first, known.count == 1 else {
                let names = known.map(\.name).joined(separator: ", ")
                throw Failure(
                    known.isEmpty ? "\(path) has not been synced yet" : "\(path) holds several scopes",
                    hint: "name one with --scope" + (known.isEmpty ? ", for example --scope workspace:1" : ": \(names)")
                )
            }
            return scope
        }

        private func names(_ sql: String) throws -> [String] {
            try database.read { db in try String.fetchAll(db, sql: sql + " ORDER BY 1") }
        }
    }

    /// The tables that a file syncs, with their rules, and its scopes.
    struct Declared {
        var tables: [SyncedTable]
        var scopes: [Scope]

        /// Puts the tables into the sub-scopes that the server declares. A server that does not answer now is asked by
        /// the engine again.
        mutating func place(as transport: any Transport) async {
            guard let declarations = await Declarations.fetched(by: transport) else { return }
            for index in tables.indices { tables[index].subscope = declarations.entity(tables[index].name).subscope }
        }

        subscript(_ name: String) -> SyncedTable? {
            tables.first { Identifier.isSameName($0.name, name) }
        }

        /// Whether rows of the scope may stand in the tables named, or in any at all.
        func isFit(for scope: Scope, _ named: [String]) -> Bool {
            let mayHold = { (table: SyncedTable) in table.scope?.mayHold(scope) ?? true }
            return named.compactMap { self[$0] }.allSatisfy(mayHold)
                && (tables.isEmpty || tables.contains(where: mayHold))
        }

        func engine(
            _ device: DeviceFile, _ transport: any Transport, configuration: SyncConfiguration = SyncConfiguration()
        ) throws -> SyncEngine {
            try SyncEngine(
                for: device.database, tables: tables, scopes: scopes, transport: transport,
                configuration: configuration)
        }
    }

    extension Failure {
        /// Puts a client's error into the words of a command line.
        init(_ error: SyncError) {
            let isOffline = error.code == .networkUnavailable
            let hint = isOffline ? "check that the server runs and that --server names it" : error.hint
            self.init("\(error.detail) (\(error.code.rawValue))", hint: hint.isEmpty ? nil : hint)
        }

        /// Any error, without the statement and the values of one that a database reports.
        init(of error: any Error) {
            switch error {
            case let failure as Failure: self = failure
            case let error as SyncError: self.init(error)
            case let error as DatabaseError: self.init(SyncError(error))
            case let error as StoreUnavailable:
                self.init("the store cannot do this now: \(error)", hint: "try again; look for room on its disk")
            default: self.init("\(error)")
            }
        }

        init(_ what: String, because error: any Error, hint: String) {
            self.init("\(what): \(Failure(of: error).what)", hint: hint)
        }
    }
#endif
