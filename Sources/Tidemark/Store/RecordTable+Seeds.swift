import GRDB
import TidemarkWire

extension RecordTable {
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
}
