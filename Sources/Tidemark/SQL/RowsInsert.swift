import GRDB

/// An INSERT that writes many rows with few statements.
struct RowsInsert {
    /// Rows that one statement writes, where there are so many.
    private static let together = 32

    private let columns: Int
    private let one: String
    private let many: String

    /// - Parameters:
    ///   - head: what comes before `VALUES`.
    ///   - row: the values of one row, with a `?` for each that is bound.
    ///   - tail: what comes behind the rows.
    init(_ head: String, row: String, tail: String = "") {
        func statement(_ count: Int) -> String {
            "\(head) VALUES \(Array(repeating: row, count: count).joined(separator: ", ")) \(tail)"
        }
        columns = row.utf8.count { $0 == UInt8(ascii: "?") }
        (one, many) = (statement(1), statement(Self.together))
    }

    /// Writes rows in their order.
    ///
    /// - Parameter bind: binds what one row holds, from a place on.
    func run<Row>(_ db: Database, _ rows: [Row], bind: (Row, Query, Int) -> Void) throws {
        var rest = rows[...]
        while !rest.isEmpty {
            let count = rest.count >= Self.together ? Self.together : 1
            let query = try Query(db, count == 1 ? one : many)
            for (place, row) in rest.prefix(count).enumerated() { bind(row, query, place * columns + 1) }
            try query.execute()
            query.reset()
            rest = rest.dropFirst(count)
        }
    }
}
