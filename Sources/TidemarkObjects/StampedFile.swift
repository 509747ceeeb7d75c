import Foundation
import GRDB
import Tidemark
import TidemarkWire

/// The content of a stamped store: items as they stand here, the edits of them that wait, and the stamp of the last
/// sync.
struct StampedFile: Sendable {
    private let queue: DatabaseQueue

    init(_ storage: ObjectStorage, scope: Scope?) throws(ObjectStoreError) {
        do {
            queue = try storage.open()
            try queue.write { db in try Self.prepare(db, scope?.name ?? "") }
        } catch let error as ObjectStoreError { throw error } catch let error as DatabaseError {
            throw ObjectStoreError(error)
        } catch { throw Self.failed }
    }

    private static var failed: ObjectStoreError {
        ObjectStoreError(.storageFailed, "The file did not take the change.", hint: "Try again.")
    }

    private static func prepare(_ db: Database, _ scope: String) throws {
        if try db.tableExists("tidemark_stamped") {
            let known = try String.fetchOne(db, sql: "SELECT scope FROM tidemark_stamped")
            if known == scope { return }
            guard try Int.fetchOne(db, sql: "SELECT count(*) FROM tidemark_stamped_edit") == 0 else {
                throw ObjectStoreError(
                    .storageFailed, "The file holds edits for another scope.",
                    hint: "Sync them there first, or give the store a file of its own.")
            }
        }
        try db.execute(
            sql: """
                DROP TABLE IF EXISTS tidemark_stamped;
                DROP TABLE IF EXISTS tidemark_stamped_item;
                DROP TABLE IF EXISTS tidemark_stamped_edit;
                -- `scan`: how often everything was fetched from the beginning.
                CREATE TABLE tidemark_stamped (
                    scope TEXT NOT NULL, client_stamp INTEGER NOT NULL DEFAULT 0, began INTEGER,
                    scan INTEGER NOT NULL DEFAULT 1, is_scanning INTEGER NOT NULL DEFAULT 1,
                    number INTEGER NOT NULL DEFAULT 0);
                -- `scan`: the one that has seen the item last.
                CREATE TABLE tidemark_stamped_item (
                    entity TEXT NOT NULL, id TEXT NOT NULL, data BLOB NOT NULL, scan INTEGER NOT NULL,
                    PRIMARY KEY (entity, id)) WITHOUT ROWID;
                -- `data`: NULL for a delete, and what was deleted is in `former`. `code`, `detail`: why the server did
                -- not take it; it is not sent again.
                CREATE TABLE tidemark_stamped_edit (
                    entity TEXT NOT NULL, id TEXT NOT NULL, stamp INTEGER NOT NULL, data BLOB, former BLOB,
                    number INTEGER NOT NULL, code TEXT, detail TEXT, PRIMARY KEY (entity, id)) WITHOUT ROWID;
                """)
        try db.execute(sql: "INSERT INTO tidemark_stamped (scope) VALUES (?)", arguments: [scope])
    }

    // MARK: Items

    func item(_ entity: String, _ id: RecordID) async throws -> StampedItem? {
        try await read { db in
            try Self.data(db, entity, id).map { StampedItem(entity: entity, id: id, fields: $0.values) }
        }
    }

    func items(_ entity: String) async throws -> [StampedItem] {
        try await read { db in
            try Row.fetchAll(
                db, sql: "SELECT id, data FROM tidemark_stamped_item WHERE entity = ? ORDER BY id",
                arguments: [entity]
            ).compactMap { row in
                guard let id = RecordID(row[0]), let data = Self.data(row[1]) else { return nil }
                return StampedItem(entity: entity, id: id, fields: data.values)
            }
        }
    }

