import TidemarkServer

/// One scope as a transaction sees it.
class PostgresScope: ScopeReader {
    let session: Session
    let scope: Scope
    var kept: ScopeRow
    /// Lanes that were asked for, those that are not there too.
    var laneRows: [LaneName: LaneRow?] = [:]

    init(_ session: Session, _ scope: Scope, _ row: ScopeRow) {
        self.session = session
        self.scope = scope
        self.kept = row
    }

    /// What every statement names first.
    var name: Parameter { .text(scope.name) }

    var state: ScopeState { kept.state }

    // MARK: Records

    private static let newest = Statement(
        "newest",
        """
        SELECT version, kind, time, entity, record, payload, field_versions, originals FROM change
        WHERE scope = $1 AND entity = $2 AND record = $3 AND superseded_by IS NULL ORDER BY version DESC LIMIT 1
        """)
    private static let rowAt = Statement(
        "row at",
        """
        SELECT version, kind, time, entity, record, payload, field_versions, originals FROM change
        WHERE scope = $1 AND entity = $2 AND record = $3 AND version <= $4
          AND (superseded_by IS NULL OR superseded_by > $4) ORDER BY version DESC LIMIT 1
        """)

    func newestRow(entity: String, record: RecordID) -> Request {
        Request(Self.newest, name, .text(entity), .text(record.text))
    }

    func newest(entity: String, record: RecordID) throws -> StoredRecord? {
        guard kept.exists else { return nil }
        return try StoredRecord(session.ask([newestRow(entity: entity, record: record)])[0])
    }

    func newest(entity: String, record: RecordID, _ visit: (BorrowedChange) -> Void) throws {
        guard kept.exists else { return }
        let answer = try session.ask([newestRow(entity: entity, record: record)])[0]
        if answer.count > 0 { visit(try BorrowedChange(answer, 0)) }
        withExtendedLifetime(answer) {}
    }

    func row(entity: String, record: RecordID, at version: Version) throws -> StoredRecord? {
        guard kept.exists else { return nil }
        return try StoredRecord(session.ask(Self.rowAt, name, .text(entity), .text(record.text), .integer(version)))
    }

    private static let digest = Statement("digest", "SELECT sums FROM digest WHERE scope = $1 AND entity = $2")

    func keptDigest(of entity: String) -> Request { Request(Self.digest, name, .text(entity)) }

    func digest(of entity: String) throws -> [UInt8]? {
        guard kept.exists else { return nil }
        let answer = try session.ask([keptDigest(of: entity)])[0]
        return answer.count > 0 ? answer.array(0, 0) : nil
    }

    // MARK: Lanes

    func lane(_ lane: LaneName) throws -> Int64 { try laneRow(lane)?.number ?? 0 }

    func laneRow(_ lane: LaneName) throws -> LaneRow? {
        guard kept.exists else { return nil }
        if let known = laneRows[lane] { return known }
        let found = try LaneRow.find(session, name, lane)
        laneRows[lane] = .some(found)
        return found
    }

    func lanes(of device: DeviceName, limit: Int) throws -> [(lane: String, number: Int64)] {
        guard kept.exists else { return [] }
        return try LaneRow.all(session, name, of: device, limit: limit)
    }

    func verdict(_ lane: LaneName, _ number: Int64) throws -> StoredVerdict? {
        guard let place = try laneRow(lane)?.place else { return nil }
        return try LaneRow.verdict(session, name, place, number)
    }

    // MARK: Devices and ids

    func standing(of device: DeviceName) throws -> DeviceStanding? {
        kept.exists ? try Devices.standing(session, name, of: device) : nil
    }

    func tally(by principal: String, of entity: String) throws -> [UInt8]? {
        kept.exists ? try Deletes.note(session, name, by: principal, of: entity) : nil
    }

    func slowest() throws -> Version? { kept.exists ? try Devices.slowest(session, name) : nil }

    func unheard(devicesBefore: Int64, lanesBefore: Int64) throws -> (devices: Int, lanes: Int) {
        guard kept.exists else { return (0, 0) }
        return try Devices.unheard(session, name, devicesBefore: devicesBefore, lanesBefore: lanesBefore)
    }

    func id(for temporary: TemporaryName) throws -> RecordID? { try AssignedIDs.id(session, for: temporary) }

    func assignment(of record: RecordID, entity: String) throws -> AssignmentPlace? {
        try AssignedIDs.assignment(session, name, of: record, entity: entity)
    }
}

extension StoredRecord {
    /// A row of an answer, if it has one there; the first one, if no other is meant.
    init?(_ answer: QueryResult, _ row: Int = 0) throws {
        guard answer.count > row else { return nil }
        let isTombstone = try answer.integer(row, 1) == RowKind.delete.rawValue
        self.init(
            version: try answer.integer(row, 0), time: try answer.integer(row, 2),
            payload: isTombstone ? nil : answer.array(row, 5), fieldVersions: answer.array(row, 6),
            originals: answer.array(row, 7))
    }
}

extension BorrowedChange {
    /// A row where libpq holds it.
    init(_ answer: QueryResult, _ row: Int) throws {
        guard let kind = RowKind(rawValue: try answer.integer(row, 1)) else {
            throw PostgresError(.schema, "a row of an unknown kind")
        }
        self.init(
            version: try answer.integer(row, 0), kind: kind, time: try answer.integer(row, 2),
            entity: answer.bytes(row, 3), record: answer.bytes(row, 4), payload: answer.bytes(row, 5))
    }
}
