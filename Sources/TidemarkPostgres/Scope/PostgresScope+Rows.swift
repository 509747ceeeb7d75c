import TidemarkServer

// Single rows of a scope.
extension PostgresScope {
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
