import GRDB
import TidemarkCore
import TidemarkWire

/// Where this file holds ids that the server assigns: what the operator declared, put together with the schema's own
/// foreign keys, in synced tables and others, and with the JSON paths that the app declared.
struct Identity: Hashable {
    struct Column: Hashable {
        /// Whose ids the column holds.
        var entity: String
        var table: String
        var column: String
    }

    /// Tables whose new records get their ids from the server.
    let entities: Set<String>
    /// Columns that refer to them, also through another table's key.
    private(set) var columns: [Column] = []
    let documents: [DocumentReference]

    /// `nil` where nothing of the kind is declared: the usual case costs nothing.
    init?(_ db: Database, _ schema: SyncSchema, _ declarations: Declarations) throws {
        let shapes = schema.shapes.filter { declarations.entity($0.name).ids == .server && $0.mayTakeAssignedIDs }
        guard !shapes.isEmpty else { return nil }
        entities = Set(shapes.map(\.name))
        documents = schema.documents.filter { [entities] in entities.contains($0.entity) }
        for shape in shapes {
            var waiting = [(table: shape.name, column: shape.key[0].name)]
            while let target = waiting.popLast() {
                let children = try schema[target.table]?.children ?? TableSchema.references(db, to: target.table)
                for child in children {
                    for (column, parent) in zip(child.columns, child.parentColumns)
                    where parent.isSameName(as: target.column) {
                        let found = Column(entity: shape.name, table: child.table, column: column)
                        guard !columns.contains(found) else { continue }
                        columns.append(found)
                        waiting.append((child.table, column))
                    }
                }
            }
        }
    }

    /// Whether a record of a table still has a temporary id.
    func isTemporary(_ entity: String, _ id: String) -> Bool {
        entities.contains(entity) && TemporaryShape.matches(id)
    }

    /// Every place of a table that may hold an id of one of the entities.
    func references(in shape: TableSchema) -> [Reference] {
        let found = columns.filter { $0.table == shape.name }.compactMap { column -> Reference? in
            let name = column.column
            if let part = shape.key.firstIndex(where: { $0.name.isSameName(as: name) }) {
                return Reference(.key(part: Int64(part)), to: column.entity)
            }
            return shape.data.first { $0.name.isSameName(as: name) }
                .map { Reference(.field($0.name), to: column.entity) }
        }
        return found
            + documents.filter { $0.table == shape.name }
            .map { Reference(.document(field: $0.column, path: $0.path), to: $0.entity) }
    }
}

extension TableSchema {
    /// Whether the key is a single column that both temporary and assigned ids fit into.
    var mayTakeAssignedIDs: Bool {
        key.count == 1 && (key[0].affinity == .text || key[0].affinity == .integer)
    }

    /// Refuses what cannot be put together with `ids: server`, saying what to change.
    func checkAssignedIDs() throws {
        guard !mayTakeAssignedIDs else { return }
        throw SyncError(
            .tableUnsupported, "The server assigns the ids of '\(name)', whose key is not one TEXT or INTEGER column.",
            hint: "Give the table such a key, or declare the entity with `ids: client`.")
    }
}

/// A temporary id of this device, and the id that replaced it.
struct Alias: Hashable {
    var entity: String
    var temporary: RecordID
    var id: RecordID

    static func find(_ db: Database, _ entity: String, _ temporary: RecordID) throws -> RecordID? {
        try Query(db, "SELECT record FROM tidemark_alias WHERE entity = ?1 AND temporary = ?2")
            .first(db, [.text(entity), .text(temporary.text)]) { RecordID($0.text(0)) } ?? nil
    }

    /// The temporary ids that were used here after they had been replaced: a screen still knew them.
    static func usedAgain(_ db: Database) throws -> [Alias] {
        try Query(db, "SELECT entity, temporary, record FROM tidemark_alias WHERE again").rows(db) { row in
            guard let temporary = RecordID(row.text(1)), let id = RecordID(row.text(2)) else { return nil }
            return Alias(entity: row.text(0), temporary: temporary, id: id)
        }.compactMap { $0 }
    }

    static func noteUse(_ db: Database, _ entity: String, _ temporary: RecordID) throws {
        try Query(db, "UPDATE tidemark_alias SET again = 1 WHERE entity = ?1 AND temporary = ?2")
            .execute([.text(entity), .text(temporary.text)])
    }

    func store(_ db: Database, now: Int64) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_alias(entity, temporary, record, made_at) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT(entity, temporary) DO UPDATE SET record = excluded.record, again = 0
            """
        ).execute([.text(entity), .text(temporary.text), .text(id.text), .integer(now)])
    }

    /// A screen or a link may hold a temporary id for long.
    static let retention: Int64 = 365 * 24 * 3600 * 1000

    static func prune(_ db: Database, now: Int64) throws {
        try Query(db, "DELETE FROM tidemark_alias WHERE made_at < ?1").execute([.integer(now - retention)])
    }

    /// Returns the ids that have taken the place of temporary ones, by these.
    static func renamed(_ db: Database) throws -> [String: String] {
        let pairs = try Query(db, "SELECT temporary, record FROM tidemark_alias").rows(db) { ($0.text(0), $0.text(1)) }
        return Dictionary(pairs) { first, _ in first }
    }

    /// Returns the id that has taken the place of a temporary one in a table, whichever way the table is spelled.
    static func replacement(_ db: Database, of temporary: String, in table: String) throws -> String? {
        // Through GRDB's own reading, so that observations hear of changes.
        try String.fetchOne(
            db,
            sql: """
                SELECT record FROM tidemark_alias WHERE temporary = ?
                AND entity IN (SELECT name FROM tidemark_table WHERE name = ? COLLATE NOCASE)
                """, arguments: [temporary, table])
    }
}
