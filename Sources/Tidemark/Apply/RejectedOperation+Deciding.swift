import GRDB
import TidemarkWire

// MARK: - Deciding

extension RejectedOperation {
    /// Writes the edit again as the app would: it is captured and sent like any other.
    func retry(_ db: Database, _ schema: SyncSchema, changing changes: [String: Value]) throws {
        guard let stored = try stored(db),
            let rewriting = Rewriting(db, schema[entity], record: stored.record, in: scope)
        else { return }
        try rewriting.check(changes)
        if stored.isLocal, try RecordTable(rewriting.shape).shadow(db, rewriting.key) != nil {
            // The edit is on screen; sealing looks at it again, and forgets the refusal.
            if !changes.isEmpty { try rewriting.put(changes, whole: nil) }
            try RecordTable(rewriting.shape).mark(db, rewriting.key)
        } else if let conflict = try Conflicts.of(db, operation: id) {
            try conflict.resolve(
                with: changes.isEmpty ? .keepMine : .merge(fields.merging(changes) { $1 }), db, schema)
        } else if isDelete {
            if try !rewriting.noteDelete() { try rewriting.delete() }
            try remove(db)
        } else {
            let edited = fields.merging(changes) { $1 }
            try rewriting.put(edited, whole: isInsert ? edited : nil)
            try remove(db)
        }
        try BlockedEdits(db: db, schema: schema).release()
    }

    /// Edits of one group that never left this device go together.
    func discard(_ db: Database, _ schema: SyncSchema) throws {
        let others = try Self.all(db).filter { other in
            guard group != nil, other.group == group, other.id != id else { return false }
            return try other.stored(db)?.isLocal == true
        }
        // An action of the schema's may change other rows of the group when an edit is undone: all are read before.
        // Rows that the server has are put back first, and once more where an insert had their place.
        var refused: [Refused] = []
        var sent: String?
        for edit in [self] + others {
            guard let stored = try edit.stored(db) else { continue }
            if stored.isLocal {
                if let found = try edit.refused(db, schema, record: stored.record) { refused.append(found) }
            } else {
                sent = stored.record
            }
            try edit.remove(db)
        }
        let made = SentInserts(db)
        try ConnectionSwitch.foreignKeys.off(db) {
            for state in [Shadow.State.known, .deleted, .absent] {
                for edit in refused where edit.shadow.state == state { try edit.undo(db, schema, made) }
            }
            for edit in refused where try edit.shadow.state == .known && edit.table.row(db, edit.key) == nil {
                try edit.undo(db, schema, made)
            }
        }
        if let sent { try undoSent(db, schema, record: sent, made) }
        try BlockedEdits(db: db, schema: schema).release()
    }

    /// A record with an edit that never left this device.
    fileprivate struct Refused {
        let table: RecordTable
        let key: [Cell]
        let shadow: Shadow
        let scope: Scope
    }

    /// Returns the record of the operation; `nil` where it has no edit any more, or was edited since.
    private func refused(_ db: Database, _ schema: SyncSchema, record: String) throws -> Refused? {
        guard let rewriting = Rewriting(db, schema[entity], record: record, in: scope) else { return nil }
        let table = RecordTable(rewriting.shape)
        guard let shadow = try table.shadow(db, rewriting.key), shadow.mark == nil else { return nil }
        return Refused(table: table, key: rewriting.key, shadow: shadow, scope: scope)
    }

    /// Children of an insert that the server refused get `ON DELETE` applied, as if their parent had been deleted.
    private func undoSent(_ db: Database, _ schema: SyncSchema, record: String, _ made: SentInserts) throws {
        guard isInsert, let rewriting = Rewriting(db, schema[entity], record: record, in: scope),
            try RecordTable(rewriting.shape).row(db, rewriting.key) == nil,
            try !QuarantinedRow.exists(db, entity, record)
        else { return }
        try DeleteActions(db: db, schema: schema, scope: scope, now: wallClockMilliseconds(), sent: made)
            .apply(of: rewriting.shape, rewriting.key, fields)
    }
}

extension RejectedOperation.Refused {
    /// Makes the row the server's again, or deletes it where the server has none.
    fileprivate func undo(_ db: Database, _ schema: SyncSchema, _ made: SentInserts) throws {
        try table.undoEdit(db, key, shadow, in: scope, now: wallClockMilliseconds(), schema, made)
    }
}
