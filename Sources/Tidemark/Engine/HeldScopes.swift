import GRDB
import TidemarkWire

/// The scopes that are here only since something holds them, as the file remembers them: a process that ends without
/// releasing them leaves them to the next one.
enum HeldScopes {
    private static let heldKey = "held"
    /// Scopes that an engine on this file follows by itself. No hold takes them away.
    private static let ownKey = "own"

    static func all(_ db: Database) throws -> [Scope] { try list(db, heldKey) }

    /// Begins to hold a scope. One that an engine on this file follows already stays that engine's.
    static func add(_ db: Database, _ scope: Scope) throws {
        let held = try all(db)
        guard !held.contains(scope) else { return }
        if try ScopeRecord.isFollowed(db, scope) { return try endHolds(db, [scope]) }
        try set(db, heldKey, held + [scope])
        try ScopeRecord.follow(db, scope)
    }

    /// Ends the holds on scopes that an engine follows by itself from now on.
    static func endHolds(_ db: Database, _ scopes: [Scope]) throws {
        let (held, own) = (try all(db), try list(db, ownKey))
        let rest = held.filter { !scopes.contains($0) }
        if rest != held { try set(db, heldKey, rest) }
        let others = scopes.filter { !own.contains($0) }
        if !others.isEmpty { try set(db, ownKey, own + others) }
    }

    /// Forgets a scope that has left the device: the next engine that follows it begins anew.
    static func forget(_ db: Database, _ scope: Scope) throws {
        for key in [heldKey, ownKey] {
            let before = try list(db, key)
            if before.contains(scope) { try set(db, key, before.filter { $0 != scope }) }
        }
        try ScopeRecord.unfollow(db, scope)
    }

    private static func list(_ db: Database, _ key: String) throws -> [Scope] {
        try Meta.get(db, key).map { NameList($0).list.compactMap { Scope($0) } } ?? []
    }

    private static func set(_ db: Database, _ key: String, _ scopes: [Scope]) throws {
        try Meta.set(db, key, NameList(scopes.map(\.name)).text)
    }

    /// Takes a scope off the device. Returns `false` where it has anything that the server does not have: then it
    /// stays. One that an engine follows by itself stays too, and counts as done.
    static func evict(_ db: Database, _ scope: Scope, _ schema: SyncSchema, now: Int64) throws -> Bool {
        guard try !list(db, ownKey).contains(scope) else { return true }
        guard try !hasUnsynced(db, scope, schema) else { return false }
        try ScopeRemoval(scope: scope, schema: schema, declarations: Declarations(), isLoss: false, now: now).run(db)
        try db.inTransaction {
            try forget(db, scope)
            return .commit
        }
        return true
    }

    /// Whether the scope has edits that the server has not taken: not sent, on the way out of it or under way, refused,
    /// orphaned or waiting for a decision.
    private static func hasUnsynced(_ db: Database, _ scope: Scope, _ schema: SyncSchema) throws -> Bool {
        for shape in try TableRules.shapes(db, in: scope, beside: schema) {
            if try ShadowTable(shape).isAnyMarked(db, concerning: scope) { return true }
            if try hasLocalRefusals(db, scope, shape) { return true }
        }
        if try Outbox.hasOpenOrRefused(db, scope) { return true }
        if try FirstCapture.isLeft(db, in: scope) { return true }
        if try Conflicts.isAnyOpen(db, scope) { return true }
        if try QuarantinedRow.isAnyLeaving(db, scope) { return true }
        return try Inferred.hasEntries(db, scope) || OrphanedEdits.hasEntries(db, scope)
    }

    /// Edits that could not be put on the wire stand under whichever scope looked at them first; a row that belongs to
    /// none keeps none here.
    private static func hasLocalRefusals(_ db: Database, _ scope: Scope, _ shape: TableSchema) throws -> Bool {
        let table = RecordTable(shape)
        return try Outbox.localRefusals(db, entity: shape.name, in: scope).contains { record in
            guard let key = RecordID(record).flatMap({ shape.key(of: $0) }), let row = try table.row(db, key) else {
                return true
            }
            return shape.scope(ofKey: key, row) != nil
        }
    }
}
