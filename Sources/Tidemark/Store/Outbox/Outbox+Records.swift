import GRDB
import TidemarkWire

/// The outbox of a single record, for readers of its state.
extension Outbox {
    /// The records of a table with operations that are open or were refused, each with its scope.
    static func places(_ db: Database, _ entity: String) throws -> [(record: String, scope: String)] {
        try Query(
            db,
            """
            SELECT record, scope FROM tidemark_operation
            WHERE entity = ?1 AND (\(isOpen) OR \(isRejected))
            """
        ).rows(db, [.text(entity)]) { ($0.text(0), $0.text(1)) }
    }

    private static let isUnsendable = "lane IS NULL AND code = '\(RejectionCode.unsendableValue)'"

    /// Whether an edit of the record was refused here, since it cannot be put on the wire.
    static func hasUnsendable(_ db: Database, _ name: RecordName) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_operation
            WHERE entity = ?1 AND record = ?2 AND \(isRejected) AND \(isUnsendable) LIMIT 1
            """
        ).first(db, [.text(name.entity), .text(name.record)]) { _ in true } ?? false
    }

    /// Whether an edit of the record in a scope was refused for another reason, by the server or here.
    static func hasRefused(_ db: Database, _ name: RecordName, in scope: String) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_operation
            WHERE entity = ?1 AND record = ?2 AND scope = ?3 AND \(isRejected)
              AND NOT (\(isUnsendable)) LIMIT 1
            """
        ).first(db, [.text(name.entity), .text(name.record), .text(scope)]) { _ in true } ?? false
    }

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
