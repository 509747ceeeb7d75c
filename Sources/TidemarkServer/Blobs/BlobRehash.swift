public import TidemarkWire

/// The findings of a run that read the blobs of a store back.
public struct BlobRehash: Hashable, Sendable {
    /// Damaged blobs that are listed, at most. All of them are counted.
    public static let listLimit = 1000

    /// Blobs that there were at the beginning.
    public var expected = 0
    /// Blobs that were read, the damaged ones too.
    public var blobs = 0
    /// Their bytes.
    public var bytes: Int64 = 0
    /// Blobs whose bytes are not those of their name.
    public var damaged = 0
    /// How many damaged blobs were removed.
    public var removed = 0
    /// The first damaged ones, by scope and hash.
    public var list: [DamagedBlob] = []

    /// Nothing.
    public init() {}

    fileprivate mutating func note(_ blob: DamagedBlob) {
        damaged += 1
        removed += blob.isRemoved ? 1 : 0
        if list.count < Self.listLimit { list.append(blob) }
    }
}

extension BlobRehash: CustomStringConvertible {
    /// A sentence for a log: `Read 3 of 4 blobs, 120 bytes: 2 damaged, 1 removed.`
    public var description: String {
        "Read \(blobs) of \(counted(expected, "blob")), \(counted(bytes, "byte")): "
            + (damaged > 0 ? "\(damaged) damaged, \(removed) removed." : "all whole.")
    }
}

/// A blob whose bytes are not those of its name.
public struct DamagedBlob: Hashable, Sendable {
    /// What is wrong with it.
    public enum Damage: String, Hashable, Sendable {
        /// It has other bytes.
        case differs
        /// Bytes are missing, or there are too many.
        case lost
        /// The disk does not give them. That may pass, so such a blob is never removed.
        case unreadable
    }

    /// The scope that has it.
    public var scope: Scope
    /// Its name: the SHA-256 of the bytes that it should have.
    public var hash: String
    /// How many bytes it should have.
    public var size: Int64
    /// What is wrong.
    public var damage: Damage
    /// Whether it was removed.
    public var isRemoved: Bool

    /// Makes one from its parts.
    public init(scope: Scope, hash: String, size: Int64, damage: Damage, isRemoved: Bool) {
        (self.scope, self.hash, self.size) = (scope, hash, size)
        (self.damage, self.isRemoved) = (damage, isRemoved)
    }
}

extension DamagedBlob: CustomStringConvertible {
    /// A sentence for a log: `Blob 2c26… of w:1, 120 bytes: its bytes differ, and it was removed.`
    public var description: String {
        let fault =
            switch damage {
            case .differs: "its bytes differ"
            case .lost: "it has another number of bytes"
            case .unreadable: "it cannot be read"
            }
        return "Blob \(hash) of \(scope), \(counted(size, "byte")): \(fault)"
            + (isRemoved ? ", and it was removed." : ".")
    }
}

extension SyncServer {
    /// Scopes and blobs that are asked for at once.
    private static let rehashed = 256

    /// Reads all blobs back, a piece at a time, and compares their SHA-256 with their names. A server may run
    /// meanwhile; the reading takes what the disk has of speed.
    ///
    /// A damaged blob that is removed is missing from then on: it is asked for as one that never came, and whoever has
    /// its bytes may send them again.
    ///
    /// - Parameters:
    ///   - only: one scope; `nil`: all.
    ///   - removingDamaged: whether damaged blobs are removed, but for those that cannot be read now.
    ///   - progress: hears of each blob.
    /// - Throws: errors of the store; ``CommitError`` with `not_found` where the store keeps no blobs.
    public nonisolated(nonsending) func rehashBlobs(
        in only: Scope? = nil, removingDamaged: Bool = false,
        progress: @Sendable (BlobRehash) -> Void = { _ in }
    ) async throws -> BlobRehash {
        guard let blobs = store as? any BlobStore else {
            throw CommitError(code: ProblemCode.notFound.rawValue, detail: "The store keeps no blobs.")
        }
        var rehash = BlobRehash()
        let scopes = if let only { [only.parent] } else { try await scopesWithBlobs(blobs) }
        for scope in scopes { rehash.expected += try await blobs.blobTally(of: scope, by: nil).blobs }
        for scope in scopes { try await read(scope, blobs, removingDamaged, &rehash, progress) }
        return rehash
    }

