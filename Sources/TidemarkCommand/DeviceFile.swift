#if Server
    import Foundation
    import GRDB
    import Tidemark
    import TidemarkServer

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
                throw Failure("\(path) cannot be opened: \(error)", hint: "check that it is an SQLite database")
            }
        }

        /// The tables that are captured already.
        func syncedTables() throws -> [String] {
            try names("SELECT DISTINCT tbl_name FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'tidemark_*'")
        }

        /// The scopes that the file has synced before.
        func scopes() throws -> [Scope] {
            guard try database.read({ db in try db.tableExists("tidemark_scope") }) else { return [] }
            return try names("SELECT name FROM tidemark_scope").compactMap { Scope($0) }
        }

        /// The tables that there are: what may be synced.
        func ownTables() throws -> [String] {
            try names(
                """
                SELECT name FROM sqlite_master
                WHERE type = 'table' AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'tidemark_*'
                """)
        }

        /// The tables to sync: those named, or those of last time.
        func tables(named: [String]) throws -> [SyncedTable] {
            let own = try ownTables()
            let known = named.isEmpty ? try syncedTables() : named
            let list = own.isEmpty ? "it has no tables" : "its tables: \(own.joined(separator: ", "))"
            guard !known.isEmpty else {
                throw Failure("no table of \(path) is synced yet", hint: "name them with --table; \(list)")
            }
            for name in known where !own.contains(where: { $0.lowercased() == name.lowercased() }) {
                throw Failure("\(path) has no table \(name)", hint: list)
            }
            return known.map { SyncedTable.table($0) }
        }

        /// The scope to sync: the one named, or the one of last time.
        func scope(named: String?) throws -> Scope {
            let known = try scopes()
            if let named {
                guard let scope = Scope(named) else {
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

    extension Failure {
        /// What the client says, in the words of a command line.
        init(_ error: SyncError) {
            let isOffline = error.code == .networkUnavailable
            let hint = isOffline ? "check that the server runs and that --server names it" : error.hint
            self.init("\(error.detail) (\(error.code.rawValue))", hint: hint.isEmpty ? nil : hint)
        }
    }
#endif
