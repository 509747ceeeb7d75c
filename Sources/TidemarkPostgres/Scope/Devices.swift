import TidemarkServer
import TidemarkWire

/// The devices of a scope: who is known, and from which version on deletions are kept for it.
enum Devices {
    private static let standing = Statement(
        "standing",
        "SELECT version, seen_at, oldest, remedy FROM device WHERE scope = $1 AND principal = $2 AND client = $3")

    static func standing(
        _ session: Session, _ scope: Parameter, of device: DeviceName
    ) throws -> DeviceStanding? {
        let answer = try session.ask(standing, scope, .text(device.principal), .text(device.client))
        guard answer.count > 0 else { return nil }
        var standing = DeviceStanding(
            version: try answer.integerIfAny(0, 0), seen: try answer.integer(0, 1),
            oldest: try answer.integerIfAny(0, 2))
        standing.remedy = remedy(answer, 0, 3)
        return standing
    }

    /// The remedy that a column holds.
    static func remedy(_ answer: QueryResult, _ row: Int, _ column: Int32) -> KeptRemedy? {
        answer.array(row, column).flatMap { KeptRemedy(bytes: $0) }
    }

    private static let noteRemedy = Statement(
        "note remedy", "UPDATE device SET remedy = $4 WHERE scope = $1 AND principal = $2 AND client = $3")

    static func note(
        _ session: Session, _ scope: Parameter, _ remedy: KeptRemedy, of device: DeviceName
    ) throws {
        try session.write(
            noteRemedy, scope, .text(device.principal), .text(device.client), .bytes(remedy.bytes))
    }

    private static let note = Statement(
        "note",
        """
        INSERT INTO device (scope, principal, client, version, seen_at, oldest) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (scope, principal, client)
        DO UPDATE SET version = coalesce(excluded.version, device.version), seen_at = excluded.seen_at,
            oldest = CASE WHEN excluded.version IS NULL THEN coalesce(excluded.oldest, device.oldest)
                ELSE excluded.oldest END
        """)

    static func note(
        _ session: Session, _ scope: Parameter, _ standing: DeviceStanding, of device: DeviceName
    ) throws {
        try session.write(
            note, scope, .text(device.principal), .text(device.client), .optional(standing.version),
            .integer(standing.seen), .optional(standing.oldest))
    }

    private static let slowest = Statement(
        "slowest",
        "SELECT version FROM device WHERE scope = $1 AND version IS NOT NULL ORDER BY version LIMIT 1")

    static func slowest(_ session: Session, _ scope: Parameter) throws -> Version? {
        let answer = try session.ask(slowest, scope)
        return answer.count > 0 ? try answer.integer(0, 0) : nil
    }

    // MARK: Forgetting

    /// Lanes of devices that are not known, and were not used since a moment.
    private static let oldLanes = """
        lane WHERE lane.scope = $1 AND lane.seen_at < $2 AND NOT EXISTS (
            SELECT 1 FROM device WHERE device.scope = $1 AND device.principal = lane.principal
            AND device.client = lane.client)
        """
    private static let countDevices = Statement(
        "count devices", "SELECT count(*) FROM device WHERE scope = $1 AND seen_at < $2")
    private static let countLanes = Statement("count lanes", "SELECT count(*) FROM \(oldLanes)")

    static func unheard(
        _ session: Session, _ scope: Parameter, devicesBefore: Int64, lanesBefore: Int64
    ) throws -> (devices: Int, lanes: Int) {
        let answers = try session.ask([
            Request(countDevices, scope, .integer(devicesBefore)), Request(countLanes, scope, .integer(lanesBefore)),
        ])
        return (Int(try answers[0].integer(0, 0)), Int(try answers[1].integer(0, 0)))
    }

    /// The statement by which devices are forgotten; from then on their lanes age by themselves.
    private static func forgetting(_ old: String) -> String {
        """
        WITH old AS (SELECT principal, client, seen_at FROM device WHERE scope = $1 AND \(old)),
        aged AS (
            UPDATE lane SET seen_at = greatest(lane.seen_at, old.seen_at) FROM old
            WHERE lane.scope = $1 AND lane.principal = old.principal AND lane.client = old.client RETURNING lane.place),
        verdicts AS (DELETE FROM verdict USING aged WHERE verdict.scope = $1 AND verdict.lane = aged.place)
        DELETE FROM device USING old
        WHERE device.scope = $1 AND device.principal = old.principal AND device.client = old.client
        """
    }

