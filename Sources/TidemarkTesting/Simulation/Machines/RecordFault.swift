import GRDB

/// A fault of the bookkeeping, as a bug of the client would leave it in the file. Audits are tried with them: what an
/// audit cannot see, it cannot find.
package struct RecordFault: Hashable, Sendable {
    /// The client's mistake that would leave the file so, in words.
    package var name: String
    /// A statement that changes at most one record. `$shadow` stands for the shadows of a table, `$entity` for the
    /// table's name as a literal.
    private var sql: String

    private init(_ name: String, _ sql: String) { (self.name, self.sql) = (name, sql) }

    /// Does it to the file, in the transaction that the caller has begun.
    ///
    /// - Returns: `false` where there is nothing that it could be done to.
    func plant(_ db: Database) throws -> Bool {
        let prefix = "tidemark_shadow_"
        let tables =
            sql.contains("$")
            ? try String.fetchAll(
                db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 16) = ?1",
                arguments: [prefix])
            : [prefix]
        for shadow in tables {
            let statement = sql.replacing("$shadow", with: #""\#(shadow)""#)
                .replacing("$entity", with: "'\(shadow.dropFirst(prefix.count))'")
            try db.execute(sql: statement)
            if db.changesCount > 0 { return true }
        }
        return false
    }

    private static func ofShadow(_ change: String, where condition: String) -> String {
        "\(change) WHERE tidemark_row = (SELECT tidemark_row FROM $shadow WHERE \(condition) LIMIT 1)"
    }

    private static func ofOperation(_ change: String, where condition: String = "TRUE") -> String {
        let isOpen = "finished_at IS NULL AND state IN ('sealed', 'resealed', 'replayed')"
        return """
            \(change) WHERE id = (SELECT id FROM tidemark_operation WHERE \(isOpen) AND \(condition) LIMIT 1)
            """
    }

    private static func of(_ change: String, _ table: String, where condition: String) -> String {
        """
        \(change) WHERE (entity, record, scope) = (
          SELECT entity, record, scope FROM tidemark_\(table) WHERE \(condition) LIMIT 1)
        """
    }

    package static let all: [RecordFault] = shadows + operations + places + notes

    private static let shadows = [
        RecordFault(
            "the shadow of an edit is dropped",
            ofShadow("DELETE FROM $shadow", where: "tidemark_mark > 0 AND tidemark_state = 1")),
        RecordFault(
            "the shadow of an insert is dropped",
            ofShadow("DELETE FROM $shadow", where: "tidemark_mark > 0 AND tidemark_state = 0")),
        RecordFault(
            "the mark of an edit is forgotten",
            ofShadow("UPDATE $shadow SET tidemark_mark = NULL", where: "tidemark_mark > 0")),
        RecordFault(
            "an edit is put off that the server has room for",
            ofShadow("UPDATE $shadow SET tidemark_mark = -tidemark_mark", where: "tidemark_mark > 0")),
        RecordFault(
            "the server's row beneath an edit is forgotten",
            ofShadow("UPDATE $shadow SET tidemark_state = 0, tidemark_bases = NULL", where: "tidemark_state = 1")),
        RecordFault(
            "the version of a row beneath an edit is wrong",
            ofShadow(
                "UPDATE $shadow SET tidemark_version = tidemark_version + 1", where: "tidemark_version IS NOT NULL")),
        RecordFault(
            "what an edit was made on is forgotten",
            ofShadow("UPDATE $shadow SET tidemark_bases = NULL", where: "tidemark_state = 1 AND tidemark_bases <> ''")),
    ]

    private static let operations = [
        RecordFault("an operation without a verdict is gone", ofOperation("DELETE FROM tidemark_operation")),
        RecordFault(
            "an operation without a verdict passes for a taken one",
            ofOperation("UPDATE tidemark_operation SET state = 'applied', finished_at = 1")),
        RecordFault(
            "an operation without a verdict passes for a refused one",
            ofOperation(
                "UPDATE tidemark_operation SET state = 'rejected', finished_at = 1, code = 'validation_failed'")),
        RecordFault(
            "a write in flight passes for a delete",
            ofOperation("UPDATE tidemark_operation SET kind = 'delete'", where: "kind <> 'delete'")),
    ]

    private static let places = [
        RecordFault(
            "a quarantined row is forgotten",
            of("DELETE FROM tidemark_quarantine", "quarantine", where: "move = 0")),
        RecordFault(
            "a row of the table is quarantined too",
            """
            INSERT INTO tidemark_quarantine(entity, record, scope, reason, contends, fresh, data)
            SELECT entity, record, scope, 'planted', 0, 0, X'7B7D' FROM tidemark_operation
            WHERE kind <> 'delete' AND finished_at IS NULL AND NOT EXISTS (
              SELECT 1 FROM tidemark_quarantine AS kept WHERE kept.entity = tidemark_operation.entity
              AND kept.record = tidemark_operation.record AND kept.scope = tidemark_operation.scope) LIMIT 1
            """),
        RecordFault(
            "a row that leaves passes for one that stays",
            of("UPDATE tidemark_quarantine SET move = 0", "quarantine", where: "move IN (1, 2)")),
        RecordFault(
            "a departure is forgotten", of("DELETE FROM tidemark_quarantine", "quarantine", where: "move <> 0")),
        RecordFault(
            "a departure passes for a sealed one",
            of("UPDATE tidemark_quarantine SET move = 4", "quarantine", where: "move IN (1, 2)")),
    ]

    private static let notes = [
        RecordFault(
            "a blocked edit's block is forgotten",
            "DELETE FROM tidemark_blocked WHERE id = (SELECT id FROM tidemark_blocked LIMIT 1)"),
        RecordFault(
            "a record without edits is blocked",
            """
            INSERT INTO tidemark_blocked(entity, record, blocker_entity, blocker_record, reason)
            SELECT entity, record, entity, 'planted', 'refused' FROM tidemark_known_version
            WHERE NOT deleted AND entity = $entity AND NOT EXISTS (SELECT 1 FROM $shadow) LIMIT 1
            """),
        RecordFault(
            "a version above the checkpoint is forgotten",
            of("DELETE FROM tidemark_known_version", "known_version", where: "TRUE")),
        RecordFault("a refetch is forgotten", of("DELETE FROM tidemark_refetch", "refetch", where: "TRUE")),
        RecordFault(
            "an open conflict is closed",
            """
            UPDATE tidemark_conflict SET is_open = 0
            WHERE id = (SELECT id FROM tidemark_conflict WHERE is_open LIMIT 1)
            """),
        RecordFault(
            "an open conflict is another record's",
            """
            UPDATE tidemark_conflict SET record = record || '1'
            WHERE id = (SELECT id FROM tidemark_conflict WHERE is_open LIMIT 1)
            """),
        RecordFault(
            "an orphaned edit is forgotten",
            "DELETE FROM tidemark_orphan WHERE id = (SELECT id FROM tidemark_orphan LIMIT 1)"),
        RecordFault(
            "an unseen write is forgotten",
            of("DELETE FROM tidemark_inferred", "inferred", where: "compared = 0")),
        RecordFault(
            "rows of the first capture pass for compared ones",
            "UPDATE tidemark_table SET uncompared = NULL WHERE uncompared IS NOT NULL"),
        RecordFault(
            "the access to a scope is lost",
            """
            UPDATE tidemark_scope SET lost_at = 1, checkpoint = NULL, complete = NULL
            WHERE name = (SELECT name FROM tidemark_scope WHERE complete IS NOT NULL AND lost_at IS NULL LIMIT 1)
            """),
    ]
}
