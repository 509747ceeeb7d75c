#if Server
    import Foundation
    import Tidemark

    /// Tables of a file that could be synced and are not, such as those that were made since.
    enum UnsyncedTables {
        /// Names in one line.
        private static let shown = 5

        /// - Returns: none where an app has declared what is synced.
        static func names(_ device: DeviceFile) throws -> [String] {
            guard try device.isOurs(), let declared = try device.declared() else { return [] }
            return try device.ownTables { declared[$0] == nil }
        }

        static func lines(_ names: [String]) -> [String] {
            guard let first = names.first else { return [] }
            if names.count == 1 { return ["1 table is not synced: \(first). Add it with --table \(first) or --all."] }
            let rest = names.count > shown ? " and \(names.count - shown) more" : ""
            let list = names.prefix(shown).joined(separator: ", ")
            return ["\(names.count) tables are not synced: \(list)\(rest). Add them with --table NAME or --all."]
        }
    }
#endif
