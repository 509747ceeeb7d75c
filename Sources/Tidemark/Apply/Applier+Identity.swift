import GRDB
import TidemarkWire

// MARK: - Ids that the server assigned

extension Applier {
    /// Puts the ids that verdicts tell in the place of temporary ones, before anything else is applied.
    func adoptIDs(_ results: [Answer.Result]) throws {
        guard let identity else { return }
        var aliases = try Alias.usedAgain(db)
        for result in results {
            guard let id = result.verdict.id, let entry = try Outbox.open(db, key: result.key), entry.record != id.text,
                let temporary = try entry.operation().tempID, identity.entities.contains(entry.entity)
            else { continue }
            aliases.append(Alias(entity: entry.entity, temporary: temporary, id: id))
        }
        try wakeWhatWaits(for: results, identity)
        guard !aliases.isEmpty else { return }
        try beforeWritingRows()
        try adopt(aliases, identity)
    }

    /// A record that was brought back has its id, whether it is another one or not: what refers to it may go.
    private func wakeWhatWaits(for results: [Answer.Result], _ identity: Identity) throws {
        guard try !Waiting.isEmpty(db) else { return }
        for result in results {
            guard let entry = try Outbox.open(db, key: result.key), identity.entities.contains(entry.entity) else {
                continue
            }
            try Waiting.wake(db, layout, for: RecordName(entity: entry.entity, record: entry.record))
        }
    }

    /// An idmap that came with a page: this device made the record, and never heard, or no longer knows, what the
    /// server called it. Those of other devices mean nothing here: `false`.
    func adopt(_ change: IncomingChange, _ reader: JSONReader) throws -> Bool {
        let entity = reader.string(change.entity)
        guard let identity, identity.entities.contains(entity),
            let client = change.client, reader.string(client) == layout.clientID,
            let temporary = change.temporary.flatMap({ RecordID(reader.string($0)) }),
            let id = RecordID(reader.string(change.id)), try isNews(entity, temporary, id)
        else { return false }
        try adopt([Alias(entity: entity, temporary: temporary, id: id)], identity)
        outcome.applied += 1
        return true
    }

    private func adopt(_ aliases: [Alias], _ identity: Identity) throws {
        for alias in aliases {
            manifest.look(alias.entity, alias.temporary)
            manifest.look(alias.entity, alias.id)
        }
        // Ids are put in the place of others by statements that the guard does not know.
        let guarding = TriggerGuard(db: db, layout: layout)
        try guarding.restore()
        try Adoption(db: db, layout: layout, identity: identity, scope: scope, now: now).run(aliases)
        try guarding.accept()
    }

    /// Whether this file waits to hear the record's id. A copy of it, on another device, may have got another one for
    /// the same temporary id; that one's record is not this one's.
    private func isNews(_ entity: String, _ temporary: RecordID, _ id: RecordID) throws -> Bool {
        guard let known = try Alias.find(db, entity, temporary) else { return true }
        return try known != id && Outbox.names(db, being: entity, known).contains(temporary)
    }
}
