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
            condition = "WHERE t.\(table.key.sql) > \(table.key.place(2))"
            parameters.append(.bytes(last))
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
        """
        WITH part AS (
            SELECT t.\(table.key.sql) AS key, t.\(table.key.sql)::text AS record, \(table.scopeName(of: "t")) AS scope
            FROM \(table.sql) AS t \(condition) ORDER BY t.\(table.key.sql) LIMIT $1),
        noted AS (
            INSERT INTO capture (table_id, scope, record, is_new)
            SELECT \(table.id), scope, record, true FROM part WHERE \(table.isScope("scope")))
        SELECT count(*), count(*) FILTER (WHERE \(table.isScope("scope"))),
            (SELECT record FROM part ORDER BY key DESC LIMIT 1) FROM part
        """
    }
}