    /// Sets fields, or deletes (`nil`): on the item as it stands, and beside it as an edit that waits.
    func edit(_ entity: String, _ id: RecordID, _ data: DataObject?, at moment: Int64) async throws {
        try await write { db in
            let known = try Self.edits(db, "entity = ? AND id = ?", [entity, id.text]).first
            let current = try Self.data(db, entity, id)
            // A delete and fields that are set after it are sent as one edit, which sets the deleted fields to NULL.
            let before = known.flatMap { $0.data ?? $0.former?.cleared }
            let merged = data.map { before?.overlaid(with: $0) ?? $0 }
            let former = data == nil ? current ?? known?.former : nil
            try db.execute(sql: "UPDATE tidemark_stamped SET number = number + 1")
            try db.execute(
                sql: """
                    INSERT OR REPLACE INTO tidemark_stamped_edit (entity, id, stamp, data, former, number)
                    VALUES (?, ?, ?, ?, ?, (SELECT number FROM tidemark_stamped))
                    """,
                // The later edit gets the later stamp, whatever the clock did between the two.
                arguments: [
                    entity, id.text, max(moment, (known?.stamp ?? .min).addingOne), merged.map { Data($0.bytes) },
                    former.map { Data($0.bytes) },
                ])
            try Self.place(db, entity, id, merged.map { current?.overlaid(with: $0) ?? $0 })
        }
    }

    func unsentCount() async throws -> Int {
        try await read { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM tidemark_stamped_edit WHERE code IS NULL") ?? 0
        }
    }

