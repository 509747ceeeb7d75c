/// A repair of a row that is here and not on the server.
enum RecordRepair: Hashable, Sendable {
    /// The row may be unsent: it stays, and is sent.
    case keepingLocal
    case discardingLocal
}
