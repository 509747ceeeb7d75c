import TidemarkCore
package import TidemarkWire

/// Blobs as callers ask for them (A12).
extension SyncServer {
    /// A part goes when it got no bytes for so long, in milliseconds.
    static let partLifetime: Int64 = 86_400_000
    /// A blob's last use is noted once in so long, in milliseconds.
    static let seenStep: Int64 = 3_600_000

    /// A caller's finding under a hash.
    package enum BlobFinding: Hashable, Sendable {
        case whole(StoredBlob)
        /// The scope has no such blob. For a caller who may write: how many bytes of it are kept for him.
        case missing(kept: Int64?)
    }

    /// The store, where it keeps blobs.
    func blobStore() throws(Problem) -> any BlobStore {
        guard let blobs = store as? any BlobStore else {
            throw Problem(.notFound, "The store of this server keeps no blobs.")
        }
        return blobs
    }

    /// The blob of a hash, to be read.
    ///
    /// - Throws: 404 where the scope has none, 403 where the caller may not read it, whether it has it or not.
    package func blob(_ hash: String, in scope: Scope, access: Access) async throws -> StoredBlob {
        let scope = try await admit(hash, scope, access, to: .read).scope
        guard let blob = try await blobStore().blob(hash, in: scope) else {
            throw Problem(.notFound, "The scope has no blob of this hash.")
        }
        return blob
    }

    /// Bytes of a blob from an offset on, one piece at most.
    package func bytes(of blob: StoredBlob, in scope: Scope, from offset: Int64, limit: Int64) async throws -> [UInt8] {
        try await blobStore().bytes(
            of: blob, in: scope.parent, from: offset, limit: Int(min(limit, Int64(BlobPart.pieceBytes))))
    }

    /// Looks for a blob for somebody who would send it, or wants to know whether it is there. It counts as used.
    package func findBlob(_ hash: String, in scope: Scope, access: Access) async throws -> BlobFinding {
        let scope = try await admit(hash, scope, access, to: .read).scope
        let blobs = try blobStore()
        let name = BlobPartName(scope: scope, principal: access.principal, hash: hash)
        if let blob = try await used(hash, in: scope) { return .whole(blob) }
        guard access.level == .readWrite else { return .missing(kept: nil) }
        guard let part = try await livePart(name) else { return .missing(kept: 0) }
        guard part.isComplete else { return .missing(kept: part.kept) }
        // All bytes had come, and the process ended before it could say so. They are read as a transfer's are.
        let transfer = try beginTransfer(of: access)
        defer { withExtendedLifetime(transfer) {} }
        do { _ = try await complete(part) } catch let problem as Problem where problem.code == .hashMismatch {
            return .missing(kept: 0)
        }
        return try await blobs.blob(hash, in: scope).map { .whole($0) } ?? .missing(kept: 0)
    }

    /// Takes the right to have one more blob on its way.
    ///
    /// - Throws: 429 where the caller has his share, 503 where all have theirs.
    package func beginTransfer(of access: Access) throws -> BlobTransfer {
        try transfers.begin(for: access.principal)
    }

    /// The scope itself of a caller who may ask for a hash in it, and whether it has records. Nothing is looked up for
    /// anybody else.
    func admit(
        _ hash: String, _ scope: Scope, _ access: Access, to level: Access.Level
    ) async throws -> (scope: Scope, isWritten: Bool) {
        try access.require(level, in: scope)
        guard BlobReference.isHash(hash) else {
            throw Problem(
                .invalidIdentifier, "A blob's address ends with its SHA-256, 64 lowercase hexadecimal digits.")
        }
        _ = try blobStore()
        let head = try await readScope(scope.parent, for: access.principal) { $0.state.head }
        return (scope.parent, head > 0)
    }

    /// The blob, which counts as used now.
    func used(_ hash: String, in scope: Scope) async throws -> StoredBlob? {
        let blobs = try blobStore()
        guard let blob = try await blobs.blob(hash, in: scope) else { return nil }
        let now = configuration.moment()
        guard now.saturatingSubtracting(blob.seen.milliseconds) > Self.seenStep else { return blob }
        return try await blobs.noteSeen([hash], in: scope, at: now).isEmpty ? blob : nil
    }

    /// A caller's part, unless it is too old.
    func livePart(_ name: BlobPartName) async throws -> BlobPart? {
        let blobs = try blobStore()
        guard let part = try await blobs.part(name) else { return nil }
        guard configuration.moment().saturatingSubtracting(part.written) > Self.partLifetime else { return part }
        try await blobs.drop(part)
        return nil
    }

    /// Makes the bytes that have come the scope's blob. Answers whether the scope had none.
    ///
    /// A caller who cannot wait for all of them to be read back goes, and asks again later: the reading goes on
    /// meanwhile, and whoever asks for the same part waits for it too.
    func complete(_ part: BlobPart) async throws -> Bool {
        try await completions.join(part.place, by: configuration.begin) { [self] in try await checked(part) }
    }

    /// Checks the bytes that have come, as the store has them, and makes them the scope's blob.
    private func checked(_ part: BlobPart) async throws -> Bool {
        let blobs = try blobStore()
        do {
            guard try await hash(of: part, in: blobs) == part.name.hash else {
                try await blobs.drop(part)
                throw Self.mismatch(part.size)
            }
            return try await blobs.finish(part, at: configuration.moment())
        } catch BlobRefusal.moved {
            // Another request of the same caller was faster.
            if try await blobs.blob(part.name.hash, in: part.name.scope) != nil { return false }
            throw try await offsetMismatch(part.name)
        } catch BlobRefusal.erased {
            throw Problem(.scopeErased, "Scope \(part.name.scope) was erased by the operator, with all that it held.")
        }
    }

    /// The bytes are read back: what is called whole is what the store has.
    private func hash(of part: BlobPart, in blobs: any BlobStore) async throws -> String {
        try await hash(of: part.size) { offset in
            try await blobs.bytes(of: part, from: offset, limit: BlobPart.pieceBytes)
        }
    }

    /// The SHA-256 of so many bytes, as 64 digits, from a piece at a time.
    func hash(of size: Int64, reading read: @Sendable (Int64) async throws -> [UInt8]) async throws -> String {
        var (hash, offset) = (SHA256(), Int64(0))
        while offset < size {
            try Task.checkCancellation()
            let bytes = try await read(offset)
            guard !bytes.isEmpty else { throw BlobRefusal.moved }
            hash = await withCheckedContinuation { [hash] continuation in
                configuration.offload {
                    var hash = hash
                    hash.update(bytes)
                    continuation.resume(returning: hash)
                }
            }
            offset += Int64(bytes.count)
        }
        return hash.finish().map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    func offsetMismatch(_ name: BlobPartName) async throws -> Problem {
        let kept = try await livePart(name)?.kept ?? 0
        var problem = Problem(.uploadOffsetMismatch, "The part that is kept of this blob has \(kept) bytes.")
        problem.offset = kept
        return problem
    }
}