    func refusals() async throws -> [StampedRefusal] {
        try await read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT entity, id, data, code, detail FROM tidemark_stamped_edit WHERE code IS NOT NULL
                    ORDER BY number
                    """
            ).compactMap { row in
                guard let id = RecordID(row[1]) else { return nil }
                let data: Data? = row[2]
                return StampedRefusal(
                    entity: row[0], id: id, fields: data.flatMap { Self.data($0) }?.values, code: row[3],
                    detail: row[4])
            }
        }
    }

    // MARK: Exchanges

    /// Bytes of edits in one request, about; one alone may have more.
    private static let questionBytes = 1 << 20

    func question(limit: Int) async throws -> StampedQuestion {
        try await read { db in
            let row = try Row.fetchOne(db, sql: "SELECT client_stamp, began FROM tidemark_stamped")
            var edits: [StampedEdit] = []
            var bytes = 0
            for edit in try Self.edits(db, "code IS NULL", [], limit: limit) {
                bytes += edit.data?.bytes.count ?? 0
                if bytes > Self.questionBytes, !edits.isEmpty { break }
                edits.append(edit)
            }
            return StampedQuestion(clientStamp: row?[0] ?? 0, began: row?[1], edits: edits)
        }
    }

    /// Takes an answer, in one transaction with its stamp. Returns whether there is more to do.
    func take(_ answer: StampedAnswer, to question: StampedQuestion) async throws -> Bool {
        try await write { db in
            let refused = Dictionary(answer.refused.map { (Name($0.entity, $0.id), $0) }, uniquingKeysWith: { $1 })
            for edit in question.edits { try Self.finish(db, edit, refused[Name(edit.entity, edit.id)]) }
            for item in answer.items {
                // An edit that was made meanwhile stays above what comes.
                let edit = try Self.edits(db, "entity = ? AND id = ? AND code IS NULL", [item.entity, item.id.text])
                    .first
                guard let edit, !question.edits.contains(where: { $0.number == edit.number }) else {
                    try Self.place(db, item.entity, item.id, item.data)
                    continue
                }
                try Self.place(
                    db, item.entity, item.id, edit.data.map { item.data?.overlaid(with: $0) ?? $0 })
            }
            try db.execute(
                sql: "UPDATE tidemark_stamped SET client_stamp = ?, began = ?",
                arguments: [answer.clientStamp, answer.began])
            if !answer.hasMore { try Self.endScan(db) }
            let isUnsent = try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM tidemark_stamped_edit WHERE code IS NULL)")
            return answer.hasMore || isUnsent == true
        }
    }

    /// The server cannot say any more what has changed: everything is fetched, and what does not come is gone.
    func beginAnew() async throws {
        try await write { db in
            // The server believes an edit to be later than the last sync, of which the next question says nothing; and
            // it may have forgotten the item, so that all of it is sent.
            try db.execute(
                sql: """
                    UPDATE tidemark_stamped_edit
                    SET stamp = max(stamp, (SELECT client_stamp FROM tidemark_stamped) + 1),
                        data = CASE WHEN data IS NOT NULL THEN coalesce((SELECT item.data
                            FROM tidemark_stamped_item AS item WHERE item.entity = tidemark_stamped_edit.entity
                            AND item.id = tidemark_stamped_edit.id), data) END;
                    UPDATE tidemark_stamped SET client_stamp = 0, began = NULL, scan = scan + 1, is_scanning = 1
                    """)
        }
    }

    /// The server takes no request with this edit in it, and takes one without it.
    func refuse(_ edit: StampedEdit, _ code: String, _ detail: String) async throws {
        try await write { db in
            try Self.finish(
                db, edit, StampedAnswer.Refusal(entity: edit.entity, id: edit.id, code: code, detail: detail))
        }
    }

    private static func finish(_ db: Database, _ edit: StampedEdit, _ refusal: StampedAnswer.Refusal?) throws {
        if refusal?.isToBeSentAgain == true { return }
        if let refusal {
            return try db.execute(
                sql: """
                    UPDATE tidemark_stamped_edit SET code = ?, detail = ? WHERE entity = ? AND id = ? AND number = ?
                    """,
                arguments: [refusal.code, refusal.detail, edit.entity, edit.id.text, edit.number])
        }
        try db.execute(
            sql: "DELETE FROM tidemark_stamped_edit WHERE entity = ? AND id = ? AND number = ?",
            arguments: [edit.entity, edit.id.text, edit.number])
        // The server does not send an item back that it took as it was sent, so the item counts as seen in this scan.
        try db.execute(
            sql: """
                UPDATE tidemark_stamped_item SET scan = (SELECT scan FROM tidemark_stamped)
                WHERE entity = ? AND id = ?
                """,
            arguments: [edit.entity, edit.id.text])
    }

    private static func endScan(_ db: Database) throws {
        guard try Bool.fetchOne(db, sql: "SELECT is_scanning FROM tidemark_stamped") == true else { return }
        try db.execute(
            sql: """
                DELETE FROM tidemark_stamped_item WHERE scan < (SELECT scan FROM tidemark_stamped)
                AND NOT EXISTS (SELECT 1 FROM tidemark_stamped_edit AS edit
                    WHERE edit.entity = tidemark_stamped_item.entity AND edit.id = tidemark_stamped_item.id);
                UPDATE tidemark_stamped SET is_scanning = 0
                """)
    }

    // MARK: Rows

    private struct Name: Hashable {
        var entity: String
        var id: RecordID

        init(_ entity: String, _ id: RecordID) { (self.entity, self.id) = (entity, id) }
    }

    private static func place(_ db: Database, _ entity: String, _ id: RecordID, _ data: DataObject?) throws {
        guard let data else {
            return try db.execute(
                sql: "DELETE FROM tidemark_stamped_item WHERE entity = ? AND id = ?", arguments: [entity, id.text])
        }
        try db.execute(
            sql: """
                INSERT OR REPLACE INTO tidemark_stamped_item (entity, id, data, scan)
                VALUES (?, ?, ?, (SELECT scan FROM tidemark_stamped))
                """,
            arguments: [entity, id.text, Data(data.bytes)])
    }

    private static func data(_ db: Database, _ entity: String, _ id: RecordID) throws -> DataObject? {
        try Data.fetchOne(
            db, sql: "SELECT data FROM tidemark_stamped_item WHERE entity = ? AND id = ?",
            arguments: [entity, id.text]
        ).flatMap { data($0) }
    }

    private static func data(_ bytes: Data) -> DataObject? { try? DataObject(stored: [UInt8](bytes)) }

    private static func edits(
        _ db: Database, _ condition: String, _ arguments: StatementArguments, limit: Int = .max
    ) throws -> [StampedEdit] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT entity, id, stamp, data, number, former FROM tidemark_stamped_edit WHERE \(condition)
                ORDER BY number LIMIT \(limit)
                """,
            arguments: arguments
        ).compactMap { row in
            guard let id = RecordID(row[1]) else { return nil }
            let (data, former): (Data?, Data?) = (row[3], row[5])
            return StampedEdit(
                entity: row[0], id: id, stamp: row[2], data: data.flatMap { Self.data($0) }, number: row[4],
                former: former.flatMap { Self.data($0) })
        }
    }

    // MARK: Transactions

    private func read<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T {
        do { return try await queue.read(body) } catch let error as DatabaseError { throw ObjectStoreError(error) }
    }

    private func write<T: Sendable>(_ body: @escaping @Sendable (Database) throws -> T) async throws -> T {
        do { return try await queue.write(body) } catch let error as DatabaseError { throw ObjectStoreError(error) }
    }
}

extension Int64 {
    fileprivate var addingOne: Int64 { self == .max ? self : self + 1 }
}
