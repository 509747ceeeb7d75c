import TidemarkServer

extension MemoryScope {
    private var rows: ScopeRows { place.map { log.scopes[$0].rows } ?? ScopeRows() }

    func newest(entity: String, record: RecordID) throws -> StoredRecord? {
        rows.newest(RecordKey(entity, record)).map(StoredRecord.init)
    }

    func newest(entity: String, record: RecordID, _ visit: (BorrowedChange) -> Void) throws {
        rows.newest(RecordKey(entity, record))?.lend(to: visit)
    }

    func row(entity: String, record: RecordID, at version: Version) throws -> StoredRecord? {
        let rows = rows
        return rows.versions(of: RecordKey(entity, record)).reversed().lazy.map { rows[$0] }
            .first { $0.version <= version && $0.isLive(at: version) }.map(StoredRecord.init)
    }

    func digest(of entity: String) throws -> [UInt8]? {
        digests.stored(of: entity) ?? place.flatMap { log.scopes[$0].digests[Array(entity.utf8)] }
    }

    func changes(
        after position: Version, through horizon: Version, tombstonesAfter: Version,
        _ visit: (BorrowedChange) -> Bool
    ) throws {
        let rows = rows
        for row in rows.all[rows.start(after: position)...] {
            if row.version > horizon { return }
            guard row.isLive(at: horizon), row.version > tombstonesAfter || !row.kind.leavesWithAge else { continue }
            if !row.lend(to: visit) { return }
        }
    }

    func records(
        of entity: String, above base: Version, at horizon: Version?, after record: RecordID?,
        _ visit: (BorrowedChange) -> Bool
    ) throws {
        let (rows, entity, horizon) = (rows, Array(entity.utf8), horizon ?? .max)
        let last = record?.bytes ?? []
        let start = rows.records.partitionPoint { key, _ in
            key.entity.lexicographicallyPrecedes(entity)
                || key.entity == entity && !last.lexicographicallyPrecedes(key.record)
        }
        for (key, versions) in rows.records[start...] {
            guard key.entity == entity else { return }
            for version in versions where version > base && version <= horizon {
                let row = rows[version]
                guard row.isLive(at: horizon), row.kind != .delete || base > 0 else { continue }
                if !row.lend(to: visit) { return }
            }
        }
    }

    func aged(
        after version: Version, through last: Version, before moment: Int64, events: Bool, limit: Int
    ) throws -> (through: Version, rows: Int) {
        let rows = rows
        var aged = (through: version, rows: 0)
        for row in rows.all[rows.start(after: version)...].prefix(max(0, limit)) {
            guard row.version <= last, row.time < moment else { break }
            aged.through = row.version
            if row.kind.expires(withEvents: events) { aged.rows += 1 }
        }
        return aged
    }
}

extension RowKind {
    /// Whether the row is of no use to a device that begins anew.
    fileprivate var leavesWithAge: Bool {
        switch self {
        case .delete, .idmap: true
        case .upsert, .event: false
        }
    }
}

extension StoredRecord {
    fileprivate init(_ row: MemoryRow) {
        self.init(
            version: row.version, time: row.time, payload: row.kind == .delete ? nil : row.payload,
            fieldVersions: row.fieldVersions, originals: row.originals)
    }
}

extension MemoryRow {
    fileprivate func lend<Result>(to visit: (BorrowedChange) -> Result) -> Result {
        key.entity.withUnsafeBytes { entity in
            key.record.withUnsafeBytes { record in
                (payload ?? []).withUnsafeBytes { payload in
                    let isNoted = kind == .upsert && fieldVersions?.count ?? 0 <= BorrowedChange.largestNote
                    return (isNoted ? fieldVersions ?? [] : []).withUnsafeBytes { versions in
                        visit(
                            BorrowedChange(
                                version: version, kind: kind, time: time, entity: entity, record: record,
                                payload: payload, fieldVersions: versions))
                    }
                }
            }
        }
    }
}
