import TidemarkWire

/// Who a device is: nobody speaks for another's.
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

extension Access {
    /// The device that a caller says it is; `nil` where it does not say.
    func device(_ client: String?) throws(Problem) -> DeviceName? {
        guard let client else { return nil }
        guard Identifier.isClient(client) else {
            throw Problem(
                .invalidIdentifier, "In `\(ProtocolVersion.clientHeader)`: a name that is not of the allowed form.")
        }
        return DeviceName(principal: principal, client: client)
    }
}
