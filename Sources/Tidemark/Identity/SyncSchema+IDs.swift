import GRDB
import TidemarkCore
import TidemarkWire

extension SyncSchema {
    /// New rows with ids of their own will be refused: a key that SQLite counted up, or rows older than the library.
    mutating func warnAboutIDs(_ db: Database, _ shape: TableSchema) throws {
        // The server may have them already.
        guard try FirstCapture.scope(db, shape.name) == nil else { return }
        let isOwn = "NOT \(TemporaryShape.matchesSQL(shape.key[0].sql))"
        guard try ShadowTable(shape).isAnyInsertMarked(db, where: isOwn),
            let index = shapes.firstIndex(where: { $0.name == shape.name })
        else { return }
        shapes[index].remarks.append(.ownIDs(table: shape.name))
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
    func mayCountUp(_ db: Database) throws -> Bool {
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
