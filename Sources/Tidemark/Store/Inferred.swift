import GRDB
import TidemarkWire

/// Writes that no trigger saw, as a comparison of the tables with the manifest finds them. Each is held against the
/// server's row before any page is applied, and becomes an edit of this device, a conflict, or nothing.
enum Inferred {
    enum Kind: Int64 {
        /// A row of which the manifest knows nothing.
        case insert = 1
        /// A row that is not as the manifest knows it.
        case update = 2
        /// A record of the manifest that has no row.
        case delete = 3
        /// A row that stood in its table when that was captured for the first time: it came with the app, was made by a
        /// migration, or is older than the library. It gives way to the server's.
        case seed = 4

        /// Whether the server was not known to have the record.
        var isNew: Bool {
            switch self {
            case .insert, .seed: true
            case .update, .delete: false
            }
        }
    }

    struct Entry: Hashable {
        var scope: String
        var entity: String
        var record: String
        var kind: Kind
        /// The hash of the row that this device last knew the server to have.
        var hash: UInt64?
        /// Whether it waits for the app's confirmation, since it is one of too many.
        var awaitsConfirmation: Bool
        /// Whether it was held against the server's row, and its shadow holds that.
        var isCompared = false

        var name: RecordName { RecordName(entity: entity, record: record) }
    }

    private static let noting = RowsInsert(
        "INSERT INTO tidemark_inferred(entity, record, scope, kind, hash, held)", row: "(?, ?, ?, ?, ?, ?)",
        tail: "ON CONFLICT(entity, record, scope) DO UPDATE SET kind = excluded.kind, compared = 0")

    static func note(_ db: Database, _ entries: [Entry]) throws {
        try noting.run(db, entries) { entry, query, first in
            query.bind(text: entry.entity, at: first)
            query.bind(text: entry.record, at: first + 1)
            query.bind(text: entry.scope, at: first + 2)
            query.bind(integer: entry.kind.rawValue, at: first + 3)
            query.bind(integer: entry.hash.map { Int64(bitPattern: $0) }, at: first + 4)
            query.bind(integer: entry.awaitsConfirmation ? 1 : 0, at: first + 5)
        }
    }

    /// Keeps all of a kind waiting for the app's confirmation: they are too many.
    static func requireConfirmation(_ db: Database, _ entity: String, _ kind: Kind) throws {
        try Query(db, "UPDATE tidemark_inferred SET held = 1 WHERE entity = ?1 AND kind = ?2 AND compared = 0")
            .execute([.text(entity), .integer(kind.rawValue)])
    }

    static func entry(_ db: Database, _ scope: Scope, _ entity: String, _ record: String) throws -> Entry? {
        try Query(
            db,
            """
            SELECT scope, entity, record, kind, hash, held, compared FROM tidemark_inferred
            WHERE entity = ?1 AND record = ?2 AND scope = ?3 AND compared = 0
            """
        ).first(db, [.text(entity), .text(record), .text(scope.name)], entry)
    }

    /// Returns the entries that wait to be confirmed, of one table or of all.
    static func awaitingConfirmation(_ db: Database, entity: String?) throws -> [Entry] {
        try Query(
            db,
            """
            SELECT scope, entity, record, kind, hash, held, compared FROM tidemark_inferred
            WHERE held AND entity = coalesce(?1, entity) ORDER BY entity, record
            """
        ).rows(db, [.optional(entity)], entry)
    }

    /// All of one table in one scope.
    static func all(_ db: Database, _ scope: Scope, _ entity: String) throws -> [Entry] {
        try Query(
            db,
            """
            SELECT scope, entity, record, kind, hash, held, compared FROM tidemark_inferred
            WHERE entity = ?1 AND scope = ?2 ORDER BY record
            """
        ).rows(db, [.text(entity), .text(scope.name)], entry)
    }

