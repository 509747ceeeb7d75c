package import GRDB
package import TidemarkWire

/// The edits that wait in the file, counted for the status and for waking up.
package enum Pending {
    /// Whether anything can be sent; what the server has no room for waits (``Deferral``).
    static func exists(_ db: Database, _ schema: SyncSchema, _ scope: Scope) throws -> Bool {
        let deferral = try Deferral.read(db, scope)
        for shape in schema.shapes(in: scope) {
            let shadows = ShadowTable(shape)
            for place in shape.placesSQL(scope) {
                if try shadows.isAnyMarked(db, place) { return true }
                // A deferred record is sent at once if it was edited since.
                if let deferral, try shadows.isAnyPutOff(db, place, editedAfter: deferral.clock) { return true }
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
            try shape.placesSQL(scope).contains { place in try ShadowTable(shape).isAnyMarked(db, place) }
        }
    }

    static func marks(_ db: Database, _ schema: SyncSchema, _ scope: Scope) throws -> Int {
        try schema.shapes(in: scope).reduce(0) { sum, shape in
            let places = shape.placesSQL(scope).joined(separator: " OR ")
            let marks = try ShadowTable(shape).countMarks(db, places)
            return try sum + marks + FirstCapture.left(db, shape.name).untouched
        }
    }

    /// Records with marks that none of these scopes may send.
    static func unfollowed(_ db: Database, followed: [Scope]) throws -> Int {
        let names = followed.map { literal($0.name) }.joined(separator: ", ")
        return try ShadowTable.entities(db).reduce(0) { sum, entity in
            sum + (try ShadowTable.countMarks(db, of: entity, besides: names))
        }
    }

    /// The scopes that records with marks, and writes that no trigger saw, belong to by their columns. No schema is
    /// needed; a file without the library's tables has none.
    package static func routedScopes(_ db: Database) throws -> Set<Scope> {
        guard try Inferred.isThere(db) else { return [] }
        var names = try Inferred.uncomparedScopes(db)
        for entity in try ShadowTable.entities(db) { names += try ShadowTable.routingScopes(db, of: entity) }
        return Set(names.compactMap { Scope($0) })
    }

    /// Records with marks, and when the oldest mark was made, by what stands in the file: no schema is needed, so
    /// that a command line can look at any app's file.
    static func marks(_ db: Database) throws -> (count: Int, since: Int64?) {
        var total = 0
        var oldest: Int64?
        for entity in try ShadowTable.entities(db) {
            let (count, since) = try ShadowTable.marks(db, of: entity)
            let first = try FirstCapture.left(db, entity)
            total += Int(count) + first.untouched
            oldest = [oldest, since, first.since].compactMap { $0 }.min()
        }
        return (total, oldest)
    }
}
