import GRDB

/// Groups of edits: the column that names the group of a shadow.
extension ShadowTable {
    /// - Parameter row: the shadow's number.
    func group(_ db: Database, row: Int64) throws -> String? {
        try Query(db, "SELECT tidemark_group FROM \(sql) WHERE tidemark_row = ?1")
            .first(db, [.integer(row)]) { $0.optionalText(0) } ?? nil
    }

    /// - Parameter row: the shadow's number.
    func setGroup(_ db: Database, row: Int64, _ group: String) throws {
        try Query(db, "UPDATE \(sql) SET tidemark_group = ?2 WHERE tidemark_row = ?1")
            .execute([.integer(row), .text(group)])
    }

    /// Moves all records of a group into another one, or into none.
    func rename(_ db: Database, group: String, to other: String?) throws {
        try Query(db, "UPDATE \(sql) SET tidemark_group = ?2 WHERE tidemark_group = ?1")
            .execute([.text(group), .optional(other)])
    }

    func keys(_ db: Database, of group: String) throws -> [[Cell]] {
        try Query(db, "SELECT \(keyList) FROM \(sql) WHERE tidemark_group = ?1")
            .rows(db, [.text(group)]) { $0.cells(0..<shape.key.count) }
    }

    /// The records of a group with their marks, in the order in which they came into the table.
    func members(_ db: Database, of group: String) throws -> [(mark: Int64?, key: [Cell])] {
        try Query(
            db,
            """
            SELECT tidemark_mark, \(keyList) FROM \(sql)
            WHERE tidemark_group = ?1 ORDER BY tidemark_row
            """
        ).rows(db, [.text(group)]) { ($0.optionalInteger(0), $0.cells(1..<(shape.key.count + 1))) }
    }
}

extension SyncSchema {
    /// Moves all records of a group, in whichever table, into another one, or into none.
    func rename(_ db: Database, group: String, to other: String?) throws {
        for shape in shapes { try ShadowTable(shape).rename(db, group: group, to: other) }
    }
}
