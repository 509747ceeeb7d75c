import TidemarkCore
public import TidemarkWire

/// The name of a device within its principal's: nobody speaks for another's device.
public struct DeviceName: Hashable, Sendable {
    /// The token's `sub`.
    public var principal: String
    /// The device.
    public var client: String

    /// Makes a name from its parts.
    public init(principal: String, client: String) {
        self.principal = principal
        self.client = client
    }

    func lane(_ lane: String) -> LaneName { LaneName(principal: principal, client: client, lane: lane) }
}

/// A lane's full name: nobody replays another's.
public struct LaneName: Hashable, Sendable {
    /// The token's `sub`.
    public var principal: String
    /// The device.
    public var client: String
    /// The lane's random id.
    public var lane: String

    /// Makes a name from its parts.
    public init(principal: String, client: String, lane: String) {
        self.principal = principal
        self.client = client
        self.lane = lane
    }
}

/// A device's standing in a scope, as a store knows it.
public struct DeviceStanding: Hashable, Sendable {
    /// The version that its checkpoint holds on to: deletions above it are kept for it. `nil`: it has shown none.
    public var version: Version?
    /// When it was last heard of, in milliseconds since 1970.
    public var seen: Int64
    /// The oldest version that a verdict has named to it since it last showed a checkpoint: it holds rows from there
    /// on, although no checkpoint says so. `nil`: none.
    public var oldest: Version?
    /// What the operator asked of it last. It is written by itself, and stays where the rest changes.
    public var remedy: KeptRemedy?

    /// Makes a standing from its parts.
    public init(version: Version?, seen: Int64, oldest: Version? = nil) {
        self.version = version
        self.seen = seen
        self.oldest = oldest
    }

    var standing: Standing { Standing(version: version, seen: seen, oldest: oldest) }
}
