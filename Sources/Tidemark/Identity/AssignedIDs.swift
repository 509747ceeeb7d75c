import GRDB

/// The tables whose ids the server assigns, as the file remembers them.
enum AssignedIDs {
    private static let key = "assigned_ids"

    static func read(_ db: Database) throws -> [String] { try Meta.get(db, key).map { NameList($0).list } ?? [] }

    static func write(_ db: Database, _ tables: [String]) throws { try Meta.set(db, key, NameList(tables).text) }
}
