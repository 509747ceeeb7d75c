public import Foundation
import GRDB
import TidemarkCore
public import TidemarkWire

/// An edit that was not sent when access to its scope was lost, or the scope was left, or a row that came back with a
/// restored table. An edit is replayed when the scope is filled again; until then, and where it is no edit, the app
/// may show it, export it or let go of it.
public struct OrphanedEdit: Hashable, Sendable, Identifiable {
    /// A kind of edit.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The record was made here, or moved into the scope; `fields` is all of it.
        case insert
        /// Some fields were edited.
        case update
        /// The record was deleted, or moved on to another scope: then it goes from this one only while that one has it.
        case delete
    }

    /// The place in the list.
    public var id: Int64
    /// Where the record belongs.
    public var scope: Scope
    /// The table's name.
    public var entity: String
    /// The record's id on the wire.
    public var record: String
    /// The kind of edit.
    public var kind: Kind
    /// The fields as they were edited; text that is not UTF-8 is a BLOB here.
    public var fields: [String: Value]
    /// Edits with the same one were made as a group: all of them are replayed, or none.
    public var group: String?
    /// Why it could not be replayed, where that was tried.
    public var reason: String?
    /// When it was orphaned, by this device's clock.
    public var orphanedAt: Date

    /// Makes an orphaned edit, for previews and tests; the engine's own are those of ``SyncEngine/orphanedEdits()``.
    public init(
        id: Int64, scope: Scope, entity: String, record: String, kind: Kind, fields: [String: Value] = [:],
        group: String? = nil, reason: String? = nil, orphanedAt: Date
    ) {
        self.id = id
        self.scope = scope
        self.entity = entity
        self.record = record
        self.kind = kind
        self.fields = fields
        self.group = group
        self.reason = reason
        self.orphanedAt = orphanedAt
    }
}

enum OrphanedEdits {
    /// A kind of edit, as the file keeps it.
    enum Stored: String {
        case insert, update, delete
        /// The record moved here from another scope, which has it back: an insert that takes it from there.
        case arrival
        /// The record moved on to another scope: a delete here that waits until that one has it.
        case departure
        /// The record was deleted elsewhere, or may have been, and came back here unseen, as by a backup: nothing that
        /// was deleted comes back by itself.
        case revival
        /// The row was here before its table was captured for the first time, or a server had taken it and lost it: it
        /// gives way to the server's.
        case seed

        /// Whether it is made anew once its scope is filled, without a word of the app.
        var comesBackByItself: Bool { self != .revival }

        var kind: OrphanedEdit.Kind {
            switch self {
            case .insert, .arrival, .revival, .seed: .insert
            case .update: .update
            case .delete, .departure: .delete
            }
        }
    }

    static func add(
        _ db: Database, _ scope: Scope, _ shape: TableSchema, _ id: RecordID, _ kind: Stored,
        fields: [Int: Cell] = [:], group: String? = nil, reason: String? = nil, now: Int64
    ) throws {
        var data = DataObject.Builder(capacity: 128)
        for (index, cell) in fields.sorted(by: { $0.key < $1.key }) {
            data.append(name: shape.data[index].wireName) { $0.kept(cell) }
        }
        try Query(
            db,
            """
            INSERT INTO tidemark_orphan(scope, entity, record, kind, fields, in_group, noted_at, reason)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
            """
        ).execute([
            .text(scope.name), .text(shape.name), .text(id.text), .text(kind.rawValue), .blob(data.finish().bytes),
            .optional(group), .integer(now), .optional(reason),
        ])
    }

    static func remove(_ db: Database, _ id: Int64) throws {
        try Query(db, "DELETE FROM tidemark_orphan WHERE id = ?1").execute([.integer(id)])
    }

    /// Notes why an edit cannot be replayed.
    static func noteRefusal(_ db: Database, _ id: Int64, _ reason: String) throws {
        try Query(db, "UPDATE tidemark_orphan SET reason = ?2 WHERE id = ?1").execute([.integer(id), .text(reason)])
    }

