import GRDB
import TidemarkWire

/// A refused operation stops itself and what depends on it, and nothing else (F1): edits that refer to a record whose
/// insert was refused are held back on this device until it is taken, mended or given up.
struct Quarantine {
    let db: Database
    let layout: Layout

    static func hasHeld(_ db: Database) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_held LIMIT 1").first(db) { _ in true } ?? false
    }

    static func hold(_ db: Database, _ name: RecordName, for culprit: RecordName) throws {
        try Query(
            db,
            "INSERT INTO tidemark_held(entity, record, culprit_entity, culprit_record) VALUES (?1, ?2, ?3, ?4)"
        ).execute([
            .text(name.entity), .text(name.record), .text(culprit.entity), .text(culprit.record),
        ])
    }

    static func forget(_ db: Database, _ name: RecordName) throws {
        try Query(db, "DELETE FROM tidemark_held WHERE entity = ?1 AND record = ?2")
            .execute([.text(name.entity), .text(name.record)])
    }

    /// The records that wait for one, in the order in which they were edited.
    static func dependants(_ db: Database, of culprit: RecordName) throws -> [RecordName] {
        try Query(
            db, "SELECT entity, record FROM tidemark_held WHERE culprit_entity = ?1 AND culprit_record = ?2 ORDER BY id"
        ).rows(db, [.text(culprit.entity), .text(culprit.record)]) {
            RecordName(entity: $0.text(0), record: $0.text(1))
        }
    }

    static func culprit(_ db: Database, of name: RecordName) throws -> RecordName? {
        try Query(db, "SELECT culprit_entity, culprit_record FROM tidemark_held WHERE entity = ?1 AND record = ?2")
            .first(db, [.text(name.entity), .text(name.record)]) {
                RecordName(entity: $0.text(0), record: $0.text(1))
            }
    }

    /// The record whose refused insert stands in the way of a reference to `name`, directly or through one that waits.
    func culprit(behind name: RecordName) throws -> RecordName? {
        if try isCulprit(name) { return name }
        return try Self.culprit(db, of: name).flatMap { try isCulprit($0) ? $0 : nil }
    }

    /// Whether the record's insert was refused and it is not on its way again.
    private func isCulprit(_ name: RecordName) throws -> Bool {
        guard let isLocal = try Outbox.isRefusedInsertLocal(db, name), let shape = layout[name.entity],
            let id = RecordID(name.record),
            let key = shape.key(of: id)
        else { return false }
        let table = RecordTable(shape)
        if try table.shadow(db, key)?.mark != nil { return false }
        if try Outbox.hasOpen(db, entity: name.entity, record: name.record) { return false }
        // What this device refused to send is on screen still.
        return try isLocal || table.row(db, key) == nil
    }

    /// Lets go what waits for nothing any more: it is looked at again when the next batch is sealed.
    func release() throws {
        guard try Self.hasHeld(db) else { return }
        let culprits = try Query(db, "SELECT DISTINCT culprit_entity, culprit_record FROM tidemark_held")
            .rows(db) { RecordName(entity: $0.text(0), record: $0.text(1)) }
        for culprit in culprits where try !isCulprit(culprit) {
            for name in try Self.dependants(db, of: culprit) {
                try Self.forget(db, name)
                guard let shape = layout[name.entity], let key = RecordID(name.record).flatMap({ shape.key(of: $0) })
                else { continue }
                try RecordTable(shape).mark(db, key)
            }
        }
    }

    /// An edit was taken: refused edits of the record that it makes up for leave the list.
    static func accepted(_ db: Database, _ entry: OutboxEntry) throws {
        let refused = try Outbox.refusals(db, before: entry)
        guard !refused.isEmpty else { return }
        let fields = Set(try entry.operation().fields.values.keys)
        for refusal in refused {
            let isCovered =
                entry.isDelete || refusal.isInsert
                || fields.isSuperset(of: RejectedOperation.fields(refusal.members).keys)
            guard isCovered else { continue }
            try Outbox.remove(db, id: refusal.id)
        }
    }
}
