import TidemarkServer

extension MemoryScope {
    private func stored(_ lane: LaneName) -> ScopeLog.Lane? { place.flatMap { log.scopes[$0].lanes[lane] } }

    func lane(_ lane: LaneName) throws -> Int64 { stored(lane)?.number ?? 0 }

    func lanes(of device: DeviceName, limit: Int) throws -> [(lane: String, number: Int64)] {
        guard let place else { return [] }
        return log.scopes[place].lanes.filter { $0.key.device == device }
            .sorted { ($0.value.seen, $0.value.place) > ($1.value.seen, $1.value.place) }
            .prefix(max(0, limit)).map { ($0.key.lane, $0.value.number) }
    }

    func verdict(_ lane: LaneName, _ number: Int64) throws -> StoredVerdict? { stored(lane)?.verdicts[number] }

    func store(_ verdict: StoredVerdict, _ lane: LaneName, _ number: Int64, at moment: Int64) throws {
        let place = create(at: moment)
        guard let known = stored(lane) else {
            undo { $0.log.scopes[place].lanes[lane] = nil }
            log.made += 1
            log.scopes[place].lanes[lane] = ScopeLog.Lane(
                place: log.made, number: number, seen: moment, verdicts: [number: verdict])
            return
        }
        guard known.verdicts[number] == nil else {
            throw AlreadyStored(description: "A verdict of \(lane.lane), \(number) is there.")
        }
        let former = (number: known.number, seen: known.seen)
        undo {
            $0.log.scopes[place].lanes[lane]?.number = former.number
            $0.log.scopes[place].lanes[lane]?.seen = former.seen
            $0.log.scopes[place].lanes[lane]?.verdicts[number] = nil
        }
        log.scopes[place].lanes[lane]?.number = number
        log.scopes[place].lanes[lane]?.seen = moment
        log.scopes[place].lanes[lane]?.verdicts[number] = verdict
    }

    func forgetVerdicts(_ lane: LaneName, through number: Int64) throws {
        guard let place, let former = stored(lane)?.verdicts, former.keys.contains(where: { $0 <= number }) else {
            return
        }
        undo { $0.log.scopes[place].lanes[lane]?.verdicts = former }
        log.scopes[place].lanes[lane]?.verdicts = former.filter { $0.key > number }
    }
}

extension LaneName {
    var device: DeviceName { DeviceName(principal: principal, client: client) }
}
