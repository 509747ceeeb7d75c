/// The number of parts into which the log's tables are divided by scope. Tables that grow with records and devices are
/// divided; lists with a bound of their own and tables of the whole store are not.
struct Partitions {
    /// 0: none.
    var count: Int

    /// The statements that make a table with a column `scope`.
    ///
    /// - Parameter fill: how full its pages are made, in percent: rows that are updated again and again stay on theirs.
    func table(_ name: String, _ columns: String, fill: Int? = nil) -> [String] {
        let options = fill.map { " WITH (fillfactor = \($0))" } ?? ""
        guard count > 0 else { return ["CREATE TABLE \(name) (\(columns))\(options)"] }
        let parts = (0..<count).map { part in
            """
            CREATE TABLE \(name)_\(part) PARTITION OF \(name)
            FOR VALUES WITH (MODULUS \(count), REMAINDER \(part))\(options)
            """
        }
        return ["CREATE TABLE \(name) (\(columns)) PARTITION BY HASH (scope)"] + parts
    }
}
