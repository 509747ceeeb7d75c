public import TidemarkWire

/// A temporary id's full name: two devices that use the same one never mix.
public struct TemporaryName: Hashable, Sendable {
    /// The token's `sub`.
    public var principal: String
    /// The device.
    public var client: String
    /// The record's entity.
    public var entity: String
    /// The temporary id.
    public var id: RecordID

    /// Makes a name from its parts.
    public init(principal: String, client: String, entity: String, id: RecordID) {
        self.principal = principal
        self.client = client
        self.entity = entity
        self.id = id
    }
}

/// Where an id was assigned, as one scope sees it.
public enum AssignmentPlace: Hashable, Sendable {
    /// In this scope.
    case here
    /// In another one of the store.
    case elsewhere
}
