import GRDB
import TidemarkWire

/// The scopes that are here only since something holds them, as the file remembers them: a process that ends without
/// releasing them leaves them to the next one.
enum HeldScopes {
    private static let key = "held"

    static func all(_ db: Database) throws -> [Scope] {
        try Meta.get(db, key).map { NameList($0).list.compactMap { Scope($0) } } ?? []
    }

    /// Begins to hold a scope. One that an engine on this file follows already stays that engine's.
    static func add(_ db: Database, _ scope: Scope) throws {
        let held = try all(db)
        guard try !held.contains(scope) && !ScopeRecord.isFollowed(db, scope) else { return }
        try set(db, held + [scope])
        try ScopeRecord.follow(db, scope)
    }

    /// What an engine follows by itself is not held any more.
    static func remove(_ db: Database, _ scopes: [Scope]) throws {
        let held = try all(db)
        let others = held.filter { !scopes.contains($0) }
        if others != held { try set(db, others) }
    }

    private static func set(_ db: Database, _ scopes: [Scope]) throws {
        try Meta.set(db, key, NameList(scopes.map(\.name)).text)
    }

    /// Takes a scope off the device, but for one that has anything the server does not have; `false` for that.
    static func evict(_ db: Database, _ scope: Scope, _ layout: Layout, now: Int64) throws -> Bool {
        guard try all(db).contains(scope) else { return true }
        guard try !hasUnsynced(db, scope, layout) else { return false }
        try ScopeRemoval(scope: scope, layout: layout, declarations: Declarations(), isLoss: false, now: now).run(db)
        try db.inTransaction {
            try remove(db, [scope])
            try Query(db, "DELETE FROM tidemark_scope WHERE name = ?1").execute([.text(scope.name)])
            return .commit
        }
        return true
    }

    /// Whether the scope has edits that the server has not taken: not sent, under way, refused, set aside or waiting
    /// for a decision.
    private static func hasUnsynced(_ db: Database, _ scope: Scope, _ layout: Layout) throws -> Bool {
        for shape in layout.shapes(in: scope) {
            for place in shape.placesSQL(scope) {
                let sql = "SELECT 1 FROM \(shape.shadowSQL) WHERE tidemark_mark IS NOT NULL AND \(place) LIMIT 1"
                if try Query(db, sql).first(db, [], { _ in true }) != nil { return true }
            }
        }
        let unsettled = [
            "tidemark_operation WHERE finished_at IS NULL AND", "tidemark_operation WHERE status = 'rejected' AND",
            "tidemark_conflict WHERE is_open AND", "tidemark_parked WHERE leaving <> 0 AND",
            "tidemark_inferred WHERE", "tidemark_aside WHERE",
        ]
        return try unsettled.contains { place in
            try Query(db, "SELECT 1 FROM \(place) scope = ?1 LIMIT 1").first(db, [.text(scope.name)], { _ in true })
                != nil
        }
    }
}
