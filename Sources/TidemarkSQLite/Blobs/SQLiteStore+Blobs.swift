import Foundation
import GRDB
public import TidemarkServer
import TidemarkWire

/// Blobs are files beside the database, and rows in it say which there are (A12). Whatever changes the names of files
/// has the database's one write transaction, so that no two processes do so at once. Sizes and offsets are in
/// bytes, moments in milliseconds since 1970.
///
/// All functions throw ``BlobRefusal``; `StoreUnavailable` where the disk or another process stands in the way for now,
/// and GRDB's `DatabaseError` for anything else.
extension SQLiteStore: BlobStore {
    /// Finds a blob by its row; one whose file is gone is not there.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func blob(_ hash: String, in scope: Scope) async throws -> StoredBlob? {
        let files = files
        return try await reading { db in
            guard let row = try BlobRows.blob(db, hash, in: scope) else { return nil }
            return try files.isWhole(hash, row.size, in: scope) ? row : nil
        }
    }

    /// Reads from the file.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func bytes(
        of blob: StoredBlob, in scope: Scope, from offset: Int64, limit: Int
    ) async throws -> [UInt8] {
        let limit = Int(min(Int64(limit), blob.size - offset))
        return try await files.run { [files] in
            try files.bytes(of: blob.hash, in: scope, from: offset, limit: limit)
        }
    }

    /// Reads rows along their key.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func blobs(
        in scope: Scope, after hash: String?, seenBefore moment: Int64, limit: Int
    ) async throws -> [StoredBlob] {
        try await reading { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT hash, size, seen_at FROM blob WHERE scope = ? AND hash > ? AND seen_at < ?
                    ORDER BY hash LIMIT ?
                    """, arguments: [scope.name, hash ?? "", moment, limit]
            ).map { StoredBlob(hash: $0[0], size: $0[1], seen: Date(milliseconds: $0[2])) }
        }
    }

    // MARK: Parts

    /// Writes in the caller's turn, and shares its commit with others.
    private func writing<Result: Sendable>(
        for name: BlobPartName, _ body: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        try await write(name.scope, for: name.principal) { writer in
            guard let writer = writer as? SQLiteScopeWriter else { throw DatabaseError(resultCode: .SQLITE_INTERNAL) }
            return try body(writer.db)
        }
    }

    /// Finds a part by its row, and what is kept of it by its file.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func part(_ name: BlobPartName) async throws -> BlobPart? {
        let files = files
        return try await reading { db in
            guard var part = try BlobRows.part(db, name), let kept = try files.kept(of: part) else { return nil }
            part.kept = kept
            return part
        }
    }

    /// Writes the row and makes the file in one transaction: nobody sees the row before its file is empty. The folders
    /// come before, and the file of the part whose place it takes goes behind.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func begin(
        _ name: BlobPartName, size: Int64, within room: BlobRoom, at moment: Int64
    ) async throws -> BlobPart {
        let files = files
        try await files.run { try files.prepare(name.scope) }
        let (part, former) = try await writing(for: name) { db in
            let begun = try BlobRows.begin(db, name, size: size, within: room, at: moment)
            try files.create(begun.0)
            return begun
        }
        if let former { try await files.run { files.remove(former) } }
        return part
    }

    /// Writes to the file; the row notes only when.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func append(
        _ bytes: [UInt8], to part: BlobPart, isLast: Bool, at moment: Int64
    ) async throws -> BlobPart {
        let files = files
        try await files.run { try files.append(bytes, to: part, isDurable: isLast) }
        var grown = part
        grown.kept += Int64(bytes.count)
        guard isLast else { return grown }
        let isThere = try await writing(for: part.name) { db in try BlobRows.note(db, part, writtenAt: moment) }
        guard isThere else {
            // Another process may have removed the row, and have been ended before it removed the file.
            try await files.run { files.remove(part) }
            throw BlobRefusal.moved
        }
        grown.written = moment
        return grown
    }

    /// Reads from the part's file.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func bytes(of part: BlobPart, from offset: Int64, limit: Int) async throws -> [UInt8] {
        let limit = Int(min(Int64(limit), part.kept - offset))
        return try await files.run { [files] in try files.bytes(of: part, from: offset, limit: limit) }
    }

    /// Brings the bytes to the disk beside the parts, and gives them the blob's name in the one transaction that there
    /// is. A process that is ended ahead of it leaves a file that is tidied away an hour later.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func keep(
        _ bytes: [UInt8], as name: BlobPartName, within room: BlobRoom, at moment: Int64
    ) async throws -> Bool {
        let (files, size) = (files, Int64(bytes.count))
        let draft = try await files.run { try files.draft(bytes, in: name.scope) }
        do {
            let (isNew, former) = try await writing(for: name) { db in
                let (part, former) = try BlobRows.begin(db, name, size: size, within: room, at: moment)
                let found = try BlobRows.blob(db, name.hash, in: name.scope)
                let isThere = try found.map { try files.isWhole($0.hash, $0.size, in: name.scope) } ?? false
                try BlobRows.finish(db, part, isCounted: found != nil, at: moment)
                if !isThere { try files.rename(draft: draft, to: name.hash, in: name.scope) }
                return (!isThere, former)
            }
            guard !isNew || former != nil else { return true }
            try await files.run {
                if !isNew { files.remove(draft: draft) }
                if let former { files.remove(former) }
            }
            return isNew
        } catch {
            try? await files.run { files.remove(draft: draft) }
            throw error
        }
    }

    /// Renames the file of a part that is all on the disk, and writes the blob's row behind that. A process that is
    /// ended in between leaves a part without a file of its own, which is finished again.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func finish(_ part: BlobPart, at moment: Int64) async throws -> Bool {
        let files = files
        try await files.run { try files.sync(part) }
        let isNew = try await writing(for: part.name) { db in
            guard try !BlobRows.isErased(db, part.name.scope) else { throw BlobRefusal.erased }
            guard try BlobRows.part(db, part.name)?.place == part.place else { throw BlobRefusal.moved }
            let found = try BlobRows.blob(db, part.name.hash, in: part.name.scope)
            let isThere = try found.map { try files.isWhole($0.hash, $0.size, in: part.name.scope) } ?? false
            if !isThere { try files.rename(part) }
            try BlobRows.finish(db, part, isCounted: found != nil, at: moment)
            return !isThere
        }
        if !isNew { try await files.run { files.remove(part) } }
        return isNew
    }

    /// Removes the row, then the file.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func drop(_ part: BlobPart) async throws {
        let isGone = try await writing(for: part.name) { db in try BlobRows.drop(db, part) }
        if isGone { try await files.run { [files] in files.remove(part) } }
    }

    /// Reads rows.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func parts(
        in scope: Scope?, of principal: String?, writtenBefore moment: Int64, limit: Int
    ) async throws -> [BlobPart] {
        try await reading { db in
            try BlobRows.parts(db, in: scope, of: principal, writtenBefore: moment, limit: limit)
        }
    }

    // MARK: Keeping and removing

    /// Writes moments.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func noteSeen(_ hashes: [String], in scope: Scope, at moment: Int64) async throws -> [String] {
        let files = files
        return try await writing { db in
            let note = try db.cachedStatement(
                sql: "UPDATE blob SET seen_at = max(seen_at, ?) WHERE scope = ? AND hash = ? RETURNING size")
            return try hashes.filter { hash in
                let size = try Int64.fetchOne(note, arguments: [moment, scope.name, hash])
                return try size.map { try !files.isWhole(hash, $0, in: scope) } ?? true
            }
        }
    }

    /// Removes the row in one transaction and the file in another, unless a row has come back.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func remove(_ blob: StoredBlob, in scope: Scope, seenBefore moment: Int64) async throws -> Bool {
        guard try await writing({ db in try BlobRows.remove(db, blob.hash, in: scope, seenBefore: moment) }) else {
            return false
        }
        try await removeFiles(of: [blob.hash], in: scope)
        return true
    }

    /// Reads the list of scopes.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func blobScopes(after scope: Scope?, limit: Int) async throws -> [BlobScope] {
        try await reading { db in
            try Row.fetchAll(
                db, sql: "SELECT scope, scanned_at FROM blob_scope WHERE scope > ? ORDER BY scope LIMIT ?",
                arguments: [scope?.name ?? "", limit]
            ).compactMap { row in
                Scope(row[0] as String).map { BlobScope(scope: $0, scanned: row[1]) }
            }
        }
    }

    /// Writes the moment, or takes a scope without blobs off the list.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func noteScan(of scope: Scope, at moment: Int64) async throws {
        try await writing { db in
            try db.execute(
                sql: "UPDATE blob_scope SET scanned_at = ? WHERE scope = ?", arguments: [moment, scope.name])
            try db.execute(
                sql: "DELETE FROM blob_scope WHERE scope = ? AND blobs = 0 AND parts = 0", arguments: [scope.name])
        }
    }

    /// Reads what is counted.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func blobTally(of scope: Scope, by principal: String?) async throws -> BlobTally {
        try await reading { db in try BlobRows.tally(db, of: scope, by: principal) }
    }

    /// Removes files that no row names.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or `DatabaseError`, as ``BlobStore`` says.
    public func tidyBlobs(of scope: Scope) async throws {
        let files = files
        let names = try await files.run { files.names(in: scope) }
        try await removeFiles(of: names.blobs, in: scope)
        try await files.run { files.removeOldDrafts(in: scope) }
        let parts = names.parts
        guard !parts.isEmpty else { return }
        try await writing { db in
            for place in parts where try !BlobRows.isPart(db, place) { files.remove(partAt: place, in: scope) }
        }
    }

    /// Files that one transaction looks at: others write between two.
    private static let fileStep = 500

    private func removeFiles(of hashes: [String], in scope: Scope) async throws {
        let files = files
        for start in stride(from: 0, to: hashes.count, by: Self.fileStep) {
            let some = hashes[start..<min(start + Self.fileStep, hashes.count)]
            try await writing { db in
                for hash in some where try BlobRows.mayRemoveFile(db, hash, in: scope) {
                    files.remove(hash, in: scope)
                }
            }
        }
    }
}
