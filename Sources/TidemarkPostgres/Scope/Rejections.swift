import TidemarkServer

/// Each scope's bounded list of refused edits.
enum Rejections {
    /// The list's numbers are counted in a row, not in a sequence: none is lost with a transaction.
    private static let keep = Statement(
        "keep rejection",
        """
        WITH next AS (UPDATE meta SET number = number + 1 WHERE key = 'last_rejection' RETURNING number)
        INSERT INTO rejection (
            id, scope, entity, record, is_delete, fields, principal, client, lane, number, code, detail, time)
        SELECT next.number, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 FROM next
        """)
    private static let trimming = Statement(
        "trim rejections",
        """
        DELETE FROM rejection WHERE scope = $1 AND id <=
            (SELECT id FROM rejection WHERE scope = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)
        """)

    static func keep(_ session: Session, _ rejection: StoredRejection) throws {
        try session.write(
            Request(
                keep, .text(rejection.scope.name), .text(rejection.entity), .text(rejection.record),
                .flag(rejection.isDelete), .optional(rejection.fields), .text(rejection.lane.principal),
                .text(rejection.lane.client), .text(rejection.lane.lane), .integer(rejection.number),
                .text(rejection.code), .text(rejection.detail), .integer(rejection.time)))
    }

    /// Comes behind all that a transaction keeps with one limit: looking for the oldest that stays takes as many steps
    /// as there may be.
    static func trim(_ session: Session, _ scope: Scope, to limit: Int) throws {
        try session.write(trimming, .text(scope.name), .integer(Int64(limit)))
    }

    private static let discard = Statement("discard rejection", "DELETE FROM rejection WHERE id = $1")

    static func discard(_ session: Session, _ id: Int64) throws -> Bool {
        try session.change(discard, .integer(id)).affected > 0
    }

    private static let newest = Statement(
        "rejections",
        """
        SELECT scope, entity, record, is_delete, fields, principal, client, lane, number, code, detail, time, id
        FROM rejection WHERE ($1::text IS NULL OR scope = $1) AND ($2::bigint IS NULL OR id = $2)
        ORDER BY id DESC LIMIT $3
        """)

    static func newest(_ session: Session, in scope: Scope?, id: Int64?, limit: Int) throws -> [StoredRejection] {
        let answer = try session.ask(
            newest, scope.map { .text($0.name) } ?? .null, id.map { .integer($0) } ?? .null,
            .integer(Int64(max(0, limit))))
        return try (0..<answer.count).compactMap { row in
            guard let scope = Scope(answer.text(row, 0)) else { return nil }
            return StoredRejection(
                id: try answer.integer(row, 12), scope: scope, entity: answer.text(row, 1),
                record: answer.text(row, 2), isDelete: answer.flag(row, 3), fields: answer.array(row, 4),
                lane: LaneName(
                    principal: answer.text(row, 5), client: answer.text(row, 6), lane: answer.text(row, 7)),
                number: try answer.integer(row, 8), code: answer.text(row, 9), detail: answer.text(row, 10),
                time: try answer.integer(row, 11))
        }
    }
}

extension PostgresScopeWriter {
    /// Written at the end: the row that counts the list is everybody's, and should be held for a moment only.
    func keep(_ rejection: StoredRejection, limit: Int) throws { memory.rejections.append((rejection, limit)) }

    /// The transaction's last write, for all of its scopes.
    func keepRejections() throws {
        for (index, entry) in memory.rejections.enumerated() {
            try Rejections.keep(session, entry.rejection)
            let next = memory.rejections.dropFirst(index + 1).first
            guard next?.limit != entry.limit || next?.rejection.scope != entry.rejection.scope else { continue }
            try Rejections.trim(session, entry.rejection.scope, to: entry.limit)
        }
    }
}