    /// Keeps only some fields of an edit in the list, as an update by itself, with the reason.
    static func keep(_ db: Database, _ id: Int64, only fields: DataObject, reason: String) throws {
        try Query(db, "UPDATE tidemark_orphan SET kind = ?2, fields = ?3, in_group = NULL, reason = ?4 WHERE id = ?1")
            .execute([.integer(id), .text(Stored.update.rawValue), .blob(fields.bytes), .text(reason)])
    }

    static func isAny(_ db: Database, _ scope: Scope) throws -> Bool {
        let sql = "SELECT 1 FROM tidemark_orphan WHERE scope = ?1 AND kind <> ?2 LIMIT 1"
        return try Query(db, sql).first(db, [.text(scope.name), .text(Stored.revival.rawValue)]) { _ in true } ?? false
    }

    /// Whether something of a kind is orphaned of a record, in whatever scope.
    static func contains(_ db: Database, _ kind: Stored, _ entity: String, _ record: String) throws -> Bool {
        let sql = "SELECT 1 FROM tidemark_orphan WHERE entity = ?1 AND record = ?2 AND kind = ?3 LIMIT 1"
        return try Query(db, sql).first(db, [.text(entity), .text(record), .text(kind.rawValue)]) { _ in true } ?? false
    }

    /// How many edits are orphaned, in all scopes.
    static func count(_ db: Database) throws -> Int {
        try Query.count(db, "SELECT count(*) FROM tidemark_orphan")
    }

    /// The groups of which some edit of a scope is orphaned.
    static func groups(_ db: Database, _ scope: Scope) throws -> [String] {
        try Query(
            db, "SELECT DISTINCT in_group FROM tidemark_orphan WHERE scope = ?1 AND in_group IS NOT NULL"
        ).rows(db, [.text(scope.name)]) { $0.text(0) }
    }

    struct Entry {
        var id: Int64
        var scope: String
        var entity: String
        var record: String
        var kind: Stored
        var fields: DataObject
        var group: String?
        var reason: String?
        var notedAt: Int64
    }

    static func entries(_ db: Database, _ condition: String, _ cells: [Cell] = []) throws -> [Entry] {
        try Query(
            db,
            """
            SELECT id, scope, entity, record, kind, fields, in_group, reason, noted_at FROM tidemark_orphan
            \(condition) ORDER BY id
            """
        ).rows(db, cells) { row in
            Entry(
                id: row.integer(0), scope: row.text(1), entity: row.text(2), record: row.text(3),
                kind: Stored(rawValue: row.text(4)) ?? .update, fields: try DataObject(stored: row.blob(5)),
                group: row.optionalText(6), reason: row.optionalText(7), notedAt: row.integer(8))
        }
    }

    static func all(_ db: Database) throws -> [OrphanedEdit] {
        try entries(db, "").compactMap { entry in
            guard let scope = Scope(entry.scope) else { return nil }
            return OrphanedEdit(
                id: entry.id, scope: scope, entity: entry.entity, record: entry.record, kind: entry.kind.kind,
                fields: entry.fields.keptValues, group: entry.group, reason: entry.reason,
                orphanedAt: Date(milliseconds: entry.notedAt))
        }
    }

    /// Whether anything is orphaned of a scope, of whatever kind.
    static func hasEntries(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_orphan WHERE scope = ?1 LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } ?? false
    }

    /// Whether anything is orphaned of a record, in the scope of that name.
    static func contains(_ db: Database, _ entity: String, _ record: String, in scope: String) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_orphan WHERE entity = ?1 AND record = ?2 AND scope = ?3 LIMIT 1")
            .first(db, [.text(entity), .text(record), .text(scope)]) { _ in true } ?? false
    }

    /// Returns the records of a table of which something is orphaned, with the scope of each.
    static func places(_ db: Database, _ entity: String) throws -> [(record: String, scope: String)] {
        try Query(db, "SELECT record, scope FROM tidemark_orphan WHERE entity = ?1")
            .rows(db, [.text(entity)]) { ($0.text(0), $0.text(1)) }
    }
}