    private func scopesWithBlobs(_ blobs: any BlobStore) async throws -> [Scope] {
        var all: [Scope] = []
        while true {
            let scopes = try await blobs.blobScopes(after: all.last, limit: Self.rehashed)
            all += scopes.map(\.scope)
            guard scopes.count == Self.rehashed else { return all }
        }
    }

    private func read(
        _ scope: Scope, _ blobs: any BlobStore, _ removingDamaged: Bool, _ rehash: inout BlobRehash,
        _ progress: @Sendable (BlobRehash) -> Void
    ) async throws {
        var last: String?
        while true {
            let some = try await blobs.blobs(in: scope, after: last, seenBefore: .max, limit: Self.rehashed)
            for blob in some {
                try Task.checkCancellation()
                try await read(blob, in: scope, blobs, removingDamaged, &rehash)
                progress(rehash)
            }
            guard some.count == Self.rehashed else { return }
            last = some.last?.hash
        }
    }

    private func read(
        _ blob: StoredBlob, in scope: Scope, _ blobs: any BlobStore, _ removingDamaged: Bool,
        _ rehash: inout BlobRehash
    ) async throws {
        var (blob, isRemoved) = (blob, false)
        var kept: StoredBlob?
        while let damage = try await damage(of: blob, in: scope, blobs) {
            // It may have gone since it was listed, or have been sent anew.
            guard let present = try await listed(blob.hash, in: scope, blobs) else { return }
            guard present == blob else {
                blob = present
                continue
            }
            // A blob that was not removed and is unchanged stays, because a `Date` does not hold to the millisecond
            // what a broken clock wrote for its moment: each further attempt would end like the first.
            if removingDamaged, damage != .unreadable, blob != kept {
                // Bytes that were sent anew came at a later moment: they stay.
                let moment = blob.seen.milliseconds.saturatingAdding(1)
                isRemoved = try await blobs.remove(blob, in: scope, seenBefore: moment)
                guard isRemoved else {
                    kept = blob
                    continue
                }
            }
            rehash.note(
                DamagedBlob(scope: scope, hash: blob.hash, size: blob.size, damage: damage, isRemoved: isRemoved))
            break
        }
        rehash.blobs += 1
        rehash.bytes += blob.size
    }

    private func damage(
        of blob: StoredBlob, in scope: Scope, _ blobs: any BlobStore
    ) async throws -> DamagedBlob.Damage? {
        do {
            let found = try await hash(of: blob.size) { offset in
                try await blobs.bytes(of: blob, in: scope, from: offset, limit: BlobPart.pieceBytes)
            }
            guard found == blob.hash else { return .differs }
            // A store may know more of it than its first bytes.
            return try await blobs.blob(blob.hash, in: scope) == nil ? .lost : nil
        } catch BlobRefusal.moved {
            return .lost
        } catch let error where !(error is CancellationError) {
            // A broken page of a database is an error of its own. Where all of the store is, the next question fails.
            return .unreadable
        }
    }

    /// The blob as its row has it, whether its bytes are there or not.
    private func listed(_ hash: String, in scope: Scope, _ blobs: any BlobStore) async throws -> StoredBlob? {
        // Behind the hash without its last digit come those that differ in it, 16 at most.
        try await blobs.blobs(in: scope, after: String(hash.dropLast()), seenBefore: .max, limit: 16)
            .first { $0.hash == hash }
    }
}
