import GRDB
import TidemarkWire

/// The triggers that note which attachments rows begin and cease to name, and the index that finds the rows.
///
/// Rows change by the app's writes, from whatever process, and by what is applied, partly with statements that write
/// thousands of rows; a trigger sees all of them in one place, in their transaction, and costs nothing where a row
/// names none. So these do not look away while changes are applied.
struct AttachmentCapture {
    let shape: TableSchema

    func triggers() -> [(name: String, sql: String)] {
        guard !shape.attachments.isEmpty else { return [] }
        let isNamed = shape.attachments.map { column in
            (old: "OLD.\(column.sql) IS NOT NULL", new: "NEW.\(column.sql) IS NOT NULL", both: differs(column.sql))
        }
        let moves = shape.scopeIndex.map { [differs(shape.data[$0].sql)] } ?? []
        return [
            make("attach_insert", "AFTER INSERT", anySQL(isNamed.map(\.new)), noteReferences("NEW", isNew: true)),
            make(
                "attach_update", "AFTER UPDATE", anySQL(isNamed.map(\.both) + moves),
                noteReferences("OLD", isNew: false) + noteReferences("NEW", isNew: true)),
            make("attach_delete", "AFTER DELETE", anySQL(isNamed.map(\.old)), noteReferences("OLD", isNew: false)),
        ]
    }

    /// Makes the indexes. Where the triggers were not there all the time, all that rows name is noted.
    ///
    /// To be called before the triggers are made.
    func install(_ db: Database) throws {
        let standing = try Query(
            db,
            """
            SELECT name FROM sqlite_master
            WHERE type = 'index' AND tbl_name = ?1 COLLATE NOCASE AND name LIKE ?2 ESCAPE '\\'
            """
        ).rows(
            db, [.text(shape.name), .text(TableSchema.attachmentIndexPrefix.replacing("_", with: "\\_") + "%")]
        ) { $0.text(0) }
        let wanted = Set(shape.attachments.map(shape.attachmentIndex))
        for index in standing where !wanted.contains(index) { try db.execute(sql: "DROP INDEX \(quoted(index))") }
        for column in shape.attachments where !standing.contains(shape.attachmentIndex(column)) {
            let index = quoted(shape.attachmentIndex(column))
            try db.execute(
                sql: """
                    DROP INDEX IF EXISTS \(index);
                    CREATE INDEX \(index) ON \(shape.sql)(\(column.sql)) WHERE \(column.sql) IS NOT NULL
                    """)
        }
        guard try !isStanding(db) else { return }
        for column in shape.attachments {
            try db.execute(
                sql: """
                    INSERT INTO tidemark_blob_change(reference, scope, own, automatic)
                    SELECT here.\(column.sql), \(scope("here")), 1, \(column.isAutomatic ? 1 : 0)
                    FROM \(shape.sql) AS here WHERE \(isReference("here.\(column.sql)")) \(BlobChanges.merging)
                    """)
        }
    }

    private func isStanding(_ db: Database) throws -> Bool {
        let installed = try Query(
            db, "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE"
        ).rows(db, [.text(shape.name)]) { ($0.text(0), $0.text(1)) }
        return triggers().allSatisfy { wanted in installed.contains { $0 == (wanted.name, wanted.sql) } }
    }

    // MARK: Parts

    private func make(
        _ suffix: String, _ event: String, _ condition: String, _ body: [String]
    ) -> (name: String, sql: String) {
        let name = CaptureTriggers.name(suffix, of: shape.name)
        let statements = body.map { "  \($0);\n" }.joined()
        return (
            name, "CREATE TRIGGER \(quoted(name)) \(event) ON \(shape.sql) WHEN \(condition)\nBEGIN\n\(statements)END"
        )
    }

    /// Notes references that a row begins or ceases to name. Bytes of the app's own writes are to be uploaded; those of
    /// applied rows came from the server.
    private func noteReferences(_ row: String, isNew: Bool) -> [String] {
        shape.attachments.map { column in
            let own = isNew ? "NOT EXISTS (SELECT 1 FROM tidemark_applying)" : "0"
            let automatic = isNew && column.isAutomatic ? 1 : 0
            return """
                INSERT INTO tidemark_blob_change(reference, scope, own, automatic) \
                SELECT \(row).\(column.sql), \(scope(row)), \(own), \(automatic) \
                WHERE \(isReference("\(row).\(column.sql)")) \(BlobChanges.merging)
                """
        }
    }

    private func scope(_ row: String) -> String {
        switch shape.rule.kind {
        case .constant(let scope): literal(scope.name)
        case .column: "coalesce(\(shape.scopeSQL(row)), '')"
        }
    }

    /// Only texts that begin so name bytes (`BlobReference`).
    private func isReference(_ value: String) -> String { "typeof(\(value)) = 'text' AND \(value) GLOB 'sha256:*'" }

    private func differs(_ column: String) -> String { "OLD.\(column) IS NOT NEW.\(column)" }
}
