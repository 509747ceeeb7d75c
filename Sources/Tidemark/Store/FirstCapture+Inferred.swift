import GRDB
import TidemarkWire

// Writes that no trigger saw, together with the rows of the first capture that wait.
extension Inferred {
    /// Returns entries of one scope that the server was not asked about yet, all of the first table that has any.
    static func uncompared(_ db: Database, _ scope: Scope, _ schema: SyncSchema, limit: Int) throws -> [Entry] {
        for shape in schema.shapes(in: scope) {
            let entries = try Query(
                db,
                """
                SELECT scope, entity, record, kind, hash, held, compared FROM tidemark_inferred
                WHERE scope = ?1 AND entity = ?2 AND compared = 0 ORDER BY record LIMIT ?3
                """
            ).rows(db, [.text(scope.name), .text(shape.name), .integer(Int64(limit))], entry)
            if !entries.isEmpty { return entries }
            let first = try FirstCapture.entries(db, scope, shape, limit: limit)
            if !first.isEmpty { return first }
        }
        return []
    }

    static func isAny(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_inferred WHERE scope = ?1 AND compared = 0 LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } ?? FirstCapture.isWaiting(db, scope)
    }

    /// Whether rows of a scope were written unseen, besides the records named.
    static func isAny(_ db: Database, _ scope: Scope, besides known: Set<RefetchQueue.Record>) throws -> Bool {
        if try FirstCapture.isWaiting(db, scope) { return true }
        return try Query(db, "SELECT entity, record FROM tidemark_inferred WHERE scope = ?1 AND compared = 0 LIMIT ?2")
            .rows(db, [.text(scope.name), .integer(Int64(known.count) + 1)]) { ($0.text(0), RecordID($0.text(1))) }
            .contains { entity, id in id.map { !known.contains(RefetchQueue.Record(entity: entity, id: $0)) } ?? true }
    }

    /// Refuses to write rows of a scope while some were written unseen: nothing tells yet what to keep of them.
    static func checkCompared(_ db: Database, _ scope: Scope) throws {
        guard try isAny(db, scope) else { return }
        throw SyncError(
            .databaseFailed, "The app's schema changed just now.", hint: "It is tried again by itself.", scope: scope)
    }
}