    private static let forgetDevices = Statement(
        "forget devices", forgetting("seen_at < $2 ORDER BY seen_at, principal, client LIMIT $3"))
    private static let forgetMost = Statement(
        "forget most devices", forgetting("principal = $2 AND client <> $3 ORDER BY seen_at DESC, client OFFSET $4"))

    static func forget(
        _ session: Session, _ scope: Parameter, beyond limit: Int, besides device: DeviceName
    ) throws {
        try session.write(
            forgetMost, scope, .text(device.principal), .text(device.client), .integer(Int64(max(0, limit - 1))))
    }

    private static let forgetLanes = Statement(
        "forget lanes",
        """
        WITH old AS (
            SELECT principal, client, lane, place FROM \(oldLanes) ORDER BY principal, client, lane LIMIT $3),
        verdicts AS (DELETE FROM verdict USING old WHERE verdict.scope = $1 AND verdict.lane = old.place)
        DELETE FROM lane USING old
        WHERE lane.scope = $1 AND lane.principal = old.principal AND lane.client = old.client AND lane.lane = old.lane
        """)
    /// A device that is gone, in all scopes, names nothing any more by the ids that it had made up for a while.
    private static let forgetAliases = Statement(
        "forget aliases",
        """
        WITH old AS (
            SELECT principal, client, entity, temporary FROM alias WHERE made_at < $1
            AND NOT EXISTS (SELECT 1 FROM device d WHERE d.principal = alias.principal AND d.client = alias.client)
            AND NOT EXISTS (SELECT 1 FROM lane l WHERE l.principal = alias.principal AND l.client = alias.client)
            ORDER BY made_at, principal, client, entity, temporary LIMIT $2)
        DELETE FROM alias USING old
        WHERE alias.principal = old.principal AND alias.client = old.client AND alias.entity = old.entity
        AND alias.temporary = old.temporary
        """)

    static func forget(
        _ session: Session, _ scope: Parameter, devicesBefore: Int64, lanesBefore: Int64, limit: Int
    ) throws -> (devices: Int, lanes: Int) {
        let limit = Parameter.integer(Int64(max(0, limit)))
        let devices = try session.change(forgetDevices, scope, .integer(devicesBefore), limit).affected
        let lanes = try session.change(forgetLanes, scope, .integer(lanesBefore), limit).affected
        try session.write(forgetAliases, .integer(lanesBefore), limit)
        try Tallies.forget(session, scope, before: devicesBefore)
        return (devices, lanes)
    }
}

extension PostgresScope {
    func standing(of device: DeviceName) throws -> DeviceStanding? {
        kept.exists ? try Devices.standing(session, name, of: device) : nil
    }

    func slowest() throws -> Version? { kept.exists ? try Devices.slowest(session, name) : nil }
}

extension PostgresScopeWriter {
    func note(_ standing: DeviceStanding, of device: DeviceName) throws {
        // A scope that nobody wrote to has nothing to keep for anybody.
        guard kept.exists else { return }
        try Devices.note(session, name, standing, of: device)
    }

    func note(_ remedy: KeptRemedy, of device: DeviceName) throws {
        guard kept.exists else { return }
        try Devices.note(session, name, remedy, of: device)
    }

    func forgetDevices(beyond limit: Int, besides device: DeviceName) throws {
        guard kept.exists else { return }
        try flushLanes()
        laneRows = [:]
        try Devices.forget(session, name, beyond: limit, besides: device)
    }

    func forget(devicesBefore: Int64, lanesBefore: Int64, limit: Int) throws -> (devices: Int, lanes: Int) {
        guard kept.exists else { return (0, 0) }
        try flushLanes()
        laneRows = [:]
        return try Devices.forget(
            session, name, devicesBefore: devicesBefore, lanesBefore: lanesBefore, limit: limit)
    }
}
