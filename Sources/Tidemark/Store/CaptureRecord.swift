import GRDB
import TidemarkWire

/// The file's note of a table's capture, by which it is told whether every write since has been seen. It is a second
/// view of the row that ``TableRules`` keeps of the table, of other columns.
struct CaptureRecord: Hashable {
    /// Where the table stood in the file's schema. A table that was dropped and made anew stands elsewhere.
    var identity: String?
    /// The data columns that the manifest's hashes are made of; `nil` where there is no manifest yet.
    var columns: [String]?
    /// The affinities that they had, each as its standard type.
    var types: [String]?
    /// Those of the key's columns when the first record was named: an id is made of the values as they are stored.
    var keyTypes: String?

    static func read(_ db: Database, _ table: String) throws -> CaptureRecord {
        try Query(db, "SELECT identity, columns, key_types, types FROM tidemark_table WHERE name = ?1").first(
            db, [.text(table)]
        ) { row in
            CaptureRecord(
                identity: row.optionalText(0), columns: row.optionalText(1).map { NameList($0).list },
                types: row.optionalText(3).map { NameList($0).list }, keyTypes: row.optionalText(2))
        } ?? CaptureRecord()
    }

    mutating func forget(columns names: [String]) {
        guard let columns, !names.isEmpty else { return }
        let kept = columns.indices.filter { index in !names.contains { $0.isSameName(as: columns[index]) } }
        self.columns = kept.map { columns[$0] }
        types = types.map { types in kept.map { types[$0] } }
    }

    func write(_ db: Database, _ table: String) throws {
        try Query(
            db, "UPDATE tidemark_table SET identity = ?2, columns = ?3, key_types = ?4, types = ?5 WHERE name = ?1"
        ).execute([
            .text(table), .optional(identity), .optional(columns.map { NameList($0).text }), .optional(keyTypes),
            .optional(types.map { NameList($0).text }),
        ])
    }

    /// Where a table and its capture triggers stand in the schema now. A rebuild changes that, and so do triggers that
    /// were dropped for a bulk load and made again from their own text; VACUUM may, after which the rows are compared
    /// in vain.
    static func identity(_ db: Database, _ table: String) throws -> String? {
        try Query(
            db,
            """
            SELECT max(CASE type WHEN 'table' THEN rowid || '/' || rootpage END)
              || '/' || coalesce(group_concat(CASE type WHEN 'trigger' THEN rowid END), '')
            FROM (SELECT rowid, type, rootpage FROM sqlite_master
              WHERE tbl_name = ?1
                AND (type = 'table' OR type = 'trigger' AND name LIKE 'tidemark\\_capture\\_%' ESCAPE '\\')
              ORDER BY rowid)
            """
        ).first(db, [.text(table)]) { $0.optionalText(0) } ?? nil
    }
}
