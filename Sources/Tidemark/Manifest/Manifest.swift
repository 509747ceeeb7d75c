import GRDB
import TidemarkWire

/// The records that the server has in one table and scope, as far as this device knows, each with a hash of its row:
/// the evidence by which rows that were written while no trigger stood are found, and rows are counted without a scan.
///
/// It holds what a comparison with the server reads (`ServerRowScan`): rows without edits, the shadows of edited ones,
/// and quarantined rows. A record takes some 20 bytes; a range of neighbours is one row of the file, a page or half of
/// one (``ManifestCoding``), so that a page in key order writes few of them.
struct Manifest {
    let db: Database
    let scope: Scope
    let entity: String

    private var place: [Cell] { [.text(scope.name), .text(entity)] }

    // MARK: Reading

    struct Stored {
        var id: Int64
        var first: [UInt8]
        var entries: ManifestRange
    }

    /// The range that a key belongs to.
    func range(of key: [UInt8]) throws -> Stored? {
        try Query(
            db,
            """
            SELECT id, first, entries FROM tidemark_manifest
            WHERE scope = ?1 AND entity = ?2 AND first <= ?3 ORDER BY first DESC LIMIT 1
            """
        ).first(db, place + [.blob(key)], stored) ?? first()
    }

    /// A key that comes before all ranges belongs to the first of them.
    private func first() throws -> Stored? {
        try Query(
            db,
            "SELECT id, first, entries FROM tidemark_manifest WHERE scope = ?1 AND entity = ?2 ORDER BY first LIMIT 1"
        ).first(db, place, stored)
    }

    /// The first range behind a key, `nil` standing for the beginning.
    func next(after key: [UInt8]?) throws -> Stored? {
        guard let key else { return try first() }
        return try Query(
            db,
            """
            SELECT id, first, entries FROM tidemark_manifest
            WHERE scope = ?1 AND entity = ?2 AND first > ?3 ORDER BY first LIMIT 1
            """
        ).first(db, place + [.blob(key)], stored)
    }

    private func start(after key: [UInt8]) throws -> [UInt8]? {
        try Query(
            db,
            """
            SELECT first FROM tidemark_manifest
            WHERE scope = ?1 AND entity = ?2 AND first > ?3 ORDER BY first LIMIT 1
            """
        ).first(db, place + [.blob(key)]) { $0.blob(0) }
    }

    private func stored(_ row: Query) -> Stored {
        Stored(id: row.integer(0), first: row.blob(1), entries: ManifestRange(row.blob(2)))
    }

    /// All of its records, for readers of a few.
    func ids() throws -> [RecordID] {
        var ids: [RecordID] = []
        var last: [UInt8]?
        while let range = try next(after: last) {
            ids += range.entries.entries.compactMap { PackedID.decode($0.key) }
            last = range.first
        }
        return ids
    }

    func hash(of id: RecordID) throws -> UInt64? {
        let key = PackedID.encode(id)
        return try range(of: key)?.entries.find(key)?.hash
    }

    // MARK: Writing

    func update(with changes: [[UInt8]: UInt64?]) throws {
        try update(with: changes.map { ManifestChange(key: $0.key, hash: $0.value) })
    }

    /// Writes changes, one of each record. Each range is read and written once.
    func update(with changes: [ManifestChange]) throws {
        var rest = changes.sorted { $0.key.lexicographicallyPrecedes($1.key) }[...]
        var grown = 0
        while let key = rest.first?.key {
            var stored = try range(of: key)
            let end = try stored.flatMap { try start(after: max($0.first, key)) }
            let count = rest.firstIndex { change in end.map { !change.key.lexicographicallyPrecedes($0) } ?? false }
            let part = rest[rest.startIndex..<(count ?? rest.endIndex)]
            rest = rest[(count ?? rest.endIndex)...]
            var entries = stored?.entries ?? ManifestRange()
            let before = entries.count
            guard entries.merge(part) else { continue }
            grown += entries.count - before
            try write(entries, over: stored)
            stored = nil
        }
        if grown != 0 { try count(grown) }
    }

    private func max(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
        left.lexicographicallyPrecedes(right) ? right : left
    }

    private func write(_ entries: ManifestRange, over stored: Stored?) throws {
        var blobs = entries.blobs()[...]
        if let stored {
            if let kept = blobs.popFirst() {
                try Query(db, "UPDATE tidemark_manifest SET first = ?2, entries = ?3 WHERE id = ?1")
                    .execute([.integer(stored.id), .blob(kept.first), .blob(kept.blob)])
            } else {
                try Query(db, "DELETE FROM tidemark_manifest WHERE id = ?1").execute([.integer(stored.id)])
            }
        }
        for part in blobs {
            try Query(db, "INSERT INTO tidemark_manifest(scope, entity, first, entries) VALUES (?1, ?2, ?3, ?4)")
                .execute(place + [.blob(part.first), .blob(part.blob)])
        }
    }

    private func count(_ grown: Int) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_manifested(scope, entity, records) VALUES (?1, ?2, ?3)
            ON CONFLICT(scope, entity) DO UPDATE SET records = records + excluded.records
            """
        ).execute(place + [.integer(Int64(grown))])
    }

    func remove(_ id: RecordID) throws {
        try update(with: [ManifestChange(key: PackedID.encode(id), hash: nil)])
    }

    func clear() throws {
        for table in ["manifest", "manifested"] {
            try Query(db, "DELETE FROM tidemark_\(table) WHERE scope = ?1 AND entity = ?2").execute(place)
        }
    }

    /// The scopes that hold records of a table.
    static func scopes(_ db: Database, _ entity: String) throws -> [Scope] {
        try Query(db, "SELECT scope FROM tidemark_manifested WHERE entity = ?1 ORDER BY scope")
            .rows(db, [.text(entity)]) { Scope($0.text(0)) }.compactMap { $0 }
    }

    /// Counts the records of a table in all scopes.
    static func count(_ db: Database, _ entity: String) throws -> Int {
        try Query(db, "SELECT coalesce(sum(records), 0) FROM tidemark_manifested WHERE entity = ?1")
            .first(db, [.text(entity)]) { Int($0.integer(0)) } ?? 0
    }
}
