#if Server
    import Foundation
    import Tidemark

    /// Rows of a table that no other device could name, and what makes them travel.
    struct UnableRows: Codable, Hashable {
        var table: String
        var rows: Int
        /// The columns of the key that are NULL in some of the rows.
        var columns: [String]
        var reason, hint: String

        init(_ nameless: FileInspection.Nameless) {
            (table, rows, columns) = (nameless.table, nameless.rows, nameless.columns)
            let names = columns.map { "'\($0)'" }.joined(separator: ", ")
            reason = "NULL in \(columns.count == 1 ? "column" : "columns") \(names) of the key, which has to name a row"
            hint =
                "give each row a value there and declare the key NOT NULL, or move the rows to a table with a key that "
                + "each of them has"
        }

        var lines: [String] {
            ["unable to travel: \(rows) \(rows == 1 ? "row" : "rows") of \(table): \(reason)", "  hint: \(hint)"]
        }
    }
#endif
