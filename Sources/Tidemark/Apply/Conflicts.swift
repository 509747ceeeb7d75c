import GRDB
public import TidemarkWire

/// An edit of this device that met somebody else's, and how it was settled.
public struct Conflict: Hashable, Sendable, Identifiable {
    /// By which rule it was settled.
    public enum Rule: String, Hashable, Sendable, CaseIterable {
        /// The edit made here came later and stands; theirs was overwritten.
        case lastWriteWins
        /// The record was deleted elsewhere; the edit made here is lost, and kept in this list.
        case deleteWins
    }

    /// The place in the list.
    public var id: Int64
    /// Where the record belongs.
    public var scope: Scope
    /// The table's name.
    public var entity: String
    /// The record's id on the wire.
    public var record: String
    /// The column.
    public var field: String
    /// The value set here.
    public var mine: Value
    /// The value set elsewhere; NULL where the record was deleted.
    public var theirs: Value
    /// The version of their change, where it is known.
    public var version: Version?
    /// How it was settled.
    public var rule: Rule
    /// When it was noticed here, in milliseconds since 1970.
    public var noticedAt: Int64
}

enum Conflicts {
    /// The list is for people; it is not kept without bound.
    static let limit = 10_000

    static func note(
        _ db: Database, _ scope: Scope, _ entity: String, _ record: String, field: String, mine: [UInt8],
        theirs: [UInt8], version: Version?, rule: Conflict.Rule, now: Int64
    ) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_conflict(scope, entity, record, field, mine, theirs, version, rule, noticed_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            """
        ).execute([
            .text(scope.name), .text(entity), .text(record), .text(field), .blob(mine), .blob(theirs),
            .optional(version), .text(rule.rawValue), .integer(now),
        ])
        try Query(db, "DELETE FROM tidemark_conflict WHERE id <= (SELECT max(id) FROM tidemark_conflict) - ?1")
            .execute([.integer(Int64(limit))])
    }

    static func all(_ db: Database) throws -> [Conflict] {
        try Query(
            db,
            """
            SELECT id, scope, entity, record, field, mine, theirs, version, rule, noticed_at
            FROM tidemark_conflict ORDER BY id
            """
        ).rows(db) { row -> Conflict? in
            guard let scope = Scope(row.text(1)), let rule = Conflict.Rule(rawValue: row.text(8)) else { return nil }
            return Conflict(
                id: row.integer(0), scope: scope, entity: row.text(2), record: row.text(3), field: row.text(4),
                mine: value(row.blob(5)), theirs: value(row.blob(6)), version: row.optionalInteger(7), rule: rule,
                noticedAt: row.integer(9))
        }.compactMap { $0 }
    }

    private static func value(_ bytes: [UInt8]) -> Value {
        let value = try? bytes.reading { (reader: inout JSONReader) throws(JSONError) -> Value in
            try reader.readValue()
        }
        return value ?? .null
    }
}
