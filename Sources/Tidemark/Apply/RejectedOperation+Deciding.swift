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
            try rewriting.delete()
            try remove(db)
        } else {
            let edited = fields.merging(changes) { $1 }
            try rewriting.put(edited, whole: isInsert ? edited : nil)
            try remove(db)
        }
        try BlockedEdits(db: db, schema: schema).release()
    }

    /// Edits of one group that never left this device go together, inserts last: other rows of the group may refer to
    /// them.
    func discard(_ db: Database, _ schema: SyncSchema) throws {
        let others = try Self.all(db).filter { other in
            guard group != nil, other.group == group, other.id != id else { return false }
            return try other.stored(db)?.isLocal == true
        }
        for edit in (others + [self]).sorted(by: { !$0.isInsert && $1.isInsert }) { try edit.discardAlone(db, schema) }
        try BlockedEdits(db: db, schema: schema).release()
    }

    private func discardAlone(_ db: Database, _ schema: SyncSchema) throws {
        guard let stored = try stored(db) else { return }
        try remove(db)
        try undo(db, schema, isLocal: stored.isLocal, record: stored.record)
    }

    private func undo(_ db: Database, _ schema: SyncSchema, isLocal: Bool, record: String) throws {
        guard let rewriting = Rewriting(db, schema[entity], record: record, in: scope) else { return }
        let table = RecordTable(rewriting.shape)
        guard isLocal else {
            guard isInsert, try table.row(db, rewriting.key) == nil, try !QuarantinedRow.exists(db, entity, record)
            else { return }
            // Children of the record get `ON DELETE` applied, as if it had been deleted.
            let cascadeRepair = CascadeRepair(db: db, scope: scope, now: wallClockMilliseconds())
            return try cascadeRepair.repairChildren(of: rewriting.shape, rewriting.key, fields)
        }
        guard let shadow = try table.shadow(db, rewriting.key), shadow.mark == nil else { return }
        if shadow.state == .known, let id = rewriting.shape.recordID(rewriting.key) {
            try CaptureSuppression.whileApplying(db, schema) {
                try table.writeOrQuarantine(
                    db, rewriting.key, id, shadow.cells, scope: shadow.scope ?? scope.name)
            }
        } else {
            // Captured: rows that go with this one by the schema's own ON DELETE are edits like any other.
            try table.deleteRow(db, rewriting.key)
            if let id = rewriting.shape.recordID(rewriting.key) {
                try QuarantinedRow.removeEdited(db, rewriting.shape, id, shadow, scope)
            }
        }
        try table.dropShadow(db, rewriting.key)
    }
}
