package import GRDB

extension DatabaseWriter {
    /// Every edit is counted, by the trigger that captures it; what the library applies is not.
    package func onEdits(_ notify: @escaping @Sendable () -> Void) -> AnyDatabaseCancellable {
        DatabaseRegionObservation(tracking: Table("tidemark_counter").select(Column("n")))
            .start(in: self, onError: { _ in }, onChange: { _ in notify() })
    }
}
