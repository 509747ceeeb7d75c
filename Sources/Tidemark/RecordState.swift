public import TidemarkWire

/// How one record stands between this device and the server.
public enum RecordState: Hashable, Sendable {
    /// As on the server, as far as is known.
    case confirmed
    /// Edited here, not sealed for sending yet.
    case pending
    /// Sealed for sending; the server's verdict has not come.
    case sent
    /// The last edit was refused; it is kept until the app decides.
    case rejected(reason: String)
    /// The last edit met another one, and somebody has to decide; the row is the server's until then.
    case undecided
    /// The row is kept aside: this device's schema does not take it as things stand.
    case parked(reason: String)
}

/// An edit that was refused, with the reason. It is kept until the app edits the record again or discards it.
public struct RejectedOperation: Hashable, Sendable, Identifiable {
    /// The place in the outbox.
    public var id: Int64
    /// Where the record belongs.
    public var scope: Scope
    /// The table's name.
    public var entity: String
    /// The record's id on the wire.
    public var record: String
    /// Whether the edit was a delete.
    public var isDelete: Bool
    /// The fields as they were edited.
    public var fields: [String: Value]
    /// Why, for programs: a code of the protocol or of the operator's own rules.
    public var code: String
    /// Why, for people.
    public var detail: String
    /// What can be done about it.
    public var hint: String
    /// When the verdict came, in milliseconds since 1970.
    public var rejectedAt: Int64
}
