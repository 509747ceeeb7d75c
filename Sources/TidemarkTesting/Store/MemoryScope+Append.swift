import TidemarkServer

extension MemoryScope {
    func append(_ row: NewRow, at moment: Int64) throws -> Version {
        let place = create(at: moment)
        begin(in: place)
        let key = RecordKey(row.entity, row.record)
        let (version, lastTime) = (log.scopes[place].state.head + 1, log.scopes[place].state.lastTime)
        let (entities, size) = (log.scopes[place].state.entities, log.scopes[place].state.size)
        let superseded = log.scopes[place].state.superseded
        let former = row.kind.supersedes ? try supersede(key, with: row, in: place) : []
        undo {
            $0.log.scopes[place].rows.removeLast()
            for version in former { $0.log.scopes[place].rows.mark(version, supersededBy: nil, at: nil) }
            $0.log.scopes[place].state.head = version - 1
            $0.log.scopes[place].state.lastTime = lastTime
            $0.log.scopes[place].state.entities = entities
            $0.log.scopes[place].state.size = size
            $0.log.scopes[place].state.superseded = superseded
        }
        let replaced = former.reduce(ScopeSize()) { $0 + log.scopes[place].rows[$1].size }
        log.scopes[place].state.size = size + row.size - replaced
        log.scopes[place].state.superseded = superseded + replaced
        _ = log.scopes[place].state.entities.insert(row.entity)
        for former in former { log.scopes[place].rows.mark(former, supersededBy: version, at: moment) }
        log.made += 1
        log.scopes[place].state.lastTime = max(moment, lastTime + 1)
        log.scopes[place].state.head = version
        log.scopes[place].rows.append(
            MemoryRow(
                version: version, key: key, kind: row.kind, time: log.scopes[place].state.lastTime,
                payload: row.payload, fieldVersions: row.fieldVersions, originals: row.originals, place: log.made))
        return version
    }

    /// Takes the record's live row out of the digest and the new one in. Answers the versions that it takes the place
    /// of: of an entity that held events once there may be several.
    private func supersede(_ key: RecordKey, with row: NewRow, in place: Int) throws -> [Version] {
        let rows = log.scopes[place].rows
        let former = rows.versions(of: key).map { rows[$0] }.filter { $0.supersededBy == nil }
        let live = former.last { $0.kind == .upsert }
        try digests.replace(row.entity, row.record, live?.payload, with: row.kind == .upsert ? row.payload : nil) {
            log.scopes[place].digests[Array(row.entity.utf8)]
        }
        return former.map(\.version)
    }

    /// The first row of this opening in the scope: from here on versions are this incarnation's.
    private func begin(in place: Int) {
        let state = log.scopes[place].state
        guard !state.incarnations.contains(where: { $0.id == incarnation }) else { return }
        undo { $0.log.scopes[place].state.incarnations.removeLast() }
        log.scopes[place].state.incarnations.append((incarnation, state.head))
    }

    func expire(through version: Version, events: Bool) throws {
        guard let place, version > log.scopes[place].state.retentionFloor else { return }
        let (state, rows) = (log.scopes[place].state, log.scopes[place].rows)
        let floor = state.retentionFloor
        undo {
            $0.log.scopes[place].state = state
            $0.log.scopes[place].rows = rows
        }
        log.scopes[place].state.retentionFloor = version
        _ = log.scopes[place].state.forgetOpenings()
        for row in rows.all where row.isAged(after: floor, through: version, events: events) {
            let path = row.supersededBy == nil ? \ScopeState.size : \ScopeState.superseded
            log.scopes[place].state[keyPath: path] = log.scopes[place].state[keyPath: path] - row.size
        }
        log.scopes[place].rows.removeAll { $0.isAged(after: floor, through: version, events: events) }
    }

    func sweep(supersededBeyond weight: Int64, limit: Int) throws -> Int {
        guard let place else { return 0 }
        let (state, rows) = (log.scopes[place].state, log.scopes[place].rows)
        undo {
            $0.log.scopes[place].state = state
            $0.log.scopes[place].rows = rows
        }
        var left = state.superseded.weight
        let old = rows.all.compactMap { row in row.supersededBy.map { (by: $0, row: row) } }
            .sorted { ($0.by, $0.row.version) < ($1.by, $1.row.version) }
        let gone = old.prefix(max(0, limit)).prefix { entry in
            defer { left -= entry.row.size.weight }
            return left > weight
        }
        log.scopes[place].remove(gone.map(\.row))
        return gone.count
    }
}

extension ScopeLog {
    /// Removes superseded rows, and raises the floor with them.
    fileprivate mutating func remove(_ gone: [MemoryRow]) {
        state.sweepFloor = max(state.sweepFloor, gone.compactMap(\.supersededBy).max() ?? 0)
        state.superseded = gone.reduce(state.superseded) { $0 - $1.size }
        let versions = Set(gone.map(\.version))
        rows.removeAll { versions.contains($0.version) }
    }
}

extension MemoryLog {
    /// Removes superseded rows, those first that were superseded first.
    mutating func sweep(supersededBefore moment: Int64, limit: Int) -> Int {
        var old: [(at: Int64, made: Int, place: Int, row: MemoryRow)] = []
        for (place, scope) in scopes.enumerated() {
            for row in scope.rows.all {
                if let at = row.supersededAt, at < moment { old.append((at, row.place, place, row)) }
            }
        }
        old.sort { ($0.at, $0.made) < ($1.at, $1.made) }
        let gone = old.prefix(max(0, limit))
        for (place, gone) in Dictionary(grouping: gone, by: \.place) { scopes[place].remove(gone.map(\.row)) }
        return gone.count
    }
}
