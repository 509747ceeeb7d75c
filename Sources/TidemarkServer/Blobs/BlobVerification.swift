import TidemarkWire

/// How the blobs of a store stand to the records that name them.
public struct BlobVerification: Hashable, Sendable {
    /// Scopes that were looked at: those with records or blobs.
    public var scopes = 0
    /// Blobs that are whole.
    public var blobs = 0
    /// Their bytes, and those of what is being sent.
    public var bytes: Int64 = 0
    /// Uploads that are not finished.
    public var parts = 0
    /// Names in records of blobs that their scope has not: not yet, or not any more.
    public var missing = 0
    /// Blobs that no live record names. They are kept for a while (W106).
    public var unnamed = 0

    /// Nothing.
    public init() {}
}

extension BlobVerification: CustomStringConvertible {
    /// A sentence for a log: `Looked at 2 scopes: 5 blobs, 100 bytes, 1 missing.`
    public var description: String {
        let found = [
            counted(blobs, "blob"), counted(bytes, "byte"), parts > 0 ? counted(parts, "unfinished upload") : nil,
            missing > 0 ? "\(missing) missing" : nil, unnamed > 0 ? "\(unnamed) unnamed" : nil,
        ]
        return "Looked at \(counted(scopes, "scope")): \(found.compactMap(\.self).joined(separator: ", "))."
    }
}

extension SyncServer {
    private static let verifiedScopes = 256

    /// Compares the names of blobs in all live records with the blobs that there are. What is named counts as seen
    /// now; nothing is removed.
    ///
    /// - Parameter only: one scope, with its sub-scopes; `nil`: all.
    /// - Throws: errors of the store; ``CommitError`` with `not_found` where the store keeps no blobs.
    public nonisolated(nonsending) func verifyBlobs(in only: Scope? = nil) async throws -> BlobVerification {
        guard let blobs = store as? any BlobStore else {
            throw CommitError(code: ProblemCode.notFound.rawValue, detail: "The store keeps no blobs.")
        }
        var verification = BlobVerification()
        if let only {
            try await verify(only.parent, blobs, &verification)
            return verification
        }
        var done: Set<Scope> = []
        var last: Scope?
        while true {
            let scopes = try await store.scopes(after: last, limit: Self.verifiedScopes)
            for scope in scopes where done.insert(scope.parent).inserted {
                try await verify(scope.parent, blobs, &verification)
            }
            guard scopes.count == Self.verifiedScopes else { break }
            last = scopes.last
        }
        last = nil
        while true {
            let scopes = try await blobs.blobScopes(after: last, limit: Self.verifiedScopes)
            for scope in scopes where done.insert(scope.scope).inserted {
                try await verify(scope.scope, blobs, &verification)
            }
            guard scopes.count == Self.verifiedScopes else { return verification }
            last = scopes.last?.scope
        }
    }

    private func verify(_ scope: Scope, _ blobs: any BlobStore, _ verification: inout BlobVerification) async throws {
        try Task.checkCancellation()
        let now = configuration.moment()
        verification.scopes += 1
        var seen: [Scope: Version] = [:]
        verification.missing += try await noteNames(in: scope, blobs, at: now, &seen)
        let tally = try await blobs.blobTally(of: scope, by: nil)
        verification.blobs += tally.blobs
        verification.parts += tally.parts
        verification.bytes += tally.bytes
        var last: String?
        while true {
            let unnamed = try await blobs.blobs(in: scope, after: last, seenBefore: now, limit: Self.verifiedScopes)
            verification.unnamed += unnamed.count
            guard unnamed.count == Self.verifiedScopes else { return }
            last = unnamed.last?.hash
        }
    }
}
