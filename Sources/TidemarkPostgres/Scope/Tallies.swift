import TidemarkServer

/// The engine's notes on what principals have done lately in a scope.
enum Tallies {
    private static let find = Statement(
        "deletes", "SELECT note FROM deletes WHERE scope = $1 AND principal = $2 AND entity = $3")

    static func note(
        _ session: Session, _ scope: Parameter, by principal: String, of entity: String
    ) throws -> [UInt8]? {
        let answer = try session.ask(find, scope, .text(principal), .text(entity))
        return answer.count > 0 ? answer.array(0, 0) : nil
    }

    private static let keep = Statement(
        "keep deletes",
        """
        INSERT INTO deletes (scope, principal, entity, note, made_at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (scope, principal, entity) DO UPDATE SET note = excluded.note, made_at = excluded.made_at
        """)

    static func store(
        _ session: Session, _ scope: Parameter, _ note: [UInt8], by principal: String, of entity: String,
        at moment: Int64
    ) throws {
        try session.write(keep, scope, .text(principal), .text(entity), .bytes(note), .integer(moment))
    }

    private static let old = Statement("forget deletes", "DELETE FROM deletes WHERE scope = $1 AND made_at < $2")

    static func forget(_ session: Session, _ scope: Parameter, before moment: Int64) throws {
        try session.write(old, scope, .integer(moment))
    }
}

extension PostgresScope {
    func tally(by principal: String, of entity: String) throws -> [UInt8]? {
        kept.exists ? try Tallies.note(session, name, by: principal, of: entity) : nil
    }
}

extension PostgresScopeWriter {
    func store(tally note: [UInt8], by principal: String, of entity: String, at moment: Int64) throws {
        try create(at: moment)
        try Tallies.store(session, name, note, by: principal, of: entity, at: moment)
    }
}
