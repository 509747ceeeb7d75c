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

    /// The first parameter of every statement.
    var name: Parameter { .text(scope.name) }

    var state: ScopeState { kept.state }

    func newest(entity: String, record: RecordID) throws -> StoredRecord? {
        guard kept.exists else { return nil }
        return try StoredRecord(session.ask([newestRow(entity: entity, record: record)])[0])
    }

    private static let digest = Statement("digest", "SELECT sums FROM digest WHERE scope = $1 AND entity = $2")

    func keptDigest(of entity: String) -> Request { Request(Self.digest, name, .text(entity)) }

    func digest(of entity: String) throws -> [UInt8]? {
        guard kept.exists else { return nil }
        let answer = try session.ask([keptDigest(of: entity)])[0]
        return answer.count > 0 ? answer.array(0, 0) : nil
    }

    func lanes(of device: DeviceName, limit: Int) throws -> [(lane: String, number: Int64)] {
        guard kept.exists else { return [] }
        return try LaneRow.all(session, name, of: device, limit: limit)
    }

    func unheard(devicesBefore: Int64, lanesBefore: Int64) throws -> (devices: Int, lanes: Int) {
        guard kept.exists else { return (0, 0) }
        return try Devices.unheard(session, name, devicesBefore: devicesBefore, lanesBefore: lanesBefore)
    }
}
