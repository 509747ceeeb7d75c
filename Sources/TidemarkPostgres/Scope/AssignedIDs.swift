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

    private static let given = Statement(
        "given",
        """
        SELECT EXISTS (SELECT 1 FROM alias
            WHERE entity = $1 AND record = $2 AND client = $3 AND temporary = $4 AND scope = $5)
        """)

    static func wasAssigned(
        _ session: Session, _ record: RecordID, to name: TemporaryName, _ scope: Parameter
    ) throws -> Bool {
        try session.ask(
            given, .text(name.entity), .text(record.text), .text(name.client), .text(name.id.text), scope
        ).flag(0, 0)
    }

    private static let last = Statement("last number", "SELECT number FROM assigned WHERE entity = $1")

    static func lastNumber(_ session: Session, of entity: String) throws -> Int64 {
        let answer = try session.ask(last, .text(entity))
        return answer.count > 0 ? try answer.integer(0, 0) : 0
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

    private static let lock = Statement(
        "lock number", "SELECT number FROM assigned WHERE entity = $1 FOR NO KEY UPDATE")
    private static let begin = Statement(
        "begin numbers",
        """
        INSERT INTO assigned (entity, number) VALUES ($1, 0)
        ON CONFLICT (entity) DO UPDATE SET number = assigned.number RETURNING number
        """)

    /// The last number, and nobody else assigns one before this transaction ends: scopes are written side by side, and
    /// no id may be given twice.
    static func lockNumber(_ session: Session, of entity: String) throws -> Int64 {
        let answer = try session.ask(lock, .text(entity))
        if answer.count > 0 { return try answer.integer(0, 0) }
        return try session.change(begin, .text(entity)).integer(0, 0)
    }

    private static let set = Statement(
        "set number",
        """
        INSERT INTO assigned (entity, number) VALUES ($1, $2)
        ON CONFLICT (entity) DO UPDATE SET number = excluded.number
        """)

    static func setLastNumber(_ session: Session, _ number: Int64, of entity: String) throws {
        try session.write(set, .text(entity), .integer(number))
    }
}
