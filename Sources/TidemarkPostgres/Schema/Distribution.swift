/// Spreads a new store's tables over several servers by scope, where the database can do that: Citus, or what has its
/// functions.
///
/// All that belongs to a scope then lies on one server. Tables that no scope can begin (decision 7) stay where the
/// nodes connect to, `writer` too, by which the nodes tell what became of a commit and whether history was lost: of a
/// loss on another server than that one they hear nothing (Documentation/Scaling.md).
enum Distribution {
    /// The tables, each with the column that names the scope; all others go where the first one's rows are.
    private static let tables = [
        ("scope", "name"), ("incarnation", "scope"), ("change", "scope"), ("digest", "scope"), ("lane", "scope"),
        ("verdict", "scope"), ("device", "scope"), ("deletes", "scope"), ("rejection", "scope"), ("capture", "scope"),
    ]

    private static let isThere = Statement(
        "can distribute", "SELECT to_regproc('create_distributed_table') IS NOT NULL")

    /// Runs in the transaction that makes the tables, while they are empty.
    static func apply(_ session: Session, _ partitions: Partitions) throws {
        guard try session.ask(isThere).flag(0, 0) else { return }
        guard partitions.count == 0 else {
            throw PostgresError(.schema, "this database distributes the tables by itself: make them without partitions")
        }
        for (table, column) in tables { try distribute(table, by: column, session) }
    }

    /// A table that a store gets later.
    static func add(_ table: String, by column: String, _ session: Session) throws {
        guard try session.ask(isThere).flag(0, 0) else { return }
        try distribute(table, by: column, session)
    }

    private static func distribute(_ table: String, by column: String, _ session: Session) throws {
        let beside = table == tables[0].0 ? "" : ", colocate_with => '\(tables[0].0)'"
        // Its result is of no type that can be read.
        let call = "create_distributed_table('\(table)', '\(column)'\(beside))"
        _ = try session.ask(Statement("distribute \(table)", "SELECT count(*) FROM \(call)"))
    }
}
