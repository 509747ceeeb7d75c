import GRDB
import TidemarkCore
import TidemarkWire

extension SyncSchema {
    /// Takes in what the app said about its tables, and refuses what cannot be, before anything is sent.
    func adding(_ tables: [SyncedTable], _ db: Database) throws -> SyncSchema {
        var schema = self
        for table in tables {
            guard let index = shapes.firstIndex(where: { $0.name.isSameName(as: table.name) }) else { continue }
            schema.shapes[index].keepsDeleted = table.keepsDeleted?.milliseconds
            let shape = shapes[index]
            if table.ids == .server {
                try shape.checkAssignedIDs()
                try schema.warnAboutIDs(db, shape)
            }
            if table.ids == nil, try shape.mayCountUp(db) {
                schema.shapes[index].remarks.append(.countedIDs(table: shape.name))
            }
            for reference in table.references {
                schema.documents.append(try document(reference, in: shape))
            }
        }
        return schema
    }

    private func document(_ reference: SyncedTable.DocumentID, in shape: TableSchema) throws -> DocumentReference {
        guard shape.dataIndex(reference.column) != nil else {
            throw SyncError(
                .tableUnsupported, "Table '\(shape.name)' has no column '\(reference.column)' outside its key.",
                hint: "Name the column that holds the JSON documents, spelled as in its schema.")
        }
        guard JSONPath(reference.path) != nil else {
            throw SyncError(
                .tableUnsupported, "'\(reference.path)' is no path into a JSON document.",
                hint: "Write names, [0] and [*] behind $, as in $.items[*].order_id.")
        }
        guard let target = self[reference.table] else {
            throw SyncError(
                .tableUnsupported, "References to '\(reference.table)' are declared, which is not synced.",
                hint: "Name one of the engine's tables.")
        }
        return DocumentReference(
            table: shape.name, column: reference.column, path: reference.path, entity: target.name)
    }
}
