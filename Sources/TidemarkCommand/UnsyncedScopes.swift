#if Server
    import Foundation
    import GRDB
    import Tidemark

    /// Scopes to which rows of a file belong by their column, and that were never synced: their edits wait for ever.
    enum UnsyncedScopes {
        /// Names in one line.
        private static let shown = 5

        static func names(_ device: DeviceFile) throws -> [String] {
            let known = Set(try device.scopes().map(\.name))
            return try device.database.read { db in
                guard try db.tableExists("tidemark_inferred") else { return [] }
                let shadows = try String.fetchAll(
                    db,
                    sql: """
                        SELECT name FROM sqlite_master WHERE type = 'table'
                        AND name LIKE 'tidemark\\_shadow\\_%' ESCAPE '\\'
                        """)
                let marked = shadows.map {
                    """
                    UNION SELECT tidemark_routing_scope FROM \($0.quotedDatabaseIdentifier)
                    WHERE tidemark_mark IS NOT NULL AND tidemark_routing_scope <> ''
                    """
                }
                let sql = "SELECT scope FROM tidemark_inferred WHERE NOT compared \(marked.joined(separator: " "))"
                let found = try String.fetchAll(db, sql: sql).compactMap { Scope($0)?.parent.name }
                return Set(found).subtracting(known).sorted()
            }
        }

        static func lines(_ names: [String]) -> [String] {
            guard let first = names.first else { return [] }
            if names.count == 1 {
                return ["rows wait for a scope that was never synced: \(first). Sync it with --scope \(first)."]
            }
            let rest = names.count > shown ? " and \(names.count - shown) more" : ""
            let list = names.prefix(shown).joined(separator: ", ")
            let told = "rows wait for \(names.count) scopes that were never synced: \(list)\(rest)."
            return [told + " Sync them with --scope NAME."]
        }
    }
#endif
