import GRDB
import TidemarkServer

/// Counts and removes the rows of an erasure, in steps that hold up other writers for a moment only.
enum Erasing {
    /// Bytes of rows that one step removes, about: their pages are overwritten in the same transaction.
    private static let stepBytes: Int64 = 4 << 20

    /// One kind of thing: where it stands, and what it counts as.
    private struct Kind {
        let count: any WritableKeyPath<Erasure, Int> & Sendable
        let table: String
        /// Of the scope `?1`, given as its row's id, or, where the table says so, by its name `?2`.
        let ofScope: String
        /// Of the principal `?3`; `nil` where a row is nobody's.
        let ofPrincipal: String?
        /// The columns that name a row.
        var key = "rowid"
        /// The bytes of a row, where it may be large.
        var bytes = "0"
    }

    private static let kinds = [
        Kind(
            count: \.changes, table: "change", ofScope: "scope = ?1", ofPrincipal: nil,
            bytes: "coalesce(length(payload), 0) + coalesce(length(field_versions), 0)"),
        // Before the lanes: by them they are found.
        Kind(
            count: \.verdicts, table: "verdict", ofScope: "lane IN (SELECT id FROM lane WHERE scope = ?1)",
            ofPrincipal: "lane IN (SELECT id FROM lane WHERE scope = ?1 AND principal = ?3)",
            key: "lane, number", bytes: "length(members)"),
        Kind(count: \.lanes, table: "lane", ofScope: "scope = ?1", ofPrincipal: "scope = ?1 AND principal = ?3"),
        Kind(
            count: \.devices, table: "device", ofScope: "scope = ?1", ofPrincipal: "scope = ?1 AND principal = ?3",
            key: "scope, principal, client"),
        Kind(
            count: \.assignedIDs, table: "alias", ofScope: "scope = ?1", ofPrincipal: "scope = ?1 AND principal = ?3",
            key: "principal, client, entity, temporary"),
        Kind(
            count: \.tallies, table: "deletes", ofScope: "scope = ?1", ofPrincipal: "scope = ?1 AND principal = ?3",
            key: "scope, principal, entity"),
        Kind(
            count: \.rejections, table: "rejection", ofScope: "scope = ?2", ofPrincipal: "scope = ?2 AND principal = ?3"
        ),
    ]

    static func countKept(_ db: Database, _ scope: Scope, id: Int64?, by principal: String?) throws -> Erasure {
        var held = Erasure()
        for kind in kinds {
            guard let place = principal == nil ? kind.ofScope : kind.ofPrincipal else { continue }
            held[keyPath: kind.count] =
                try Int.fetchOne(
                    db, sql: "SELECT count(*) FROM \(kind.table) WHERE \(place)",
                    arguments: arguments(place, scope, id, principal)) ?? 0
        }
        return held
    }

    /// GRDB takes as many arguments as the highest number in a statement says.
    private static func arguments(
        _ place: String, _ scope: Scope, _ id: Int64?, _ principal: String?
    ) -> StatementArguments {
        var arguments: StatementArguments = [id ?? -1]
        if place.contains("?2") || place.contains("?3") { arguments += [scope.name] }
        if place.contains("?3") { arguments += [principal?.whole] }
        return arguments
    }

    static func step(
        _ db: Database, _ scope: Scope, id: Int64?, of principal: String?, limit: Int
    ) throws -> Erasure {
        try overwriting(db) {
            var gone = Erasure()
            for kind in kinds {
                guard gone.count < limit, let place = principal == nil ? kind.ofScope : kind.ofPrincipal else {
                    continue
                }
                let (keys, bytes) = try find(
                    db, kind, place, arguments(place, scope, id, principal), limit: limit - gone.count)
                guard let columns = keys.first?.count else { continue }
                let marks = Array(repeating: "?", count: columns).joined(separator: ", ")
                let delete = try db.cachedStatement(
                    sql: "DELETE FROM \(kind.table) WHERE (\(kind.key)) = (\(marks))")
                for key in keys { try delete.execute(arguments: StatementArguments(key)) }
                gone[keyPath: kind.count] += keys.count
                // Small removals share a transaction.
                if bytes >= stepBytes { break }
            }
            return gone
        }
    }

    private static func find(
        _ db: Database, _ kind: Kind, _ place: String, _ arguments: StatementArguments, limit: Int
    ) throws -> (keys: [[DatabaseValue]], bytes: Int64) {
        let found = try Row.fetchCursor(
            db, sql: "SELECT \(kind.bytes), \(kind.key) FROM \(kind.table) WHERE \(place)", arguments: arguments)
        var (keys, bytes): ([[DatabaseValue]], Int64) = ([], 0)
        while keys.count < limit, bytes < stepBytes, let row = try found.next() {
            bytes += row[0] as Int64
            keys.append(Array(row.databaseValues.dropFirst()))
        }
        return (keys, bytes)
    }

    /// Overwrites removed content on the disk while `work` runs. Elsewhere that would cost too much: each page that
    /// becomes free would be written.
    fileprivate static func overwriting<Result>(_ db: Database, _ work: () throws -> Result) throws -> Result {
        // Some systems have it on, or in part, from the start.
        let before = try Int.fetchOne(db, sql: "PRAGMA secure_delete") ?? 0
        try db.execute(sql: "PRAGMA secure_delete = ON")
        let result = Swift.Result { try work() }
        try db.execute(sql: "PRAGMA secure_delete = \(before == 2 ? "FAST" : String(before))")
        return try result.get()
    }
}

extension SQLiteScope {
    func countKept(by principal: String?) throws -> Erasure {
        try Erasing.countKept(db, scope, id: id, by: principal)
    }
}

extension SQLiteScopeWriter {
    func markErased(at moment: Int64) throws {
        guard state.erasedAt == nil else { return }
        let id = try create(at: moment)
        state = .erased(at: moment, head: state.head + 1)
        try Erasing.overwriting(db) {
            for table in ["digest", "incarnation"] {
                try db.execute(sql: "DELETE FROM \(table) WHERE scope = ?", arguments: [id])
            }
            try db.execute(
                sql: "UPDATE scope SET erased_at = ?, head = ?, last_time = 0, entities = '' WHERE id = ?",
                arguments: [moment, state.head, id])
        }
        try keepFloors(id)
        lastNewest = nil
    }

    func erase(of principal: String?, limit: Int) throws -> Erasure {
        try Erasing.step(db, scope, id: id, of: principal, limit: limit)
    }
}
