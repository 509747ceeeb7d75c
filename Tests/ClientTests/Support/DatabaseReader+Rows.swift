import GRDB

extension DatabaseReader {
    /// Rows as text, each value as SQLite quotes it.
    func quotedRows(_ sql: String) async throws -> [String] {
        try await read { db in
            try Row.fetchAll(db, sql: sql).map { row in
                row.databaseValues.map { $0.isNull ? "NULL" : $0.description }.joined(separator: "|")
            }
        }
    }

    /// How many rows a table has, or what else may stand behind `FROM`.
    func count(of source: String) async throws -> Int {
        try await read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM \(source)") ?? 0 }
    }
}
