import GRDB
import TidemarkWire

/// What the file remembers of one table's capture, to tell whether every write since has been seen.
struct CaptureRecord: Hashable {
    /// Where the table stood in the file's schema. A table that was dropped and made anew stands elsewhere.
    var identity: String?
    /// The data columns that the manifest's hashes are made of; `nil` where there is no manifest yet.
    var columns: [String]?

    static func read(_ db: Database, _ table: String) throws -> CaptureRecord {
        try Query(db, "SELECT identity, columns FROM tidemark_table WHERE name = ?1").first(db, [.text(table)]) { row in
            CaptureRecord(identity: row.optionalText(0), columns: row.optionalText(1).map { NameList($0).list })
        } ?? CaptureRecord()
    }

    func write(_ db: Database, _ table: String) throws {
        try Query(db, "UPDATE tidemark_table SET identity = ?2, columns = ?3 WHERE name = ?1").execute([
            .text(table), .optional(identity), .optional(columns.map { NameList($0).text }),
        ])
    }

    /// Where a table and its capture triggers stand in the schema now. A rebuild changes that, and so do triggers that
    /// were dropped for a bulk load and made again from their own text; VACUUM may, after which the rows are compared in
    /// vain.
    static func identity(_ db: Database, _ table: String) throws -> String? {
        try Query(
            db,
            """
            SELECT max(CASE type WHEN 'table' THEN rowid || '/' || rootpage END)
              || '/' || coalesce(group_concat(CASE type WHEN 'trigger' THEN rowid END), '')
            FROM (SELECT rowid, type, rootpage FROM sqlite_master
              WHERE tbl_name = ?1 AND (type = 'table' OR type = 'trigger' AND name LIKE 'tidemark\\_capture\\_%' ESCAPE '\\')
              ORDER BY rowid)
            """
        ).first(db, [.text(table)]) { $0.optionalText(0) } ?? nil
    }
}
