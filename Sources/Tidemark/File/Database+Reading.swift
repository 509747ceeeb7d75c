package import GRDB

extension DatabaseWriter {
    /// Every edit is counted, by the trigger that captures it; what the library applies is not.
    package func onEdits(_ notify: @escaping @Sendable () -> Void) -> AnyDatabaseCancellable {
        DatabaseRegionObservation(tracking: Table("tidemark_counter").select(Column("n")))
            .start(in: self, onError: { _ in }, onChange: { _ in notify() })
    }
}

extension Database {
    /// Whether a table has an index of this name.
    func indexExists(_ name: String, on table: String) throws -> Bool {
        try Query(
            self,
            """
            SELECT 1 FROM sqlite_master
            WHERE type = 'index' AND name = ?1 COLLATE NOCASE AND tbl_name = ?2 COLLATE NOCASE
            """
        ).first(self, [.text(name), .text(table)]) { _ in true } ?? false
    }
}
