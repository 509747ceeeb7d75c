import Foundation
import GRDB
import TidemarkServer

/// The engine's notes on what principals have done lately in a scope.
enum Tallies {
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

extension SQLiteScope {
    func tally(by principal: String, of entity: String) throws -> [UInt8]? {
        try id.flatMap { try Tallies.note(db, scope: $0, by: principal, of: entity) }
    }
}

extension SQLiteScopeWriter {
    func store(tally note: [UInt8], by principal: String, of entity: String, at moment: Int64) throws {
        try Tallies.store(db, scope: create(at: moment), note, by: principal, of: entity, at: moment)
    }
}
