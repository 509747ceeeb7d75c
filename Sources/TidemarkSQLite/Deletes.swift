import Foundation
import GRDB
import TidemarkServer

/// What principals have deleted lately in a scope, of entities that have a brake.
enum Deletes {
    static func note(_ db: Database, scope: Int64, by principal: String, of entity: String) throws -> [UInt8]? {
        let statement = try db.cachedStatement(
            sql: "SELECT note FROM deletes WHERE scope = ? AND principal = ? AND entity = ?")
        return try Data.fetchOne(statement, arguments: [scope, principal.whole, entity]).map { [UInt8]($0) }
    }

    static func store(
        _ db: Database, scope: Int64, _ note: [UInt8], by principal: String, of entity: String, at moment: Int64
    ) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO deletes (scope, principal, entity, note, made_at) VALUES (?, ?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET note = excluded.note, made_at = excluded.made_at
                """)
        try statement.execute(arguments: [scope, principal.whole, entity, Data(note), moment])
    }

    static func forget(_ db: Database, scope: Int64, before moment: Int64) throws {
        try db.execute(sql: "DELETE FROM deletes WHERE scope = ? AND made_at < ?", arguments: [scope, moment])
    }
}
