public import Foundation
public import TidemarkWire

/// Lists devices for an operator. It is called from any task, and throws as ``HistoryStore`` does.
public protocol FleetStore: Sendable {
    /// The devices that a question asks for, in its order, and how many there are of them in all.
    ///
    /// - Throws: ``StoreUnavailable`` for what passes by itself; `CancellationError` in a cancelled task; an error of
    ///   the store's own for the rest.
    func devices(_ query: FleetQuery) async throws -> FleetPage
}

/// A question for devices. Conditions that are not set hold for every device.
public struct FleetQuery: Hashable, Sendable {
    /// The order of the answer. Devices that are alike in it come in the order of their scopes, users and names.
    public enum Order: String, Hashable, Sendable, CaseIterable {
        /// Those that lack the most changes.
        case behind
        /// Those that were silent for longest.
        case seen
        /// Those with the most edits that wait.
        case pending
        /// Those whose edits have waited for longest.
        case oldest
    }

    /// Devices of this scope.
    public var scope: Scope?
    /// Devices of this user, as tokens name him in `sub`.
    public var principal: String?
    /// Devices of this name.
    public var client: String?
    /// Devices that lack at least so many changes.
    public var leastBehind: Int64?
    /// Devices with a failure, refused edits or quarantined rows.
    public var hasTrouble = false
    /// Devices that were last heard of before a moment.
    public var seenBefore: Date?
    /// What comes first.
    public var order = Order.behind
    /// Devices that are listed, at most.
    public var limit = 100

    /// Asks for all devices.
    public init() {}
}

/// A device in one scope, as a server knows it.
public struct FleetDevice: Hashable, Sendable {
    /// The scope.
    public var scope: Scope
    /// The device, by its user's name and its own.
    public var name: DeviceName
    /// When it was last written down as heard of. A device that does nothing new is written down once an hour, so it
    /// may have been heard of up to an hour later.
    public var seen: Date
    /// Changes that came behind the checkpoint which it showed then.
    public var behind: Int64
    /// When the first of those came that are still kept.
    public var behindSince: Date?
    /// The device's own word; `nil` for one that tells nothing.
    public var report: DeviceReport?
    /// When it told that.
    public var reportedAt: Date?
    /// What the operator asked of it last, and what came of that in the device's own word; `nil`: nothing.
    public var remedy: KeptRemedy?

    /// Makes a device from its parts.
    public init(scope: Scope, name: DeviceName, seen: Date, behind: Int64) {
        self.scope = scope
        self.name = name
        self.seen = seen
        self.behind = behind
    }

    /// When the oldest edit that waits was made, as far as the device has told.
    public var oldestEdit: Date? {
        guard let report, let age = report.oldest, let reportedAt else { return nil }
        return reportedAt - TimeInterval(age.wholeSeconds)
    }
}

extension FleetDevice: CustomStringConvertible {
    /// A sentence for a log: `phone-4711 of ada in w:1 was seen 2026-11-28T14:00:00Z, 3 changes behind.`
    public var description: String {
        "\(name.client) of \(name.principal) in \(scope) ".printable
            + "was seen \(seen.formatted(.iso8601)), \(counted(behind, "change")) behind."
    }
}

/// The devices that were asked for.
public struct FleetPage: Hashable, Sendable {
    /// Devices, as many as the question takes.
    public var devices: [FleetDevice]
    /// How many devices there are in all.
    public var total: Int

    /// Makes a page from its parts.
    public init(devices: [FleetDevice], total: Int) {
        self.devices = devices
        self.total = total
    }
}

extension FleetPage: CustomStringConvertible {
    /// A sentence for a log: `Lists 2 of 10 devices.`
    public var description: String { "Lists \(devices.count) of \(counted(total, "device"))." }
}
