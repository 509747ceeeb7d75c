/// Measures that the file does not keep yet: they go into the transaction that takes in the next answer, so that they
/// cost no transaction of their own. An engine that ends before loses them.
final class MeasureBook: Sendable {
    private let unsaved = Locked(SyncMeasures())

    func update(_ change: (inout SyncMeasures) -> Void) { unsaved.withLock { change(&$0) } }

    var present: SyncMeasures { unsaved.withLock { $0 } }

    /// Takes everything out, to be stored or returned.
    func drain() -> SyncMeasures {
        unsaved.withLock { measures in
            defer { measures = SyncMeasures() }
            return measures
        }
    }
}
