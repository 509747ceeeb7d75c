import TidemarkWire

/// How one record stands between this device and the server.
public enum RecordState: Hashable, Sendable {
    /// As on the server, as far as is known; of a deleted record, that nothing of it waits.
    case confirmed
    /// Edited here, not sealed for sending yet.
    case pending
    /// Sealed for sending; the server's verdict has not come.
    case sent
    /// The last edit was refused; it is kept until the app decides.
    case rejected(reason: String)
    /// The edit is not sent since another record is in its way: one that goes first, or one that it refers to and whose
    /// insert was refused.
    case blocked(reason: String)
    /// The last edit met another one, and somebody has to decide; the row is the server's until then.
    case undecided
    /// The last write was seen by no trigger, and was found with the manifest: it is not compared with the server yet,
    /// or is one of too many (``SyncEngine/inferredEdits()``).
    case inferred
    /// The row is quarantined: this device's schema does not take it as things stand.
    case quarantined(reason: String)
}

extension RecordState: CustomStringConvertible {
    /// A sentence for a log or a screen, without row data but for what a reason tells.
    public var description: String {
        switch self {
        case .confirmed: "As on the server."
        case .pending: "Edited here, not sent yet."
        case .sent: "Sent without a verdict."
        case .rejected(let reason): "Rejected: \(reason.printable)"
        case .blocked(let reason): "Blocked: \(reason.printable)"
        case .undecided: "In an open conflict."
        case .inferred: "Changed here, and no trigger saw it."
        case .quarantined(let reason): "Kept outside its table: \(reason.printable)"
        }
    }
}
