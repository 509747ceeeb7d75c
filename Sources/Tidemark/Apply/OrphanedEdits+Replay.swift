import GRDB
import TidemarkCore
import TidemarkWire

extension OrphanedEdits {
    /// Makes the edits anew, over the rows that have come. Runs while capture is not suppressed, so that they are
    /// captured and travel, in the transaction that ends a scan of the scope or its filling. An edit that cannot be
    /// made stays in the list, with the reason. Returns how many were made.
    static func replay(_ db: Database, _ schema: SyncSchema, _ scope: Scope, _ identity: Identity?) throws -> Int {
        // Rows that are still to come by themselves come first.
        guard try Backfills.next(db, schema, scope) == nil else { return 0 }
        let entries = try entries(db, "WHERE scope = ?1", [.text(scope.name)])
            .filter(\.kind.comesBackByItself)
            .map { entry in try identity.map { try entry.named($0, db, schema) } ?? entry }
        guard !entries.isEmpty else { return 0 }
        var orphanReplay = OrphanReplay(db: db, schema: schema, scope: scope)
        var groups: Set<String> = []
        var made = 0
        for entry in entries {
            guard let group = entry.group else {
                made += try orphanReplay.make([entry])
                continue
            }
            guard groups.insert(group).inserted else { continue }
            made += try orphanReplay.make(entries.filter { $0.group == group })
        }
        return made
    }
}

extension OrphanedEdits.Entry {
    /// With the ids that another copy of this file has heard in the place of temporary ones.
    fileprivate func named(_ identity: Identity, _ db: Database, _ schema: SyncSchema) throws -> Self {
        guard let shape = schema[entity], let id = RecordID(record) else { return self }
        var operation = Operation(.upsert, entity: entity, id: id)
        operation.fields = fields
        operation.references = identity.references(in: shape)
        let resolved = try Resolution(operation) { try Alias.find(db, $0, $1) }.operation
        let own = identity.isTemporary(entity, record) ? try Alias.find(db, entity, id) : nil
        var named = self
        named.fields = resolved.fields
        named.record = (own ?? resolved.id ?? id).text
        return named
    }
}
