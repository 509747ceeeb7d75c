import TidemarkServer

/// Counts and removes the rows of an erasure, in steps that hold up the scope's other writers for a moment only.
enum Erasing {
    /// Bytes of rows that one step removes, about.
    private static let stepBytes = 4 << 20

    /// One kind of thing, by how it counts.
    private struct Kind {
        let count: any WritableKeyPath<Erasure, Int> & Sendable
        /// How many there are of the scope `$1` and, where that is given, of the principal `$2`.
        let held: Statement
        /// Removes at most `$3` of them.
        let remove: Statement
        /// Whether it is somebody's.
        let isOfPrincipal: Bool

        init(
            _ count: any WritableKeyPath<Erasure, Int> & Sendable, held: Statement, remove: Statement,
            isOfPrincipal: Bool = true
        ) {
            (self.count, self.held, self.remove, self.isOfPrincipal) = (count, held, remove, isOfPrincipal)
        }
    }

    /// The condition for rows of the scope and a principal; an absent principal is anybody.
    private static let place = "scope = $1 AND ($2::bytea IS NULL OR principal = $2)"

    private static func held(in table: String) -> String { "SELECT count(*) FROM \(table) WHERE \(place)" }

    /// Removes by the key, which begins with the scope.
    private static func removal(from table: String, by key: String) -> String {
        """
        DELETE FROM \(table) WHERE scope = $1 AND (\(key)) IN (
            SELECT \(key) FROM \(table) WHERE \(place) ORDER BY \(key) LIMIT $3)
        """
    }

    private static let ofLanes = """
        verdict WHERE scope = $1 AND lane IN (
            SELECT l.place FROM lane l WHERE l.scope = $1 AND ($2::bytea IS NULL OR l.principal = $2))
        """

    private static let kinds = [
        // A change is nobody's: nothing says who made it.
        Kind(
            \.changes,
            held: Statement(
                "held changes", "SELECT count(*) FROM change WHERE scope = $1 AND $2::bytea IS NULL"),
            remove: Statement(
                "erase changes",
                """
                DELETE FROM change WHERE scope = $1 AND version IN (
                    SELECT version FROM (
                        SELECT version, sum(bytes) OVER (ORDER BY version) - bytes AS before FROM (
                            SELECT version, coalesce(octet_length(payload), 0) AS bytes FROM change
                            WHERE scope = $1 AND $2::bytea IS NULL ORDER BY version LIMIT $3) AS first) AS sized
                    WHERE before < \(stepBytes))
                """), isOfPrincipal: false),
        // Before the lanes: by them they are found.
        Kind(
            \.verdicts, held: Statement("held verdicts", "SELECT count(*) FROM \(ofLanes)"),
            remove: Statement(
                "erase verdicts",
                """
                DELETE FROM verdict WHERE scope = $1 AND (lane, number) IN (
                    SELECT lane, number FROM \(ofLanes) ORDER BY lane, number LIMIT $3)
                """)),
        Kind(
            \.lanes, held: Statement("held lanes", held(in: "lane")),
            remove: Statement("erase lanes", removal(from: "lane", by: "principal, client, lane"))),
        Kind(
            \.devices, held: Statement("held devices", held(in: "device")),
            remove: Statement("erase devices", removal(from: "device", by: "principal, client"))),
        Kind(
            \.assignedIDs, held: Statement("held ids", held(in: "alias")),
            remove: Statement("erase ids", removal(from: "alias", by: "principal, client, entity, temporary"))),
        Kind(
            \.tallies, held: Statement("held tallies", held(in: "deletes")),
            remove: Statement("erase tallies", removal(from: "deletes", by: "principal, entity"))),
        Kind(
            \.rejections, held: Statement("held rejections", held(in: "rejection")),
            remove: Statement("erase rejections", removal(from: "rejection", by: "id"))),
    ]

    private static func name(_ principal: String?) -> Parameter { principal.map { .text($0) } ?? .null }

    static func countKept(_ session: Session, _ scope: Parameter, by principal: String?) throws -> Erasure {
        let answers = try session.ask(kinds.map { Request($0.held, scope, name(principal)) })
        var held = Erasure()
        for (kind, answer) in zip(kinds, answers) { held[keyPath: kind.count] = Int(try answer.integer(0, 0)) }
        return held
    }

    static func step(_ session: Session, _ scope: Parameter, of principal: String?, limit: Int) throws -> Erasure {
        var gone = Erasure()
        for kind in kinds where principal == nil || kind.isOfPrincipal {
            let rest = limit - gone.count
            guard rest > 0 else { break }
            gone[keyPath: kind.count] = try session.change(
                kind.remove, scope, name(principal), .integer(Int64(rest))
            ).affected
        }
        return gone
    }

    private static let dropDigests = Statement("erase digests", "DELETE FROM digest WHERE scope = $1")
    private static let dropOpenings = Statement("erase openings", "DELETE FROM incarnation WHERE scope = $1")

    /// Version 5: a scope is erased. Nodes of version 4 would go on serving it, and start no more.
    private static let raiseForm = Statement(
        "erasure form", "UPDATE meta SET number = $1 WHERE key = 'schema' AND number < $1")

    /// Removes the digests and openings. The scope's own row is written at the transaction's end.
    static func mark(_ session: Session, _ scope: Parameter) throws {
        try session.write(raiseForm, .integer(Schema.newest))
        try session.write(dropDigests, scope)
        try session.write(dropOpenings, scope)
    }
}

extension PostgresScope {
    func countKept(by principal: String?) throws -> Erasure { try Erasing.countKept(session, name, by: principal) }
}

extension PostgresScopeWriter {
    func markErased(at moment: Int64) throws {
        guard kept.state.erasedAt == nil else { return }
        try create(at: moment)
        kept.state = .erased(at: moment, head: kept.state.head + 1)
        try Erasing.mark(session, name)
        // Other nodes hear of it as of a change.
        (memory.isChanged, memory.hasAppended, memory.hasNewEntity) = (true, true, true)
        (memory.digests, keptDigests, lastNewest) = (DigestKeeper(), [:], nil)
    }

    func erase(of principal: String?, limit: Int) throws -> Erasure {
        laneRows = [:]
        return try Erasing.step(session, name, of: principal, limit: limit)
    }
}
