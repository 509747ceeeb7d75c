/// What a repair does with the rows of this device that the server lacks or has otherwise.
enum RecordRepair: Hashable, Sendable {
    /// A row that the server lacks may be unsent: it stays, and is sent. One that the server has otherwise gives way,
    /// and is listed as a conflict.
    case keepingLocal
    case discardingLocal
}
