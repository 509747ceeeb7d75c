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
        ///
        /// - Parameter isReadOnly: whether nothing may be written to it.
        init(_ path: String, isReadOnly: Bool = false) throws {
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue else {
                throw Failure("there is no file \(path)", hint: "name an SQLite file that holds the tables to sync")
            }
            self.path = path
            var configuration = GRDB.Configuration()
            configuration.busyMode = .timeout(10)
            configuration.readonly = isReadOnly
            configuration.prepareDatabase { db in
                // In KiB, and in pages. With SQLite's 2 and 4 MB a first sync of many rows reads again what it has just
                // written, and folds the WAL in every few requests.
                try db.execute(sql: "PRAGMA cache_size = -24576")
                if !isReadOnly { try db.execute(sql: "PRAGMA wal_autocheckpoint = 8192") }
            }
            do {
                do { database = try Self.open(path, configuration) } catch let error as DatabaseError
                    where isReadOnly && [.SQLITE_CANTOPEN, .SQLITE_READONLY].contains(error.resultCode)
                    && Self.isWhole(path)
                {
                    // Without its two companions, a file in WAL mode opens only where they can be made, or where
                    // nobody is said to write.
                    let address = URL(filePath: path).absoluteString + "?immutable=1"
                    database = try Self.open(address, configuration)
                }
            } catch {
                var failure = Failure("\(path) cannot be opened", because: error, hint: nil)
                if (error as? DatabaseError)?.resultCode == .SQLITE_NOTADB {
                    failure.hint = "name an SQLite database; a file that was one is damaged"
                }
                throw failure
            }
            let isStore = try database.read { db in
                try ["incarnation", "verdict", "hook_told"].allSatisfy { try db.tableExists($0) }
            }
            guard !isStore else {
                // It would sync the log of its own syncing, and never end.
                throw Failure(
                    "\(path) is a server's store", hint: "name a device's file; `tidemark serve` serves a store")
            }
        }

        private static func open(_ path: String, _ configuration: GRDB.Configuration) throws -> DatabaseQueue {
            let database = try DatabaseQueue(path: path, configuration: configuration)
            // Only a read tells whether the file is a database.
            _ = try database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") }
            return database
        }

        /// Whether all that was committed stands in the file itself.
        private static func isWhole(_ path: String) -> Bool {
            let wal = try? FileManager.default.attributesOfItem(atPath: path + "-wal")
            return (wal?[.size] as? NSNumber)?.intValue ?? 0 == 0
        }

        /// The synced tables in the file.
        func syncedTables() throws -> [String] { try database.read { db in try SyncedNames.tables(db) } }

        /// Tables that were synced once and are in the file no more.
        func missingTables() throws -> [String] { try database.read { db in try SyncedNames.missingTables(db) } }

        /// Reads which tables and scopes the file syncs, out of its own schema.
        func inspect() throws -> FileInspection { try database.read { db in try FileInspection(db) } }

        /// The engine that reads the file's lists and decides about them, without a network; `nil` where nothing was
        /// synced.
        func lists() throws -> SyncEngine? {
            // The lists of another version's file are not read as if they were this one's.
            _ = try inspect()
            return try declared()?.engine(self, NoTransport())
        }

        /// The scopes that the file has synced before.
        func scopes() throws -> [Scope] { try database.read { db in try SyncedNames.scopes(db) } }

        /// The tables that can be synced.
        func ownTables(where isWanted: (String) -> Bool = { _ in true }) throws -> [String] {
            try database.read { db in try SyncedTable.syncable(in: db, where: isWanted) }
        }

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

        /// The tables of last time with those named, and all scopes of the file with these: whoever works on some
        /// leaves the other scopes as they are. With `mayRelease`, a file whose only scope never came to anything is
        /// synced into this one instead.
        ///
        /// - Parameter rule: how rows of tables that are new are spread over scopes; `nil`: all are in the only scope.
        func declared(
            with named: [String] = [], in scopes: [Scope], by rule: SyncedTable.ScopeRule? = nil,
            mayRelease: Bool = false
        ) throws -> Declared {
            var declared = try declared() ?? Declared(tables: [], scopes: [])
            var named = named
            if mayRelease, declared.scopes.count == 1, let scope = scopes.first, scopes.count == 1, rule == nil,
                !declared.isFit(for: scope, named)
            {
                try database.write { db in try SyncedTable.release(db, beside: scope) }
                let rest = try self.declared() ?? Declared(tables: [], scopes: [])
                // Tables that were released are synced into this scope from now on.
                named += declared.tables.map(\.name).filter { rest[$0] == nil && !named.contains($0) }
                declared = rest
            }
            let spelled = try spelled(named, rule)
            for name in spelled {
                if let known = declared[name] {
                    guard rule == nil || known.scope == rule else { throw Self.otherRule(known) }
                    continue
                }
                guard rule != nil || scopes.count == 1 else {
                    throw Failure(
                        "it is not clear which scope the rows of \(name) belong to",
                        hint: "name one scope, or the column that names each row's with --scope-column")
                }
                declared.tables.append(.table(name, scope: rule ?? .constant(scopes[0])))
            }
            guard !declared.tables.isEmpty else {
                throw Failure(
                    "no table of \(path) is synced yet", hint: "name them with --table, or take --all; \(try list())")
            }
            for scope in scopes where !declared.isFit(for: scope, rule == nil && scopes.count == 1 ? spelled : []) {
                let known = declared.scopes.map(\.name).joined(separator: ", ")
                throw Failure(
                    "the tables of \(path) hold no rows of \(scope)",
                    hint: "the file is synced with \(known); another scope needs tables of its own")
            }
            declared.scopes += scopes.filter { !declared.scopes.contains($0) }
            return declared
        }

        private static func otherRule(_ table: SyncedTable) -> Failure {
            let scopes = table.scope?.scopes ?? "the file's only one"
            return Failure(
                "the scope of \(table.name)'s rows is declared already: \(scopes)",
                hint: "leave --scope-column out, or name only new tables with --table")
        }

        /// The names as the file spells them, or one error that says of each table why it cannot be synced.
        private func spelled(_ named: [String], _ rule: SyncedTable.ScopeRule?) throws -> [String] {
            do { return try database.read { db in try SyncedTable.spelled(named, by: rule, in: db) } } catch let error
                as SyncError
            {
                var failure = Failure(error)
                failure.hint = [failure.hint, try list()].compactMap { $0 }.joined(separator: " · ")
                throw failure
            }
        }

        /// Each table that can be synced, and of the others why they cannot. With a rule, which is that of new tables,
        /// those that are synced already are not among them.
        func allTables(by rule: SyncedTable.ScopeRule?) throws -> (tables: [String], leftOut: [LeftOut]) {
            let known = rule == nil ? nil : try declared()
            var (tables, leftOut): ([String], [LeftOut]) = ([], [])
            for name in try database.read({ db in try SyncedTable.own(in: db) }) where known?[name] == nil {
                do { tables += try database.read { db in try SyncedTable.spelled([name], by: rule, in: db) } } catch let
                    error as SyncError
                {
                    leftOut.append(LeftOut(name, Failure(error)))
                }
            }
            return (tables, leftOut)
        }

        private func list() throws -> String {
            let own = try ownTables()
            return own.isEmpty ? "it has no tables that can be synced" : "its tables: \(own.joined(separator: ", "))"
        }

        /// The scopes to sync: those named, or the one of last time.
        func scopes(named: [String]) throws -> [Scope] {
            let known = try scopes()
            guard named.isEmpty else {
                return try named.map { name in
                    let scope = try Scope(argument: name)
                    guard scope.subscope == nil else { throw Scope.refusal(name) }
                    return scope
                }
            }
            guard let scope = known.first, known.count == 1 else {
                let names = known.map { "--scope \($0.name)" }.joined(separator: " ")
                throw Failure(
                    known.isEmpty
                        ? "\(path) has not been synced yet, so that it has no scope" : "\(path) holds several scopes",
                    hint: known.isEmpty
                        ? "name one with --scope, for example --scope workspace:1"
                        : "name those that the token grants: \(names)")
            }
            return [scope]
        }
    }

    /// A table that `--all` does not take, and why.
    struct LeftOut: Codable, Hashable {
        var table, message: String
        var hint: String?

        init(_ table: String, _ failure: Failure) {
            self.table = table
            // The sentence before several flaws announces a list that is not shown here.
            message = failure.details.isEmpty ? failure.what : failure.details.joined(separator: " ")
            hint = failure.hint
        }

        var line: String { "left out: \(([message, hint].compactMap(\.self)).joined(separator: " "))" }
    }

    extension Scope {
        /// - Throws: ``Failure`` where the text is not a scope's name.
        init(argument text: String) throws {
            guard let scope = Scope(text) else { throw Self.refusal(text) }
            self = scope
        }

        static func refusal(_ text: String) -> Failure {
            Failure("'\(text)' is not a scope", hint: "use letters, digits and . _ : @ -, at most 128")
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
            let mayHaveRows = { (table: SyncedTable) in table.scope?.mayHaveRows(in: scope) ?? true }
            return named.compactMap { self[$0] }.allSatisfy(mayHaveRows)
                && (tables.isEmpty || tables.contains(where: mayHaveRows))
        }

        func engine(
            _ device: DeviceFile, _ transport: any Transport, configuration: SyncConfiguration = SyncConfiguration()
        ) throws -> SyncEngine {
            var configuration = configuration
            configuration.isCommand = true
            return try SyncEngine(
                for: device.database, tables: tables, scopes: scopes, transport: transport,
                configuration: configuration)
        }
    }

    extension Failure {
        /// Puts a client's error into the words of a command that ends with it.
        init(_ error: SyncError) {
            // Several flaws are one to a line (TableFlaw).
            let parts = error.detail.components(separatedBy: "\n- ")
            self.init(parts[0], hint: Self.hint(for: error), code: error.code.rawValue)
            details = Array(parts.dropFirst())
        }

        /// Nothing is tried again after this command has ended.
        private static func hint(for error: SyncError) -> String? {
            switch error.code {
            case .networkUnavailable:
                return "check that the server runs and that --server names it, then run the command again"
            case .serverUnavailable where error.hint.isEmpty:
                return "the server, or what stands before it, is busy or restarts; run the command again in a minute"
            case .unauthenticated:
                return "set TIDEMARK_TOKEN to a fresh one; whoever runs the server makes it with `tidemark token` and "
                    + "that server's secret"
            case .scopeForbidden:
                return "name a scope that the token grants, or have one made that grants it: "
                    + "`tidemark token --scope SCOPE=rw`"
            default: break
            }
            let promises = ["again by itself", "is asked for again", "in a moment"]
            let isPromise = { (text: Substring) in promises.contains { text.contains($0) } }
            var remedy = error.hint
            if isPromise(remedy[...]) {
                let sentences = remedy.replacing(". ", with: ".\n").replacing("; ", with: ".\n").split(separator: "\n")
                remedy = sentences.filter { !isPromise($0) }.joined(separator: " ")
            }
            guard error.recovery == .wait else { return remedy.isEmpty ? nil : remedy }
            return remedy.isEmpty ? "run the command again" : "\(remedy) Then run the command again."
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

        /// - Parameter hint: `nil`: the cause's own.
        init(_ what: String, because error: any Error, hint: String?) {
            let cause = Failure(of: error)
            self.init("\(what): \(cause.what)", hint: hint ?? cause.hint, code: cause.code)
            details = cause.details
        }
    }
#endif
