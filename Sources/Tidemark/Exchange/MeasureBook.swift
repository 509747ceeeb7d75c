/// What an engine has measured and the file does not keep yet: it goes into the transaction that takes in the next
/// answer, so that measuring costs no transaction of its own. An engine that ends before loses it.
final class MeasureBook: Sendable {
    private let unsaved = Locked(SyncMeasures())

    func note(_ change: (inout SyncMeasures) -> Void) { unsaved.withLock { change(&$0) } }

    var present: SyncMeasures { unsaved.withLock { $0 } }

    /// Takes everything out, to be stored or returned.
    func take() -> SyncMeasures {
        unsaved.withLock { measures in
            defer { measures = SyncMeasures() }
            return measures
        }
    }
}