    /// Whether rows of the first capture wait to be held against the server's.
    static func isAnySeed(_ db: Database, _ entity: String) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_inferred WHERE entity = ?1 AND kind = ?2 AND compared = 0 LIMIT 1")
            .first(db, [.text(entity), .integer(Kind.seed.rawValue)]) { _ in true } ?? false
    }

    /// Whether a write to the record was inferred, in whatever scope.
    static func contains(_ db: Database, _ entity: String, _ record: String) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_inferred WHERE entity = ?1 AND record = ?2 LIMIT 1")
            .first(db, [.text(entity), .text(record)]) { _ in true } ?? false
    }

    /// How many writes of a kind were inferred in a table.
    static func count(_ db: Database, _ entity: String, _ kind: Kind) throws -> Int {
        try Query(db, "SELECT count(*) FROM tidemark_inferred WHERE entity = ?1 AND kind = ?2")
            .first(db, [.text(entity), .integer(kind.rawValue)]) { Int($0.integer(0)) } ?? 0
    }

    /// Rows of the first capture that were edited since.
    static func touchedSeeds(_ db: Database, _ scope: Scope, _ shape: TableSchema) throws -> [Entry] {
        try ShadowTable(shape).keys(db).compactMap(shape.recordID).compactMap { id in
            let entry = try Self.entry(db, scope, shape.name, id.text)
            return entry?.kind == .seed ? entry : nil
        }
    }

    /// Whether the record's write waits for a confirmation, and is compared with the server's row already.
    static func isUnconfirmed(_ db: Database, _ scope: String, _ entity: String, _ record: String) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_inferred
            WHERE entity = ?1 AND record = ?2 AND scope = ?3 AND compared AND held
            """
        ).first(db, [.text(entity), .text(record), .text(scope)]) { _ in true } ?? false
    }

    static func isAny(_ db: Database) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_inferred LIMIT 1").first(db) { _ in true } ?? false
    }

    /// Ends the wait for a confirmation of a write that is no edit of its own any more: an edit in sight that was made
    /// on top of it is sealed, refused, blocked or undone with it, or the row is as the server has it by now.
    static func supersede(_ db: Database, _ name: RecordName, _ scope: Scope) throws {
        try Query(
            db, "DELETE FROM tidemark_inferred WHERE entity = ?1 AND record = ?2 AND scope = ?3 AND compared AND held"
        ).execute([.text(name.entity), .text(name.record), .text(scope.name)])
    }

    static func removeSeeds(_ db: Database, _ scope: Scope, _ entity: String) throws -> Int {
        try Query(db, "DELETE FROM tidemark_inferred WHERE scope = ?1 AND entity = ?2 AND kind = ?3 AND compared = 0")
            .execute([.text(scope.name), .text(entity), .integer(Kind.seed.rawValue)])
        return db.changesCount
    }

    /// Notes that the entry was compared with the server's row. An entry that needs no confirmation is removed.
    static func compared(_ db: Database, _ entry: Entry, waits: Bool) throws {
        let what = waits ? "UPDATE tidemark_inferred SET compared = 1" : "DELETE FROM tidemark_inferred"
        try Query(db, "\(what) WHERE entity = ?1 AND record = ?2 AND scope = ?3")
            .execute([.text(entry.entity), .text(entry.record), .text(entry.scope)])
    }

    /// Ends the wait for a confirmation of writes to a record whose row was deleted in sight: they need none any more.
    static func decided(_ db: Database, _ entity: String, _ record: String) throws {
        let isRecord = "entity = ?1 AND record = ?2"
        for sql in [
            "DELETE FROM tidemark_inferred WHERE \(isRecord) AND compared",
            "UPDATE tidemark_inferred SET held = 0 WHERE \(isRecord)",
        ] {
            try Query(db, sql).execute([.text(entity), .text(record)])
        }
    }

    /// Ends the wait for a confirmation: the write is sent once it was compared with the server's row.
    static func letGo(_ db: Database, _ entry: Entry) throws {
        try Query(db, "UPDATE tidemark_inferred SET held = 0 WHERE entity = ?1 AND record = ?2 AND scope = ?3")
            .execute([.text(entry.entity), .text(entry.record), .text(entry.scope)])
    }

    /// Keeps entries that wait for a confirmation waiting, whatever is found of their records again.
    static func requireConfirmation(_ db: Database, _ entity: String, records: Set<String>) throws {
        for record in records {
            try Query(db, "UPDATE tidemark_inferred SET held = 1 WHERE entity = ?1 AND record = ?2")
                .execute([.text(entity), .text(record)])
        }
    }

    static func clearUncompared(_ db: Database, _ entity: String) throws {
        try Query(db, "DELETE FROM tidemark_inferred WHERE entity = ?1 AND compared = 0").execute([.text(entity)])
    }

    static func entry(_ row: Query) -> Entry {
        Entry(
            scope: row.text(0), entity: row.text(1), record: row.text(2),
            kind: Kind(rawValue: row.integer(3)) ?? .update,
            hash: row.optionalInteger(4).map { UInt64(bitPattern: $0) },
            awaitsConfirmation: row.integer(5) != 0, isCompared: row.integer(6) != 0)
    }

    /// SQL: whether an entry is a row of the first capture that was not held against the server's yet. Such a row is a
    /// pending edit, as it is where the first capture is kept by its keys (``FirstCapture``).
    static let seedSQL = "kind = \(Kind.seed.rawValue) AND compared = 0"

    /// Counts the rows of the first capture in the whole file that were not held against the server's yet.
    static func countSeeds(_ db: Database) throws -> Int {
        try Query.count(db, "SELECT count(*) FROM tidemark_inferred WHERE \(seedSQL)")
    }

    /// Counts the inferred edits of the file, compared or not.
    static func countAllButSeeds(_ db: Database) throws -> Int {
        try Query.count(db, "SELECT count(*) FROM tidemark_inferred WHERE NOT (\(seedSQL))")
    }

    /// Counts the entries that are compared next and wait for no confirmation.
    static func countDue(_ db: Database) throws -> Int {
        try Query.count(db, "SELECT count(*) FROM tidemark_inferred WHERE held = 0 AND compared = 0")
    }

    /// Counts the rows of the first capture that wait to be held against the server's.
    static func countSeeds(_ db: Database, _ entity: String) throws -> Int {
        try Query(db, "SELECT count(*) FROM tidemark_inferred WHERE entity = ?1 AND kind = ?2 AND compared = 0")
            .first(db, [.text(entity), .integer(Kind.seed.rawValue)]) { Int($0.integer(0)) } ?? 0
    }

    /// Whether a record's row is such a row of the first capture, in whatever scope.
    static func isSeed(_ db: Database, _ entity: String, _ record: String) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_inferred
            WHERE entity = ?1 AND kind = ?2 AND compared = 0 AND record = ?3
            """
        ).first(db, [.text(entity), .integer(Kind.seed.rawValue), .text(record)]) { _ in true } ?? false
    }

    /// Whether the file has the table: one that was never synced has none.
    static func isThere(_ db: Database) throws -> Bool { try db.tableExists("tidemark_inferred") }

    /// The scopes with writes that were not compared yet, by name.
    static func uncomparedScopes(_ db: Database) throws -> [String] {
        try Query(db, "SELECT DISTINCT scope FROM tidemark_inferred WHERE NOT compared").rows(db) { $0.text(0) }
    }

    /// Whether a scope has any entry, compared or not.
    static func hasEntries(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_inferred WHERE scope = ?1 LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } ?? false
    }

    /// Whether a record's write waits to be compared, in whatever scope.
    static func isUncompared(_ db: Database, _ entity: String, _ record: String) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_inferred WHERE entity = ?1 AND record = ?2 AND compared = 0 LIMIT 1")
            .first(db, [.text(entity), .text(record)]) { _ in true } ?? false
    }

    /// Returns the records of a table whose writes wait to be compared in one scope.
    static func uncompared(_ db: Database, _ scope: Scope, _ entity: String) throws -> [String] {
        try Query(db, "SELECT record FROM tidemark_inferred WHERE entity = ?1 AND scope = ?2 AND compared = 0")
            .rows(db, [.text(entity), .text(scope.name)]) { $0.text(0) }
    }

    /// Returns the records of a table whose writes wait to be compared, with the scope of each.
    static func places(_ db: Database, _ entity: String) throws -> [(record: String, scope: String)] {
        try Query(db, "SELECT record, scope FROM tidemark_inferred WHERE entity = ?1 AND compared = 0")
            .rows(db, [.text(entity)]) { ($0.text(0), $0.text(1)) }
    }

    /// Returns a table's entries in all scopes, without the rows of the first capture that wait to be compared.
    static func allButSeeds(_ db: Database, _ entity: String) throws -> [Entry] {
        try Query(
            db,
            """
            SELECT scope, entity, record, kind, hash, held, compared FROM tidemark_inferred
            WHERE entity = ?1 AND (kind <> ?2 OR compared)
            """
        ).rows(db, [.text(entity), .integer(Kind.seed.rawValue)], entry)
    }

    /// Keeps all entries of the file waiting for the app's confirmation.
    static func requireConfirmation(_ db: Database) throws {
        try Query(db, "UPDATE tidemark_inferred SET held = 1").execute()
    }
}
