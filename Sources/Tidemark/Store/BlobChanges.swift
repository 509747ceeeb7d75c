import GRDB
import TidemarkWire

/// References of attachments that rows have begun or ceased to name, as triggers note them. The next look at a note
/// finds out what rows name by then. A note too many costs nothing.
enum BlobChanges {
    /// Notes are looked at in transactions of so many.
    static let batch = 500

    /// The end of a statement that notes references: a note that stands takes in the new one.
    static let merging = """
        ON CONFLICT(reference, scope) DO UPDATE SET own = max(own, excluded.own), \
        automatic = max(automatic, excluded.automatic)
        """

    static func areAny(_ db: Database) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_blob_change LIMIT 1").first(db) { _ in true } ?? false
    }

    /// Looks at up to ``batch`` notes, and removes them.
    ///
    /// - Parameter now: in milliseconds since 1970.
    static func digest(_ db: Database, _ schema: SyncSchema, now: Int64) throws {
        let notes = try Query(db, "SELECT reference, scope, own, automatic FROM tidemark_blob_change LIMIT ?1")
            .rows(db, [.integer(Int64(batch))]) { row in
                Note(
                    reference: row.text(0), scope: row.text(1), isOwn: row.integer(2) != 0,
                    isAutomatic: row.integer(3) != 0)
            }
        let quarantined = Quarantined(db, schema)
        for note in notes {
            try Query(db, "DELETE FROM tidemark_blob_change WHERE reference = ?1 AND scope = ?2")
                .execute([.text(note.reference), .text(note.scope)])
            // A row whose column names no scope is on this device alone, and so are its bytes.
            guard let reference = BlobReference(note.reference), let scope = Scope(note.scope)?.parent else { continue }
            try digestNote(db, schema, note, reference, scope, quarantined, now: now)
        }
    }

    /// Has all that is known looked at again: what a REPLACE evicts, or a table that is not synced any more, leaves no
    /// note.
    static func noteAll(_ db: Database) throws {
        try db.execute(
            sql: """
                INSERT INTO tidemark_blob_change(reference, scope, own, automatic)
                SELECT reference, scope, 0, 0 FROM tidemark_blob WHERE 1 \(merging)
                """)
    }

    /// Has one looked at.
    ///
    /// - Parameter isOwn: whether this device has to bring it to the scope.
    static func note(_ db: Database, _ reference: BlobReference, in scope: Scope, isOwn: Bool) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_blob_change(reference, scope, own, automatic) VALUES (?1, ?2, ?3, 0) \(merging)
            """
        ).execute([.text(reference.description), .text(scope.parent.name), .flag(isOwn)])
    }

    /// A row is about to be sent to another scope. Others' edits may have put references into it, which no trigger has
    /// noted as this device's to bring.
    static func noteMove(_ db: Database, _ shape: TableSchema, _ cells: [Cell], from: Scope, to place: Scope) throws {
        for reference in shape.references(in: cells) {
            try note(db, reference, in: place, isOwn: true)
            try note(db, reference, in: from, isOwn: false)
        }
    }

    private struct Note {
        var reference: String
        var scope: String
        var isOwn: Bool
        var isAutomatic: Bool
    }

    private static func digestNote(
        _ db: Database, _ schema: SyncSchema, _ note: Note, _ reference: BlobReference, _ scope: Scope,
        _ quarantined: Quarantined, now: Int64
    ) throws {
        let known = try Blob.read(db, reference, scope)
        var blob = known ?? Blob(reference: reference, scope: scope)
        guard try isNamed(db, schema, reference, scope) else {
            if known != nil || note.isOwn, try quarantined.names.get().contains(Name(reference, scope)) {
                if note.isOwn, !blob.isStored { blob.offers = true }
                return try blob == known ? () : blob.save(db, now: now)
            }
            if try isSource(db, reference, scope) { return try pass(db, blob, now: now) }
            if known != nil { try Blob.remove(db, reference, scope) }
            return try BlobFiles.refresh(db, reference, now: now)
        }
        // The server may have collected a blob that nothing named for a while, so that it is asked again.
        if note.isOwn, !blob.isStored { blob.offers = true }
        if note.isAutomatic, blob.wanted == .not { blob.wanted = .automatically }
        guard blob != known else { return }
        try blob.save(db, now: now)
        for other in try Blob.all(db, reference) where other.scope != scope {
            if try isSource(db, reference, other.scope) { try pass(db, other, now: now) }
        }
    }

    /// Whether bytes that are not here are to come from this scope, since the app names them in another one now: no
    /// other device brings them there.
    private static func isSource(_ db: Database, _ reference: BlobReference, _ scope: Scope) throws -> Bool {
        guard try !BlobFiles.isHere(db, reference) else { return false }
        let isOffered = try Query(
            db,
            """
            SELECT EXISTS (SELECT 1 FROM tidemark_blob
                WHERE reference = ?1 AND scope <> ?2 AND offers = 1 AND stored = 0)
              OR EXISTS (SELECT 1 FROM tidemark_blob_change WHERE reference = ?1 AND scope <> ?2 AND own = 1)
            """
        ).first(db, [.text(reference.description), .text(scope.name)]) { $0.integer(0) != 0 }
        return isOffered ?? false
    }

    /// Has bytes fetched, to be uploaded to another scope.
    private static func pass(_ db: Database, _ blob: Blob, now: Int64) throws {
        guard blob.wanted == .not else { return }
        var blob = blob
        blob.wanted = .automatically
        try blob.save(db, now: now)
    }

    /// Whether a row in the scope, or in one of its sub-scopes, names the bytes; an index finds it.
    static func isNamed(
        _ db: Database, _ schema: SyncSchema, _ reference: BlobReference, _ scope: Scope
    ) throws -> Bool {
        try places(schema, scope).contains { shape, place in
            try shape.attachments.contains { column in
                try Query(db, "SELECT 1 \(rows(of: shape, in: place, naming: column)) LIMIT 1")
                    .first(db, [.text(reference.description)]) { _ in true } ?? false
            }
        }
    }

    /// Whether a row names the bytes, also one that is in no scope.
    static func isNamed(_ db: Database, _ schema: SyncSchema, _ reference: BlobReference) throws -> Bool {
        try schema.shapes.contains { shape in
            try shape.attachments.contains { column in
                try Query(db, "SELECT 1 FROM \(shape.sql) WHERE \(column.sql) = ?1 LIMIT 1")
                    .first(db, [.text(reference.description)]) { _ in true } ?? false
            }
        }
    }

    /// Whether the server has a record that names the bytes, as far as is known: one whose edits it has all taken.
    static func isNamedByServer(
        _ db: Database, _ schema: SyncSchema, _ reference: BlobReference, _ scope: Scope
    ) throws -> Bool {
        try places(schema, scope).contains { shape, place in
            let keys = shape.key.map(\.sql).joined(separator: ", ")
            return try shape.attachments.contains { column in
                let found = "SELECT \(keys) \(rows(of: shape, in: place, naming: column)) LIMIT \(lookLimit)"
                let unmarked = ShadowTable(shape).unmarkedSQL(of: found)
                return try Query(db, unmarked).rows(db, [.text(reference.description)]) { row in
                    (key: shape.key.indices.map { row.cell($0) }, isEdited: row.integer(shape.key.count) != 0)
                }.contains { row in
                    guard let record = shape.recordID(row.key)?.text else { return false }
                    let state = try RecordStateRule.first(db, for: RecordName(entity: shape.name, record: record))?
                        .state
                    // Of a refused edit of a record that the server has, its row stands here again.
                    return state == nil || state == .rejected && !row.isEdited
                }
            }
        }
    }

    /// Rows that are looked at for one whose edits are all taken.
    private static let lookLimit = 100

    private struct Name: Hashable {
        var reference: BlobReference
        var scope: Scope

        init(_ reference: BlobReference, _ scope: Scope) { (self.reference, self.scope) = (reference, scope) }
    }

    /// The references in quarantined rows. Such a row comes back into its table, and its bytes have to be there then.
    private final class Quarantined {
        private(set) lazy var names = Result { try read() }
        private let db: Database
        private let schema: SyncSchema

        init(_ db: Database, _ schema: SyncSchema) { (self.db, self.schema) = (db, schema) }

        private func read() throws -> Set<Name> {
            var names: Set<Name> = []
            for shape in schema.shapes where !shape.attachments.isEmpty {
                for case (_, let scope?, let cells) in try QuarantinedRow.rows(db, shape) {
                    for reference in shape.references(in: cells) { names.insert(Name(reference, scope.parent)) }
                }
            }
            return names
        }
    }

    /// The tables whose rows may name bytes of a scope, each with the scope or sub-scope of such rows.
    private static func places(_ schema: SyncSchema, _ scope: Scope) -> [(shape: TableSchema, place: Scope)] {
        schema.shapes.compactMap { shape in
            guard !shape.attachments.isEmpty, let place = scope.appending(subscope: shape.rule.subscope),
                shape.rule.mayHaveRows(in: place)
            else { return nil }
            return (shape, place)
        }
    }

    private static func rows(
        of shape: TableSchema, in place: Scope, naming column: TableSchema.AttachmentColumn
    ) -> String {
        let isThere = shape.isScopedByColumn ? " AND \(shape.scopeSQL("here")) = \(literal(place.name))" : ""
        return "FROM \(shape.sql) AS here WHERE here.\(column.sql) = ?1\(isThere)"
    }
}

extension Blob {
    /// The server has taken a record that names bytes. Where it got them long before, it may have collected them in
    /// between, as bytes that no record named.
    static func recordTaken(_ db: Database, naming reference: BlobReference, in scope: Scope, now: Int64) throws {
        try doubt(
            db, where: "reference = ?1 AND scope = ?2 AND (stored_at BETWEEN ?3 AND ?4) IS NOT TRUE",
            [
                .text(reference.description), .text(scope.parent.name), .integer(now - certain), .integer(now),
            ])
        guard db.changesCount > 0 else { return }
        try BlobFiles.refresh(db, reference, now: now)
        // Where they are not here, they may come from another scope that has them.
        guard try !BlobFiles.isHere(db, reference), try all(db, reference).contains(where: \.isStored) else { return }
        try BlobChanges.note(db, reference, in: scope, isOwn: true)
    }
}
