import TidemarkServer

extension PostgresScope {
    func lane(_ lane: LaneName) throws -> Int64 { try laneRow(lane)?.number ?? 0 }

    func laneRow(_ lane: LaneName) throws -> LaneRow? {
        guard kept.exists else { return nil }
        if let known = laneRows[lane] { return known }
        let found = try LaneRow.find(session, name, lane)
        laneRows[lane] = .some(found)
        return found
    }

    func verdict(_ lane: LaneName, _ number: Int64) throws -> StoredVerdict? {
        guard let place = try laneRow(lane)?.place else { return nil }
        return try LaneRow.verdict(session, name, place, number)
    }
}

extension PostgresScopeWriter {
    func store(_ verdict: StoredVerdict, _ lane: LaneName, _ number: Int64, at moment: Int64) throws {
        try create(at: moment)
        var laneRow = try laneRow(lane) ?? newLane()
        try laneRow.store(verdict, session, name, number)
        laneRow.number = number
        laneRow.top = max(laneRow.top, number)
        laneRows[lane] = .some(laneRow)
        memory.moved[lane] = moment
    }

    private func newLane() -> LaneRow {
        kept.lanes += 1
        memory.isChanged = true
        return LaneRow(place: kept.lanes, number: 0, top: 0)
    }

    func forgetVerdicts(_ lane: LaneName, through number: Int64) throws {
        try laneRow(lane)?.forgetVerdicts(session, name, through: number)
    }
}
