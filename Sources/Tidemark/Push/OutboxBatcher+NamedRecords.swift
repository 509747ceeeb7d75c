import TidemarkWire

/// The records that an operation refers to and that are not taken yet.
struct NamedRecords {
    /// Records that it names by their temporary ids.
    var temporary: [TemporaryName] = []
    /// Whether a field was left out because it names a record that names this one: it is sent when both have their ids.
    var isPartial = false
    /// Units that have to be sealed before the operation.
    var behind: [OutboxBatcher.Unit] = []
    /// The record that it has to wait for, if there is one, until that has an id.
    var missing: RecordName?
    /// The outcome for the operation where a record that it refers to waits for a verdict.
    var open: OutboxBatcher.Outcome?
    /// Whether the record goes with a group now, which waits for it.
    var hasJoined = false
}

/// A temporary id that an operation names, and its place in it.
struct TemporaryName: Hashable {
    var entity: String
    var temporary: RecordID
    var place: Reference.Place
}
