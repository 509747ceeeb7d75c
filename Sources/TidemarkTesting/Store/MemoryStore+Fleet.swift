import Foundation
public import TidemarkServer
import TidemarkWire

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension MemoryStore {
    /// Lists devices, as a store on disk does.
    public func devices(_ query: FleetQuery) -> FleetPage {
        let all = look { log in log.scopes.flatMap { $0.fleet() } }.filter { query.takes($0) }
        let devices = all.sorted { query.puts($0, before: $1) }
        return FleetPage(devices: Array(devices.prefix(max(0, query.limit))), total: all.count)
    }
}

extension ScopeLog {
    fileprivate func fleet() -> [FleetDevice] {
        devices.map { name, standing in
            let version = standing.version ?? 0
            var device = FleetDevice(
                scope: self.name, name: name, seen: Date(milliseconds: standing.seen), behind: state.head - version)
            device.behindSince = (rows.all.dropFirst(rows.start(after: version)).first?.time)
                .map(Date.init(milliseconds:))
            device.remedy = standing.remedy
            (device.report, device.reportedAt) = (
                reports[name]?.report, (reports[name]?.moment).map(Date.init(milliseconds:))
            )
            return device
        }
    }
}

extension FleetQuery {
    fileprivate func takes(_ device: FleetDevice) -> Bool {
        let report = device.report
        let isTroubled = report.map { $0.refused + $0.quarantined > 0 || $0.error != nil } ?? false
        return scope.map { $0 == device.scope } ?? true && principal.map { $0 == device.name.principal } ?? true
            && client.map { $0 == device.name.client } ?? true && leastBehind.map { device.behind >= $0 } ?? true
            && (!hasTrouble || isTroubled) && seenBefore.map { device.seen.milliseconds < $0.milliseconds } ?? true
    }

    fileprivate func puts(_ one: FleetDevice, before other: FleetDevice) -> Bool {
        let (rank, last) = (rank(of: one), rank(of: other))
        guard rank == last else { return rank > last }
        let names = [one, other].map { [$0.scope.name, $0.name.principal, $0.name.client].map { Array($0.utf8) } }
        return names[0].lexicographicallyPrecedes(names[1]) { $0.lexicographicallyPrecedes($1) }
    }

    private func rank(of device: FleetDevice) -> Int64 {
        switch order {
        case .behind: device.behind
        case .seen: Int64.zero.saturatingSubtracting(device.seen.milliseconds)
        case .pending: device.report?.pending ?? 0
        case .oldest: device.oldestEdit.map { Int64.zero.saturatingSubtracting($0.milliseconds) } ?? .min
        }
    }
}
