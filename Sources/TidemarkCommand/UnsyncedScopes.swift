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
            let found = try device.database.read { db in try Pending.routedScopes(db) }
            return Set(found.map(\.parent.name)).subtracting(known).sorted()
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
