import TidemarkCore
public import TidemarkWire

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

/// What a store knows of a device in a scope.
public struct DeviceStanding: Hashable, Sendable {
    /// The version that its checkpoint holds on to: what was deleted above it is kept for it. `nil`: it has shown none.
    public var version: Version?
    /// When it was last heard of, in milliseconds since 1970.
    public var seen: Int64

    /// Makes a standing from its parts.
    public init(version: Version?, seen: Int64) {
        self.version = version
        self.seen = seen
    }

    var standing: Standing { Standing(version: version, seen: seen) }
}

extension SyncServer {
    /// How often a device that does nothing new is written down.
    private static let interval: Int64 = 60 * 60 * 1000

    /// What a request tells of its device; `nil` where the store knows it already.
    func news(of device: DeviceName?, at version: Version?, _ reader: any ScopeReader) throws -> DeviceStanding? {
        guard let device else { return nil }
        let standing = DeviceStanding(version: version, seen: configuration.now())
        let known = try reader.standing(of: device)?.standing
        return standing.standing.isNews(after: known, interval: Self.interval) ? standing : nil
    }

    /// Writes down what a read has told. The answer does not depend on it: a store that is full can still be read.
    func note(_ news: DeviceStanding?, of device: DeviceName?, in scope: Scope) async {
        guard let news, let device else { return }
        try? await store.write(scope) { writer in try writer.note(news, of: device) }
    }
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
