import GRDB
import TidemarkWire

// MARK: - Ids that the server assigned

extension Applier {
    /// Puts the ids that verdicts tell in the place of temporary ones, before anything else is applied.
    func substituteIDs(_ results: [Answer.Result]) throws {
        guard let identity else { return }
        var aliases = try Alias.usedAgain(db)
        for result in results {
            guard let id = result.verdict.id, let entry = try Outbox.open(db, key: result.key), entry.record != id.text,
                let temporary = try entry.operation().tempID, identity.entities.contains(entry.entity)
            else { continue }
            let alias = Alias(entity: entry.entity, temporary: temporary, id: id)
            if let known = try Alias.find(db, entry.entity, temporary), known != id {
                try fetchBoth(alias, known)
            } else {
                aliases.append(alias)
            }
        }
        guard !aliases.isEmpty else { return }
        try beforeWritingRows()
        try substitute(aliases, identity)
    }

    /// A copy of this file, in another user's hands, has sent the edit first, and its record came with a page. The
    /// server has made another one of it for this user, which no page brings to the device that made it: both are
    /// fetched, and what refers to either of them.
    private func fetchBoth(_ alias: Alias, _ known: RecordID) throws {
        for id in [alias.id, known] { try RefetchQueue.note(db, scope, alias.entity, id.text) }
        for record in try Outbox.referring(db, to: alias.temporary, of: alias.entity) {
            try RefetchQueue.note(db, scope, record.entity, record.record)
        }
    }

    /// An idmap that came with a page: this device made the record, and never heard, or no longer knows, what the
    /// server called it. Those of other devices mean nothing here: `false`. A copy of this file, in another user's
    /// hands, may have got another id for the same temporary one; that one's record is not this one's.
    func substitute(_ change: IncomingChange, _ reader: JSONReader) throws -> Bool {
        let name = reader.string(change.entity)
        let entity = schema[name]?.name ?? name
        guard let identity, identity.entities.contains(entity),
            let client = change.client, reader.string(client) == schema.clientID,
            let temporary = change.temporary.flatMap({ RecordID(reader.string($0)) }),
            let id = RecordID(reader.string(change.id)), try Alias.find(db, entity, temporary) == nil
        else { return false }
        try substitute([Alias(entity: entity, temporary: temporary, id: id)], identity)
        outcome.applied += 1
        return true
    }

    private func substitute(_ aliases: [Alias], _ identity: Identity) throws {
        for alias in aliases {
            manifest.look(alias.entity, alias.temporary)
            manifest.look(alias.entity, alias.id)
        }
        // Ids are put in the place of others by statements that the guard does not know.
        let guarding = TriggerGuard(db: db, schema: schema)
        try guarding.restore()
        try IDSubstitution(db: db, schema: schema, identity: identity, scope: scope, now: now).run(aliases)
        try guarding.accept()
    }
}
