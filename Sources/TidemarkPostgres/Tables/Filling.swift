/// Notes the rows that were there before the triggers, in the order of their keys, so that they become records like
/// whatever is written later. It goes on where it stood, in whatever process.
enum Filling {
    private static let state = Statement(
        "fill state", "SELECT filled_to, is_filled FROM attached_table WHERE id = $1 FOR NO KEY UPDATE")
    private static let keep = Statement(
        "keep fill", "UPDATE attached_table SET filled_to = coalesce($2::text, filled_to), is_filled = $3 WHERE id = $1"
    )

    static func step(_ session: Session, _ table: AttachedTable, limit: Int) throws -> PostgresStore.FillStep {
        let state = try session.change(Request(state, .integer(table.id)))
        guard state.count > 0 else { throw TableError.notAttached(table.entity) }
        guard !state.flag(0, 1) else { return PostgresStore.FillStep(rows: 0, placeless: 0, isLast: true) }
        try session.write(Attaching.plainStrings)
        try session.write(AttachedTable.allRows)
        var parameters: [Parameter] = [.integer(Int64(limit))]
        var condition = ""
        if let last = state.array(0, 0) {
            guard let values = table.key.values(of: String(decoding: last, as: UTF8.self)) else {
                throw TableError(
                    .keyUnsupported, "a key of \(table.sql) holds a control character that no id has",
                    hint: "take U+0008 and U+000C out of the columns \(table.key.label)")
            }
            condition = "WHERE \(table.key.isBehind("t", from: 2))"
            parameters += values
        }
        let answer = try session.change(Request(Statement("", sql(table, condition)), parameters))
        guard try session.ask([table.isInPlace]).first?.flag(0, 0) == true else {
            throw TableError(
                .tableUnknown, "\(table.sql) is not the table that was attached as \(table.entity)",
                hint: "give the table its name back, or detach the entity")
        }
        let (rows, placed) = (Int(try answer.integer(0, 0)), Int(try answer.integer(0, 1)))
        let last = answer.array(0, 2).map { Parameter.bytes($0) } ?? .null
        try session.write(keep, .integer(table.id), last, .flag(rows < limit))
        return PostgresStore.FillStep(rows: rows, placeless: rows - placed, isLast: rows < limit)
    }

    private static func sql(_ table: AttachedTable, _ condition: String) -> String {
        let order = table.key.columns.map { "t.\($0.sql)" }.joined(separator: ", ")
        return """
            WITH part AS (
                SELECT row_number() OVER (ORDER BY \(order)) AS place, \(table.key.id(of: "t")) AS record,
                    \(table.scopeName(of: "t")) AS scope
                FROM \(table.sql) AS t \(condition) ORDER BY \(order) LIMIT $1),
            noted AS (
                INSERT INTO capture (table_id, scope, record, is_new)
                SELECT \(table.id), scope, record, \(table.isRefilled != true) FROM part
                WHERE \(table.isScope("scope")))
            SELECT count(*), count(*) FILTER (WHERE \(table.isScope("scope"))),
                (SELECT record FROM part ORDER BY place DESC LIMIT 1) FROM part
            """
    }
}
