import Foundation
import GRDB
import TidemarkWire

/// The content of a store: each object once, the collections that it was found in, and how fresh each collection is.
///
/// Every function is one transaction. The caller sees to it that one class is worked on at one time: an answer that is
/// older than the stored one would undo it.
struct ObjectCache: Sendable {
    private let queue: DatabaseQueue
    /// How often everything was forgotten.
    private let clearings = Locked(0)
    /// For a fetch: how often that was when it began.
    private var clearingsSeen: Int?

    init(_ storage: ObjectStorage, scope: Scope?) throws(ObjectStoreError) {
        do {
            queue = try storage.open()
            try queue.write { db in try Self.prepare(db, scope?.name ?? "") }
        } catch let error as DatabaseError { throw ObjectStoreError(error) } catch { throw Self.failed }
    }

    /// The cache for one fetch: once everything was forgotten, it takes nothing more of what comes.
    func forFetch() -> ObjectCache {
        var cache = self
        cache.clearingsSeen = clearings.withLock { $0 }
        return cache
    }

    /// Raised with every change of the tables: copies in another layout are not worth converting.
    private static let layout = 1

    /// Makes the tables, and makes them anew for another scope, whose objects may have the same ids.
    private static func prepare(_ db: Database, _ scope: String) throws {
        let isKnown = try db.tableExists("tidemark_objects")
        if isKnown {
            let row = try Row.fetchOne(db, sql: "SELECT layout, scope FROM tidemark_objects")
            if row?["layout"] == layout, row?["scope"] == scope { return }
        }
        try db.execute(
            sql: """
                DROP TABLE IF EXISTS tidemark_objects;
                DROP TABLE IF EXISTS tidemark_object;
                DROP TABLE IF EXISTS tidemark_collection;
                DROP TABLE IF EXISTS tidemark_member;
                CREATE TABLE tidemark_objects (layout INTEGER NOT NULL, scope TEXT NOT NULL);
                -- `missing`: the server had no such object when it was asked for this one alone.
                CREATE TABLE tidemark_object (
                    class TEXT NOT NULL, id TEXT NOT NULL, modified INTEGER NOT NULL, json BLOB NOT NULL,
                    missing INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (class, id));
                -- `stamp`: the time to send next; NULL until the collection was complete once. `scan`: the number of
                -- the newest scan through the complete list.
                CREATE TABLE tidemark_collection (
                    key INTEGER PRIMARY KEY, class TEXT NOT NULL, query TEXT NOT NULL, stamp INTEGER,
                    scan INTEGER NOT NULL DEFAULT 0, UNIQUE (class, query));
                -- `scan`: the one that has seen the object last.
                CREATE TABLE tidemark_member (
                    collection INTEGER NOT NULL, id TEXT NOT NULL, scan INTEGER NOT NULL,
                    PRIMARY KEY (collection, id)) WITHOUT ROWID;
                CREATE INDEX tidemark_member_id ON tidemark_member (id);
                """)
        try db.execute(sql: "INSERT INTO tidemark_objects VALUES (?, ?)", arguments: [layout, scope])
    }

    // MARK: Reading

    /// The collection as of its last fetch; `nil` where it was never complete.
    func collection(_ query: ObjectQuery) async throws -> [StoredObject]? {
        try await read { db in
            guard let state = try CollectionState.find(query, db), state.stamp != nil else { return nil }
            let rows = try Row.fetchCursor(
                db.cachedStatement(
                    sql: """
                        SELECT object.id, modified, json FROM tidemark_member AS member
                        JOIN tidemark_object AS object ON class = ? AND object.id = member.id
                        WHERE collection = ? ORDER BY member.id
                        """),
                arguments: [query.name, state.key])
            var objects: [StoredObject] = []
            while let row = try rows.next() { if let object = StoredObject(row) { objects.append(object) } }
            return objects
        }
    }

