import TidemarkServer
import TidemarkWire

extension MemoryScope {
    func standing(of device: DeviceName) throws -> DeviceStanding? { place.flatMap { log.scopes[$0].devices[device] } }

    func slowest() throws -> Version? { place.flatMap { log.scopes[$0].devices.values.compactMap(\.version).min() } }

    func note(_ standing: DeviceStanding, of device: DeviceName) throws {
        // A scope that nobody wrote to has nothing to keep for anybody.
        guard let place else { return }
        let (known, report) = (log.scopes[place].devices[device], log.scopes[place].reports[device])
        undo {
            $0.log.scopes[place].devices[device] = known
            $0.log.scopes[place].reports[device] = report
        }
        // A device that was forgotten has told nothing.
        if known == nil { log.scopes[place].reports[device] = nil }
        var kept = DeviceStanding(
            version: standing.version ?? known?.version, seen: standing.seen,
            oldest: standing.version == nil ? standing.oldest ?? known?.oldest : standing.oldest)
        kept.remedy = known?.remedy
        log.scopes[place].devices[device] = kept
    }

    func note(_ remedy: KeptRemedy, of device: DeviceName) throws {
        guard let place, let known = log.scopes[place].devices[device] else { return }
        undo { $0.log.scopes[place].devices[device] = known }
        log.scopes[place].devices[device]?.remedy = remedy
    }

    func report(of device: DeviceName) throws -> DeviceReport? {
        guard let scope = place.map({ log.scopes[$0] }), scope.devices[device] != nil else { return nil }
        return scope.reports[device]?.report
    }

    func note(_ report: DeviceReport, at moment: Int64, of device: DeviceName) throws {
        guard let place, log.scopes[place].devices[device] != nil else { return }
        let known = log.scopes[place].reports[device]
        undo { $0.log.scopes[place].reports[device] = known }
        log.scopes[place].reports[device] = (report, moment)
    }

    func tally(by principal: String, of entity: String) throws -> [UInt8]? {
        place.flatMap { log.scopes[$0].deletes[[Array(principal.utf8), Array(entity.utf8)]]?.note }
    }

    func store(tally note: [UInt8], by principal: String, of entity: String, at moment: Int64) throws {
        let (place, key) = (create(at: moment), [Array(principal.utf8), Array(entity.utf8)])
        let known = log.scopes[place].deletes[key]
        undo { $0.log.scopes[place].deletes[key] = known }
        log.scopes[place].deletes[key] = (note, moment)
    }

    func unheard(devicesBefore: Int64, lanesBefore: Int64) throws -> (devices: Int, lanes: Int) {
        guard let place else { return (0, 0) }
        let scope = log.scopes[place]
        return (scope.devices(before: devicesBefore).count, scope.lanes(before: lanesBefore).count)
    }

    func forgetDevices(beyond limit: Int, besides device: DeviceName) throws {
        guard let place else { return }
        let scope = log.scopes[place]
        undo { $0.log.scopes[place] = scope }
        log.scopes[place].forgetDevices(beyond: limit, besides: device)
    }

    func forget(devicesBefore: Int64, lanesBefore: Int64, limit: Int) throws -> (devices: Int, lanes: Int) {
        guard let place else { return (0, 0) }
        let (scope, aliases) = (log.scopes[place], log.aliases)
        undo {
            $0.log.scopes[place] = scope
            $0.log.aliases = aliases
        }
        let gone = log.scopes[place].forget(devicesBefore: devicesBefore, lanesBefore: lanesBefore, limit: limit)
        log.forgetAliases(madeBefore: lanesBefore, limit: limit)
        return gone
    }
}

extension ScopeLog {
    fileprivate func devices(before moment: Int64) -> [DeviceName] {
        devices.filter { $0.value.seen < moment }
            .sorted { ($0.value.seen, $0.key.bytes) < ($1.value.seen, $1.key.bytes) }.map(\.key)
    }

    /// Lanes of devices that are not known, and were not used since a moment.
    fileprivate func lanes(before moment: Int64) -> [LaneName] {
        lanes.filter { $0.value.seen < moment && devices[$0.key.device] == nil }.keys.sorted { $0.bytes < $1.bytes }
    }

    fileprivate mutating func forgetDevices(beyond limit: Int, besides device: DeviceName) {
        let own = devices.filter { $0.key.principal == device.principal && $0.key != device }
            .sorted { $0.value.seen == $1.value.seen ? $0.key.bytes < $1.key.bytes : $0.value.seen > $1.value.seen }
        forget(own.dropFirst(max(0, limit - 1)).map(\.key))
    }

    private mutating func forget(_ gone: some Sequence<DeviceName>) {
        for device in gone {
            guard let standing = devices.removeValue(forKey: device) else { continue }
            for (name, lane) in lanes where name.device == device {
                // From now on its lanes age by themselves.
                let seen = max(lane.seen, standing.seen)
                lanes[name] = Lane(place: lane.place, number: lane.number, seen: seen)
            }
        }
    }

    fileprivate mutating func forget(
        devicesBefore: Int64, lanesBefore: Int64, limit: Int
    ) -> (devices: Int, lanes: Int) {
        let oldDevices = devices(before: devicesBefore).prefix(max(0, limit))
        forget(oldDevices)
        let oldLanes = lanes(before: lanesBefore).prefix(max(0, limit))
        for lane in oldLanes { lanes[lane] = nil }
        deletes = deletes.filter { $0.value.moment >= devicesBefore }
        return (oldDevices.count, oldLanes.count)
    }
}

extension MemoryLog {
    /// A device that is gone names nothing any more by the ids that it had made up for a while.
    fileprivate mutating func forgetAliases(madeBefore moment: Int64, limit: Int) {
        let old = aliases.filter { $0.value.made < moment }
        guard !old.isEmpty else { return }
        var known: Set<DeviceName> = []
        for scope in scopes { known.formUnion(scope.devices.keys) }
        for scope in scopes { known.formUnion(scope.lanes.keys.map(\.device)) }
        let gone = old.filter { !known.contains($0.key.device) }
            .sorted { ($0.value.made, $0.key.bytes) < ($1.value.made, $1.key.bytes) }
        for (name, _) in gone.prefix(max(0, limit)) { aliases[name] = nil }
    }
}

/// What names are put in order by: their parts as bytes.
private struct NameBytes: Comparable {
    let parts: [[UInt8]]

    init(_ parts: String...) { self.parts = parts.map { Array($0.utf8) } }

    static func < (lhs: NameBytes, rhs: NameBytes) -> Bool {
        lhs.parts.lexicographicallyPrecedes(rhs.parts) { $0.lexicographicallyPrecedes($1) }
    }
}

extension DeviceName {
    fileprivate var bytes: NameBytes { NameBytes(principal, client) }
}

extension LaneName {
    fileprivate var bytes: NameBytes { NameBytes(principal, client, lane) }
}

extension TemporaryName {
    fileprivate var device: DeviceName { DeviceName(principal: principal, client: client) }
    fileprivate var bytes: NameBytes { NameBytes(principal, client, entity, id.text) }
}
