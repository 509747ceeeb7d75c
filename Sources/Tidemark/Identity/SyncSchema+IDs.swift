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

    /// New rows with ids of their own will be refused: a key that SQLite counted up, or rows older than the library.
    private mutating func warnAboutIDs(_ db: Database, _ shape: TableSchema) throws {
        // The server may have them already.
        guard try FirstCapture.scope(db, shape.name) == nil else { return }
        let isOwn = "NOT \(TemporaryShape.matchesSQL(shape.key[0].sql))"
        guard try ShadowTable(shape).isAnyInsertMarked(db, where: isOwn),
            let index = shapes.firstIndex(where: { $0.name == shape.name })
        else { return }
        shapes[index].remarks.append(.ownIDs(table: shape.name))
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

    /// Refuses tables that do not go with the ids that the server assigns.
    func checkIDs(_ declarations: Declarations) throws {
        for shape in shapes where declarations.entity(shape.name).ids == .server { try shape.checkAssignedIDs() }
    }
}

extension TemporaryShape {
    /// SQL: whether an expression's value is a temporary id.
    static func matchesSQL(_ expression: String) -> String {
        """
        CASE typeof(\(expression))
        WHEN 'integer' THEN \(expression) BETWEEN \(integers.lowerBound) AND \(integers.upperBound)
        ELSE \(expression) GLOB '\(prefix)?*' END
        """
    }
}

extension TableSchema {
    /// Ids below this are taken for counted ones: a random 63-bit integer hardly ever is.
    private static let countedLimit: Int64 = 1 << 32

    /// Of a key of several columns no index may find the counted ones: so many rows are looked at.
    private static let sampledRows = 1000

    /// Whether the key is of integers that seem to count up on each device: new rows of two devices would get one id.
    fileprivate func mayCountUp(_ db: Database) throws -> Bool {
        guard key.allSatisfy({ $0.affinity == .integer }) else { return false }
        // A column that refers to a record tells as much apart as that record's own id; where all do, the row belongs
        // to those records.
        let referring = try Query(db, "PRAGMA foreign_key_list(\(sql))").rows(db) { SQLName($0.text(3)) }
        let counting = key.count == 1 ? key : key.filter { !referring.contains(SQLName($0.name)) }
        guard !counting.isEmpty else { return false }
        let rows = key.count == 1 ? sql : "(SELECT * FROM \(sql) LIMIT \(Self.sampledRows))"
        let isCounted = counting.map { "\($0.sql) BETWEEN 0 AND \(Self.countedLimit)" }.joined(separator: " AND ")
        return try Query(
            db,
            """
            SELECT EXISTS (SELECT 1 FROM \(rows) WHERE \(isCounted)) OR NOT EXISTS (SELECT 1 FROM \(sql))
            """
        ).first(db) { $0.integer(0) != 0 } ?? false
    }
}

/// The tables whose ids the server assigns, as the file remembers them.
enum AssignedIDs {
    private static let key = "assigned_ids"

    static func read(_ db: Database) throws -> [String] { try Meta.get(db, key).map { NameList($0).list } ?? [] }

    static func write(_ db: Database, _ tables: [String]) throws { try Meta.set(db, key, NameList(tables).text) }
}
