import Foundation
import GRDB
package import TidemarkCore
package import TidemarkServer

/// What hooks were told, and which process may call them (B3). All functions throw `StoreUnavailable` where the disk or
/// another process stands in the way for now, and GRDB's `DatabaseError` for anything else.
extension SQLiteStore: HookStore {
    package func holdHook(_ hook: String, as holder: String, for time: Duration) async throws -> Bool {
        try await writing { db in
            // Read by the one writer: the time before a wait for it would be an older one.
            let now = Date().milliseconds
            try db.execute(
                sql: """
                    INSERT INTO hook (name, holder, held_until) VALUES (?1, ?2, ?3)
                    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
                    WHERE holder = excluded.holder OR held_until < ?4 OR held_until > ?3
                    """,
                arguments: [hook, holder, now.saturatingAdding(time.milliseconds), now])
            return db.changesCount > 0
        }
    }

    package func releaseHook(_ hook: String, as holder: String) async throws {
        try await writing { db in
            try db.execute(
                sql: "UPDATE hook SET held_until = 0 WHERE name = ? AND holder = ?", arguments: [hook, holder])
        }
    }

    package func beginHook(_ hook: String, limit: Int) async throws -> Bool {
        try await writing { db in
            let place = try String.fetchOne(
                db, sql: "SELECT place FROM hook WHERE name = ? AND is_begun = 0", arguments: [hook])
            guard let place else { return false }
            let last = try String.fetchOne(
                db, sql: "SELECT max(name) FROM (SELECT name FROM scope WHERE name > ? ORDER BY name LIMIT ?)",
                arguments: [place, limit])
            guard let last else {
                try Self.begin(db, hook)
                return false
            }
            try db.execute(
                sql: "INSERT OR IGNORE INTO hook_told SELECT ?, id, head FROM scope WHERE name > ? AND name <= ?",
                arguments: [hook, place, last])
            try db.execute(sql: "UPDATE hook SET place = ? WHERE name = ?", arguments: [last, hook])
            return true
        }
    }

    package func beginHookAtStart(_ hook: String) async throws { try await writing { try Self.begin($0, hook) } }

    private static func begin(_ db: Database, _ hook: String) throws {
        try db.execute(sql: "UPDATE hook SET is_begun = 1 WHERE name = ?", arguments: [hook])
    }

    package func untold(
        to hook: String, of scopes: [Scope]?, after scope: Scope?, limit: Int
    ) async throws -> [HookMachine.News] {
        let condition =
            scopes.map { "s.name IN (\(databaseQuestionMarks(count: $0.count)))" } ?? "s.name > ?"
        let places = scopes.map { $0.map(\.name) } ?? [scope?.name ?? ""]
        let arguments = StatementArguments([hook]) + StatementArguments(places) + StatementArguments([limit])
        return try await reading { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT s.name, s.head, coalesce(t.told, 0), s.last_time, (
                        SELECT group_concat(id || ' ' || start) FROM (
                            SELECT id, start FROM incarnation WHERE scope = s.id AND start < s.head
                            ORDER BY start DESC LIMIT \(HookMachine.News.openings)))
                    FROM scope s LEFT JOIN hook_told t ON t.hook = ? AND t.scope = s.id
                    WHERE \(condition) AND s.head > coalesce(t.told, 0) AND s.erased_at IS NULL
                    ORDER BY s.name LIMIT ?
                    """, arguments: arguments
            ).compactMap { row in
                Scope(row[0] as String).map {
                    HookMachine.News(
                        scope: $0, head: row[1], told: row[2], time: row[3], openings: row[4] ?? "")
                }
            }
        }
    }

    package func keepTold(_ heads: [Scope: Version], to hook: String) async throws {
        try await writing { db in
            let keep = try db.cachedStatement(
                sql: """
                    INSERT INTO hook_told SELECT ?1, id, ?3 FROM scope WHERE name = ?2
                    ON CONFLICT (hook, scope) DO UPDATE SET told = max(told, excluded.told)
                    """)
            for (scope, head) in heads { try keep.execute(arguments: [hook, scope.name, head]) }
        }
    }
}
