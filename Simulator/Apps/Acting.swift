import GRDB

extension Database {
    /// Runs a statement that is prepared once for all worlds: with capture's triggers on the table that takes longer
    /// than all else that an act does.
    func act(_ sql: String, _ arguments: StatementArguments) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }
}
