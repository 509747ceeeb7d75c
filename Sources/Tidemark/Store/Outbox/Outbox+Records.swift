import GRDB

/// The outbox of a single record, for readers of its state.
extension Outbox {
    /// The records of a table (`?1`) with operations that are open or were refused, each with its scope, as SQL.
    static let openOrRefusedRecords = """
        SELECT record, scope FROM tidemark_operation
        WHERE entity = ?1 AND (\(isOpen) OR state = 'rejected')
        """

    /// A record's open operations in a scope, oldest first.
    static func inFlight(
        _ db: Database, entity: String, record: String, scope: String
    ) throws -> [(isDelete: Bool, isReplay: Bool)] {
        try Query(
            db,
            """
            SELECT kind = 'delete', \(isReplay) FROM tidemark_operation
            WHERE entity = ?1 AND record = ?2 AND scope = ?3 AND \(isOpen) ORDER BY id
            """
        ).rows(db, [.text(entity), .text(record), .text(scope)]) { ($0.integer(0) != 0, $0.integer(1) != 0) }
    }

    /// The records of all open operations, each with the operation's id and scope.
    static func openRecords(_ db: Database) throws -> [(id: Int64, name: RecordName, scope: String)] {
        try Query(db, "SELECT id, entity, record, scope FROM tidemark_operation WHERE \(isOpen)").rows(db) {
            ($0.integer(0), RecordName(entity: $0.text(1), record: $0.text(2)), $0.text(3))
        }
    }
}
