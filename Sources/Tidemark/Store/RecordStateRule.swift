import GRDB
import TidemarkWire

/// One of the conditions under which a record is not confirmed. ``RecordState`` asks them of one record, and the view
/// of a table (``RecordStateView``) of all its records, so that both say the same.
struct RecordStateRule: Hashable, Sendable {
    /// The states, as the view names them.
    enum Name: String, CaseIterable, Sendable { case pending, sent, blocked, undecided, rejected, inferred }

    var state: Name
    /// The library's table, which names records in columns `entity` and `record`.
    var table: String
    /// SQL: whether a row of that table is one that counts.
    var condition: String
    /// SQL for the reason that is shown.
    var reason = "NULL"
    /// SQL for a number by which the latest of a record's rows is found; its reason is the one that is shown.
    var order = "0"

    /// In their order: the first that holds is the record's state. Before all of them, a record with a mark is pending
    /// (``ShadowTable/isMarked``).
    static let all = [
        RecordStateRule(
            state: .blocked, table: "tidemark_blocked", condition: "reason = '\(Blocker.Reason.awaitingID.rawValue)'",
            reason: "'It waits for ' || blocker_entity || ' ' || blocker_record || ', which goes first.'"),
        // SQLite does not tell observers of a table WITHOUT ROWID: they hear of the counter, which goes on with it.
        RecordStateRule(
            state: .pending, table: "tidemark_inferred",
            condition: "\(Inferred.seedSQL) AND EXISTS (SELECT n FROM tidemark_counter)"),
        RecordStateRule(
            state: .inferred, table: "tidemark_inferred",
            condition: "NOT (\(Inferred.seedSQL)) AND (compared = 0 OR held)"
                + " AND EXISTS (SELECT n FROM tidemark_counter)"),
        RecordStateRule(state: .sent, table: Outbox.table, condition: Outbox.isOpen),
        RecordStateRule(
            state: .blocked, table: "tidemark_blocked", condition: "reason <> '\(Blocker.Reason.awaitingID.rawValue)'",
            reason: "'It refers to ' || blocker_entity || ' ' || blocker_record || ', whose insert was refused.'"),
        RecordStateRule(state: .undecided, table: "tidemark_conflict", condition: "is_open"),
        RecordStateRule(
            state: .rejected, table: Outbox.table, condition: Outbox.isRejected,
            reason: "coalesce(detail, code, state)", order: "id"),
    ]

    /// The first rule that holds for a record, and the reason that it gives.
    static func first(_ db: Database, for name: RecordName) throws -> (state: Name, reason: String?)? {
        for rule in all {
            let found = try Query(
                db,
                """
                SELECT \(rule.reason) FROM \(rule.table)
                WHERE entity = ?1 AND record = ?2 AND \(rule.condition) ORDER BY \(rule.order) + 0 DESC LIMIT 1
                """
            ).first(db, [.text(name.entity), .text(name.record)]) { (rule.state, $0.optionalText(0)) }
            if let found { return found }
        }
        return nil
    }
}
