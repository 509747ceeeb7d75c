import GRDB
import TidemarkWire

/// The SQL that seals rows of the first capture in runs.
extension RecordTable {
    /// Columns that one condition compares, at most: SQLite has a limit for its depth.
    private static let comparedColumns = 200

    /// Whether rows of the first capture may be sealed in runs: each is in the scope, its id is its key's text, and no
    /// trigger of the app's makes another row of it.
    var mayRun: Bool {
        guard !shape.isScopedByColumn, !shape.isGuarded, shape.key.count == 1,
            shape.data.count <= Self.comparedColumns
        else { return false }
        switch shape.key[0].affinity {
        case .text, .integer: return true
        case .blob, .real, .numeric: return false
        }
    }

    /// Drops the shadows of rows of the first capture, by their numbers, where they are just those of these records
    /// and nothing is known beside what was sealed. Returns whether it did.
    func dropSettled(_ db: Database, _ shadows: ClosedRange<Int64>, of records: [String]) throws -> Bool {
        let range: [Cell] = [.integer(shadows.lowerBound), .integer(shadows.upperBound)]
        let isInRange = "tidemark_row BETWEEN ?1 AND ?2"
        let found = try Query(
            db,
            """
            SELECT \(shape.key.map(\.sql).joined(separator: ", ")) FROM \(shape.shadowSQL) WHERE \(isInRange)
            AND \(RecordStatements.isSettled) AND tidemark_scope IS NULL ORDER BY tidemark_row
            """
        ).rows(db, range) { shape.recordID($0.cells(0..<shape.key.count))?.text }
        guard found == records else { return false }
        try Query(db, "DELETE FROM \(shape.shadowSQL) WHERE \(isInRange)").execute(range)
        return true
    }

    /// Reads rows of the first capture with one mark (?1), from a shadow's number (?2) on, up to so many (?4): the
    /// number, whether the row is as its shadow has it and has no operation of the entity (?3), since when it is
    /// marked, the key, and the row.
    var seedsSelect: String {
        let key = shape.key[0].sql
        // Byte by byte, as the capture triggers compare. A unary plus takes the column's affinity away.
        let isSame = shape.data.map { column in
            "+app.\(column.sql) IS noted.\(column.sql) COLLATE BINARY "
                + "AND typeof(app.\(column.sql)) = typeof(noted.\(column.sql))"
        }
        let isSeed = [
            "noted.tidemark_state = \(Shadow.State.absent.rawValue)",
            "noted.tidemark_bases = \(literal(Shadow.seedBases))",
            "noted.tidemark_edited = \(Shadow.seedStamp)", "noted.tidemark_version IS NULL",
            "noted.tidemark_scope IS NULL", "noted.tidemark_group IS NULL", "noted.tidemark_gone IS NULL",
            "app.\(key) IS NOT NULL",
        ]
        let columns = (shape.key + shape.data).map { ", noted.\($0.sql)" }.joined()
        return """
            SELECT noted.tidemark_row, \((isSeed + isSame).joined(separator: " AND ")) AND NOT EXISTS (
              SELECT 1 FROM tidemark_operation WHERE entity = ?3 AND record = CAST(noted.\(key) AS TEXT)
              AND \(Outbox.isOpen)), noted.tidemark_since\(columns)
            FROM \(shape.shadowSQL) AS noted LEFT JOIN \(shape.sql) AS app ON app.\(key) = +noted.\(key)
            WHERE noted.tidemark_routing_scope IS NULL AND noted.tidemark_mark = ?1 AND +noted.tidemark_row >= ?2
            ORDER BY noted.tidemark_row LIMIT ?4
            """
    }

    /// Takes a mark (?1) from the shadows between two numbers (?2, ?3): by their numbers alone, whatever old statistics
    /// say of the marks' index.
    var seedsUnmark: String {
        """
        UPDATE \(shape.shadowSQL) NOT INDEXED SET tidemark_mark = NULL, tidemark_since = NULL
        WHERE tidemark_row BETWEEN ?2 AND ?3 AND tidemark_mark = ?1 AND tidemark_routing_scope IS NULL
        """
    }
}
