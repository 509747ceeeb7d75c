package import GRDB
package import TidemarkWire

/// The edits that wait in the file, counted for the status and for waking up.
package enum Pending {
    /// Whether anything can be sent; what the server has no room for waits (``Deferral``).
    static func exists(_ db: Database, _ schema: SyncSchema, _ scope: Scope) throws -> Bool {
        // A deferred record is sent at once if it was edited since.
        let edited = try Deferral.read(db, scope).map { "tidemark_mark < 0 AND tidemark_edited > \($0.clock)" }
        for shape in schema.shapes(in: scope) {
            for place in shape.placesSQL(scope) {
                for mark in ["tidemark_mark > 0", edited].compactMap({ $0 }) {
                    let sql = "SELECT 1 FROM \(shape.shadowSQL) WHERE \(mark) AND \(place) LIMIT 1"
                    if try Query(db, sql).first(db, [], { _ in true }) != nil { return true }
                }
            }
        }
        if try FirstCapture.isLeft(db, schema, scope) { return true }
        if try !QuarantinedRow.departures(db, scope, limit: 1).isEmpty { return true }
        return try Outbox.hasOpen(db, scope)
    }

    /// Whether a record waits to be sealed.
    static func isMarked(_ db: Database, _ schema: SyncSchema, _ scope: Scope) throws -> Bool {
        if try FirstCapture.isLeft(db, schema, scope) { return true }
        return try schema.shapes(in: scope).contains { shape in
            try shape.placesSQL(scope).contains { place in
                let sql = "SELECT 1 FROM \(shape.shadowSQL) WHERE tidemark_mark > 0 AND \(place) LIMIT 1"
                return try Query(db, sql).first(db) { _ in true } ?? false
            }
        }
    }

    static func marks(_ db: Database, _ schema: SyncSchema, _ scope: Scope) throws -> Int {
        try schema.shapes(in: scope).reduce(0) { sum, shape in
            let places = shape.placesSQL(scope).joined(separator: " OR ")
            let marks = try Query.count(
                db, "SELECT count(*) FROM \(shape.shadowSQL) WHERE tidemark_mark > 0 AND (\(places))")
            return try sum + marks + FirstCapture.left(db, shape.name).untouched
        }
    }

    /// Records with marks that none of these scopes may send.
    static func unfollowed(_ db: Database, followed: [Scope]) throws -> Int {
        let names = followed.map { literal($0.name) }.joined(separator: ", ")
        return try shadows(db).reduce(0) { sum, shadow in
            sum
                + (try Query.count(
                    db,
                    """
                    SELECT count(*) FROM \(quoted(shadow))
                    WHERE tidemark_mark IS NOT NULL AND tidemark_routing_scope NOT IN ('', \(names))
                    """))
        }
    }

    /// The scopes that records with marks, and writes that no trigger saw, belong to by their columns. No schema is
    /// needed; a file without the library's tables has none.
    package static func routedScopes(_ db: Database) throws -> Set<Scope> {
        guard try db.tableExists("tidemark_inferred") else { return [] }
        var names = try Query(db, "SELECT DISTINCT scope FROM tidemark_inferred WHERE NOT compared").rows(db) {
            $0.text(0)
        }
        for shadow in try shadows(db) {
            names += try Query(
                db,
                """
                SELECT DISTINCT tidemark_routing_scope FROM \(quoted(shadow))
                WHERE tidemark_mark IS NOT NULL AND tidemark_routing_scope <> ''
                """
            ).rows(db) { $0.text(0) }
        }
        return Set(names.compactMap { Scope($0) })
    }

    private static func shadows(_ db: Database) throws -> [String] {
        try Query(
            db,
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'tidemark\\_shadow\\_%' ESCAPE '\\'"
        ).rows(db) { $0.text(0) }
    }

    /// Records with marks, and when the oldest mark was made, by what stands in the file: no schema is needed, so
    /// that a command line can look at any app's file.
    static func marks(_ db: Database) throws -> (count: Int, since: Int64?) {
        var total = 0
        var oldest: Int64?
        for shadow in try shadows(db) {
            let (count, since) =
                try Query(
                    db, "SELECT count(*), min(tidemark_since) FROM \(quoted(shadow)) WHERE tidemark_mark IS NOT NULL"
                ).first(db) { ($0.integer(0), $0.optionalInteger(1)) } ?? (0, nil)
            let first = try FirstCapture.left(db, String(shadow.dropFirst(TableSchema.shadowPrefix.count)))
            total += Int(count) + first.untouched
            oldest = [oldest, since, first.since].compactMap { $0 }.min()
        }
        return (total, oldest)
    }
}
