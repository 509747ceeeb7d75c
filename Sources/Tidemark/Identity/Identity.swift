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
