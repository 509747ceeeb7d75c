import GRDB
import TidemarkWire

extension OutboxBatcher {
    /// A record with edits that no operation carries yet, by the number of its shadow. Their order is that of the first
    /// edits.
    struct Marked: Comparable {
        var mark: Int64
        var table: Int
        var row: Int64
        var group: String?

        static func < (lhs: Marked, rhs: Marked) -> Bool {
            (lhs.mark, lhs.table, lhs.row) < (rhs.mark, rhs.table, rhs.row)
        }
    }

    /// Returns the next marks of the scope.
    func marked(_ tables: [RecordTable], after last: Marked?, limit: Int) throws -> [Marked] {
        guard limit > 0 else { return [] }
        let parts = tables.enumerated().flatMap { index, table in
            table.shape.placesSQL(scope.scope).map { place in
                ShadowTable(table.shape)
                    .nextMarksSQL(index, place, behind: last.map { ($0.mark, $0.table, $0.row) }, limit: limit)
            }
        }
        guard !parts.isEmpty else { return [] }
        let sql = parts.joined(separator: " UNION ALL ") + " ORDER BY mark, part, row LIMIT \(limit)"
        return try Query(db, sql).rows(db) {
            Marked(mark: $0.integer(0), table: Int($0.integer(1)), row: $0.integer(2), group: $0.optionalText(3))
        }
    }
}
