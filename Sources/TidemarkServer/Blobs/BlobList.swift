import TidemarkWire

/// Some of a scope's blobs.
public struct BlobPage: Hashable, Sendable {
    /// The blobs, by hash.
    public var blobs: [StoredBlob]
    /// All blobs of the scope, and what is being sent to it.
    public var total: BlobTally
    /// The hash behind which the next page begins; `nil` where this was the last.
    public var next: String?

    /// Makes a page from its parts.
    public init(blobs: [StoredBlob], total: BlobTally, next: String?) {
        (self.blobs, self.total, self.next) = (blobs, total, next)
    }
}

extension BlobPage: CustomStringConvertible {
    /// A sentence for a log: `2 of 40 blobs, 300 bytes in all, and more behind them.`
    public var description: String {
        "\(blobs.count) of \(counted(total.blobs, "blob")), \(counted(total.bytes, "byte")) in all"
            + (next == nil ? "." : ", and more behind them.")
    }
}

extension SyncServer {
    /// Blobs of one page, at most.
    private static let pageLimit = 10_000

    /// Lists blobs of a scope by their hashes, as the store has noted them: nothing is read of their bytes.
    ///
    /// - Parameters:
    ///   - scope: a sub-scope's name stands for its scope.
    ///   - hash: where the page before ended; `nil`: from the beginning.
    ///   - limit: at most so many, 1 to 10,000.
    /// - Throws: errors of the store; ``CommitError`` with `not_found` where the store keeps no blobs.
    public nonisolated(nonsending) func listBlobs(
        in scope: Scope, after hash: String? = nil, limit: Int = 100
    ) async throws -> BlobPage {
        guard let blobs = store as? any BlobStore else {
            throw CommitError(code: ProblemCode.notFound.rawValue, detail: "The store keeps no blobs.")
        }
        let limit = min(max(limit, 1), Self.pageLimit)
        let some = try await blobs.blobs(in: scope.parent, after: hash, seenBefore: .max, limit: limit + 1)
        let total = try await blobs.blobTally(of: scope.parent, by: nil)
        let shown = Array(some.prefix(limit))
        return BlobPage(blobs: shown, total: total, next: some.count > limit ? shown.last?.hash : nil)
    }
}
