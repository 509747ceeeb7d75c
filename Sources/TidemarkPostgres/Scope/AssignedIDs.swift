import TidemarkServer

/// Ids that the server assigns, in all scopes.
enum AssignedIDs {
    private static let find = Statement(
        "id",
        "SELECT record FROM alias WHERE principal = $1 AND client = $2 AND entity = $3 AND temporary = $4")

    static func id(_ session: Session, for name: TemporaryName) throws -> RecordID? {
        let answer = try session.ask(
            find, .text(name.principal), .text(name.client), .text(name.entity), .text(name.id.text))
        return answer.count > 0 ? RecordID(answer.text(0, 0)) : nil
    }

    private static let place = Statement(
        "assignment", "SELECT bool_or(scope = $1) FROM alias WHERE entity = $2 AND record = $3")

    static func assignment(
        _ session: Session, _ scope: Parameter, of record: RecordID, entity: String
    ) throws -> AssignmentPlace? {
        let answer = try session.ask(place, scope, .text(entity), .text(record.text))
        guard answer.count > 0, !answer.isNull(0, 0) else { return nil }
        return answer.flag(0, 0) ? .here : .elsewhere
    }

    private static let store = Statement(
        "store id",
        """
        INSERT INTO alias (principal, client, entity, temporary, record, scope, made_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING
        """)

    /// - Throws: ``AlreadyStored`` where the temporary id stands for something.
    static func store(
        _ session: Session, _ id: RecordID, for name: TemporaryName, _ scope: Parameter, at moment: Int64
    ) throws {
        let isNew =
            try session.change(
                store, .text(name.principal), .text(name.client), .text(name.entity), .text(name.id.text),
                .text(id.text),
                scope, .integer(moment)
            ).affected == 1
        guard isNew else { throw AlreadyStored() }
    }
}

extension PostgresScope {
    func id(for temporary: TemporaryName) throws -> RecordID? { try AssignedIDs.id(session, for: temporary) }

    func assignment(of record: RecordID, entity: String) throws -> AssignmentPlace? {
        try AssignedIDs.assignment(session, name, of: record, entity: entity)
    }
}

extension PostgresScopeWriter {
    func store(_ id: RecordID, for name: TemporaryName, at moment: Int64) throws {
        try create(at: moment)
        try AssignedIDs.store(session, id, for: name, self.name, at: moment)
    }
}