    func object(_ name: String, _ id: RecordID) async throws -> StoredObject? {
        try await read { db in
            try Row.fetchOne(
                db,
                sql: "SELECT id, modified, json FROM tidemark_object WHERE class = ? AND id = ? AND missing = 0",
                arguments: [name, id.text]
            ).flatMap(StoredObject.init)
        }
    }

    /// The time that the collection was complete at.
    func stamp(_ query: ObjectQuery) async throws -> Int64? {
        try await read { db in try CollectionState.find(query, db)?.stamp }
    }

    /// The objects of the collection as a header's map; of the whole class where all of it is asked for, so that what
    /// was loaded alone or by a query is told of too. `nil`: more than the header may have, or none.
    func map(_ query: ObjectQuery, limit: Int) async throws -> String? {
        try await read { db in
            let rows: RowCursor
            if query.isWhole {
                rows = try Row.fetchCursor(
                    db, sql: "SELECT id, modified FROM tidemark_object WHERE class = ?", arguments: [query.name])
            } else {
                guard let state = try CollectionState.find(query, db) else { return nil }
                rows = try Row.fetchCursor(
                    db,
                    sql: """
                        SELECT object.id, modified FROM tidemark_member AS member
                        JOIN tidemark_object AS object ON class = ? AND object.id = member.id WHERE collection = ?
                        """,
                    arguments: [query.name, state.key])
            }
            var map = DeltaMap(limit: limit)
            var isEmpty = true
            while let row = try rows.next() {
                isEmpty = false
                map.append(row[0], row[1])
                guard !map.isTooLarge else { return nil }
            }
            return isEmpty ? nil : map.text
        }
    }

    func removeAll() async throws {
        try await write { [clearings] db in
            clearings.withLock { $0 += 1 }
            try db.execute(
                sql: "DELETE FROM tidemark_member; DELETE FROM tidemark_collection; DELETE FROM tidemark_object")
        }
    }

    // MARK: Transactions

    private func read<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T {
        try await Self.telling { try await queue.read(body) }
    }

    func write<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T {
        try await Self.telling {
            try await queue.write { [clearings, clearingsSeen] db in
                if let clearingsSeen, clearings.withLock({ $0 }) != clearingsSeen {
                    throw ObjectStoreError(
                        .cacheCleared, "The cache was emptied while the fetch ran.", hint: "Fetch again.")
                }
                return try body(db)
            }
        }
    }

    private static var failed: ObjectStoreError {
        ObjectStoreError(.storageFailed, "The cache did not take the change.", hint: "Try again.")
    }

    private static func telling<T>(_ body: () async throws -> T) async throws -> T {
        do { return try await body() } catch let error as DatabaseError { throw ObjectStoreError(error) }
    }
}

/// A collection's row.
struct CollectionState: Sendable {
    var key: Int64
    var stamp: Int64?
    var scan: Int64

    static func find(_ query: ObjectQuery, _ db: Database) throws -> CollectionState? {
        try Row.fetchOne(
            db, sql: "SELECT key, stamp, scan FROM tidemark_collection WHERE class = ? AND query = ?",
            arguments: [query.name, query.text]
        ).map { CollectionState(key: $0[0], stamp: $0[1], scan: $0[2]) }
    }

    /// The row, made where there is none.
    static func take(_ query: ObjectQuery, _ db: Database) throws -> CollectionState {
        try db.execute(
            sql: "INSERT OR IGNORE INTO tidemark_collection (class, query) VALUES (?, ?)",
            arguments: [query.name, query.text])
        guard let state = try find(query, db) else {
            throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row that was written is not there")
        }
        return state
    }
}

extension StoredObject {
    /// A row of id, time and document; `nil` for an id that the store has not written.
    fileprivate init?(_ row: Row) {
        guard let id = RecordID(row[0]) else { return nil }
        let json: Data = row[2]
        self.init(id: id, lastModifiedAt: Date(milliseconds: row[1]), json: [UInt8](json))
    }
}
