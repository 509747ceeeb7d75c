public import TidemarkWire

/// The answer to an operation, kept until the device acknowledges it.
public struct StoredVerdict: Hashable, Sendable {
    /// The fingerprint of the operation.
    public var digest: [UInt8]
    /// The answer's members, as they were sent.
    public var members: [UInt8]
    /// The version that the operation wrote; `nil` where it wrote none.
    public var version: Version?
    /// The earlier operation that this one built on.
    public var baseNumber: Int64?
    /// Whether the operation took effect; one that builds on an operation without effect is deferred.
    public var tookEffect: Bool

    /// Makes a verdict from its parts.
    public init(digest: [UInt8], members: [UInt8], version: Version?, baseNumber: Int64?, tookEffect: Bool) {
        self.digest = digest
        self.members = members
        self.version = version
        self.baseNumber = baseNumber
        self.tookEffect = tookEffect
    }
}
