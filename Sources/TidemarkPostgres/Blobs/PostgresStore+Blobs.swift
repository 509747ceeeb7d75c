import Foundation
public import TidemarkServer
import TidemarkWire

/// Blobs are rows, whichever node they come to (A12). Sizes and offsets are in bytes, moments in milliseconds
/// since 1970. All functions throw ``BlobRefusal``, `StoreUnavailable` for what passes by itself, and ``PostgresError``
/// for the rest.
extension PostgresStore: BlobStore {
    private static let find = Statement(
        "blob", "SELECT size, seen_at, place FROM blob WHERE scope = $1 AND hash = $2")

    /// Finds a blob by its row.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func blob(_ hash: String, in scope: Scope) async throws -> StoredBlob? {
        try await reads.run { line in
            try line.read { session in
                let answer = try session.ask(Self.find, .text(scope.name), .text(hash))
                guard answer.count > 0 else { return nil }
                return StoredBlob(
                    hash: hash, size: try answer.integer(0, 0), seen: Date(milliseconds: try answer.integer(0, 1)),
                    place: try answer.integer(0, 2))
            }
        }
    }

    /// From the row that has the offset on; no byte leaves the database that is not asked for. A row may be a single
    /// byte, so the rows of one answer are bounded too.
    private static let readPieces = Statement(
        "blob pieces",
        """
        SELECT substring(
            bytes FROM greatest($3::bigint - start, 0)::int + 1 FOR ($3 + $4::bigint - greatest(start, $3))::int)
        FROM blob_piece WHERE scope = $1 AND place = $2 AND start < $3 + $4 AND start >= (
            SELECT coalesce(max(start), 0) FROM blob_piece WHERE scope = $1 AND place = $2 AND start <= $3)
        ORDER BY start LIMIT 4096
        """)

    private func bytes(
        at place: Int64, in scope: Scope, for caller: String, from offset: Int64, limit: Int
    ) async throws -> [UInt8] {
        try await reads.run(for: caller, in: scope) { line in
            try line.read { session in
                let answer = try session.ask(
                    Self.readPieces, .text(scope.name), .integer(place), .integer(offset), .integer(Int64(limit)))
                guard answer.count > 0, var bytes = answer.array(0, 0), !bytes.isEmpty else {
                    throw BlobRefusal.moved
                }
                for row in 1..<answer.count { bytes += answer.bytes(row, 0) }
                return bytes
            }
        }
    }

    /// Reads rows that follow on each other.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func bytes(
        of blob: StoredBlob, in scope: Scope, from offset: Int64, limit: Int
    ) async throws -> [UInt8] {
        try await bytes(at: blob.place, in: scope, for: "", from: offset, limit: limit)
    }

    private static let list = Statement(
        "blobs seen before",
        """
        SELECT hash, size, seen_at, place FROM blob WHERE scope = $1 AND hash > $2 AND seen_at < $3
        ORDER BY hash LIMIT $4
        """)

    /// Reads rows along their key.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func blobs(
        in scope: Scope, after hash: String?, seenBefore moment: Int64, limit: Int
    ) async throws -> [StoredBlob] {
        try await reads.run { line in
            try line.read { session in
                let answer = try session.ask(
                    Self.list, .text(scope.name), .text(hash ?? ""), .integer(moment), .integer(Int64(limit)))
                return try (0..<answer.count).map { row in
                    StoredBlob(
                        hash: answer.text(row, 0), size: try answer.integer(row, 1),
                        seen: Date(milliseconds: try answer.integer(row, 2)), place: try answer.integer(row, 3))
                }
            }
        }
    }

    // MARK: Parts

    /// Finds a part by its row.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func part(_ name: BlobPartName) async throws -> BlobPart? {
        try await reads.run(for: name.principal, in: name.scope) { line in
            try line.read { session in try BlobRows.part(session, name) }
        }
    }

    /// Writes the part's row, in one transaction with the counts.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func begin(
        _ name: BlobPartName, size: Int64, within room: BlobRoom, at moment: Int64
    ) async throws -> BlobPart {
        try await reads.run(for: name.principal, in: name.scope) { line in
            try line.write { session in
                try BlobRows.begin(session, name, size: size, within: room, at: moment)
            }
        }
    }

    /// Writes a piece, in one transaction with the part's row.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func append(
        _ bytes: [UInt8], to part: BlobPart, isLast: Bool, at moment: Int64
    ) async throws -> BlobPart {
        try await reads.run(for: part.name.principal, in: part.name.scope) { line in
            try line.write { session in try BlobRows.append(session, bytes, to: part, at: moment) }
        }
        var grown = part
        (grown.kept, grown.written) = (part.kept + Int64(bytes.count), moment)
        return grown
    }

    /// Reads rows that follow on each other.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func bytes(of part: BlobPart, from offset: Int64, limit: Int) async throws -> [UInt8] {
        try await bytes(
            at: part.place, in: part.name.scope, for: part.name.principal, from: offset, limit: limit)
    }

    /// Writes the part's rows and puts the blob's in their place, in one transaction.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func keep(
        _ bytes: [UInt8], as name: BlobPartName, within room: BlobRoom, at moment: Int64
    ) async throws -> Bool {
        try await reads.run(for: name.principal, in: name.scope) { line in
            try line.write { session in
                let part = try BlobRows.begin(
                    session, name, size: Int64(bytes.count), within: room, at: moment)
                if !bytes.isEmpty { try BlobRows.append(session, bytes, to: part, at: moment) }
                return try BlobRows.finish(session, part, at: moment)
            }
        }
    }

    /// Puts a blob's row in the place of the part's.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func finish(_ part: BlobPart, at moment: Int64) async throws -> Bool {
        try await reads.run(for: part.name.principal, in: part.name.scope) { line in
            try line.write { session in try BlobRows.finish(session, part, at: moment) }
        }
    }

    /// Removes the part's rows.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func drop(_ part: BlobPart) async throws {
        try await reads.run { line in
            try line.write { session in try BlobRows.drop(session, part) }
        }
    }

    /// Reads rows.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func parts(
        in scope: Scope?, of principal: String?, writtenBefore moment: Int64, limit: Int
    ) async throws -> [BlobPart] {
        try await reads.run { line in
            try line.read { session in
                try BlobRows.parts(session, in: scope, of: principal, writtenBefore: moment, limit: limit)
            }
        }
    }

    // MARK: Keeping and removing

    private static let note = Statement(
        "blobs seen",
        """
        UPDATE blob SET seen_at = greatest(seen_at, $3) WHERE scope = $1 AND hash = ANY ($2) RETURNING hash
        """)

    /// Writes moments.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func noteSeen(_ hashes: [String], in scope: Scope, at moment: Int64) async throws -> [String] {
        try await reads.run { line in
            try line.write { session in
                let answer = try session.change(Self.note, .text(scope.name), .texts(hashes), .integer(moment))
                let found = Set((0..<answer.count).map { answer.text($0, 0) })
                return hashes.filter { !found.contains($0) }
            }
        }
    }

    /// Removes the blob's rows.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func remove(_ blob: StoredBlob, in scope: Scope, seenBefore moment: Int64) async throws -> Bool {
        try await reads.run { line in
            try line.write { session in try BlobRows.remove(session, blob.hash, in: scope, seenBefore: moment) }
        }
    }

    private static let scopesWithBlobs = Statement(
        "scopes with blobs", "SELECT scope, scanned_at FROM blob_scope WHERE scope > $1 ORDER BY scope LIMIT $2")

    /// Reads the list of scopes.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func blobScopes(after scope: Scope?, limit: Int) async throws -> [BlobScope] {
        try await reads.run { line in
            try line.read { session in
                let answer = try session.ask(
                    Self.scopesWithBlobs, .text(scope?.name ?? ""), .integer(Int64(limit)))
                return try (0..<answer.count).compactMap { row in
                    guard let scope = Scope(answer.text(row, 0)) else { return nil }
                    return BlobScope(scope: scope, scanned: try answer.integer(row, 1))
                }
            }
        }
    }

    private static let scan = Statement("blobs scanned", "UPDATE blob_scope SET scanned_at = $2 WHERE scope = $1")
    private static let unlist = Statement(
        "no blobs left", "DELETE FROM blob_scope WHERE scope = $1 AND blobs = 0 AND parts = 0")

    /// Writes the moment, or takes a scope without blobs off the list.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func noteScan(of scope: Scope, at moment: Int64) async throws {
        try await reads.run { line in
            try line.write { session in
                try session.write(Self.scan, .text(scope.name), .integer(moment))
                try session.write(Self.unlist, .text(scope.name))
            }
        }
    }

    /// Reads what is counted.
    ///
    /// - Throws: ``BlobRefusal``, `StoreUnavailable` or ``PostgresError``, as ``BlobStore`` says.
    public func blobTally(of scope: Scope, by principal: String?) async throws -> BlobTally {
        try await reads.run { line in
            try line.read { session in try BlobRows.tally(session, of: scope, by: principal) }
        }
    }

    /// Does nothing: a transaction leaves nothing behind.
    ///
    /// - Throws: nothing.
    public func tidyBlobs(of scope: Scope) async throws {}
}
