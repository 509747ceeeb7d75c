import TidemarkWire

/// The blobs of an erased scope, and the parts of an erased caller (A12).
extension SyncServer {
    /// Blobs and parts that are asked for at once.
    private static let erasedBlobs = 256

    func countBlobs(of scope: Scope) async throws -> Erasure {
        var kept = Erasure()
        guard scope.subscope == nil, let blobs = store as? any BlobStore else { return kept }
        let tally = try await blobs.blobTally(of: scope, by: nil)
        (kept.blobs, kept.parts) = (tally.blobs, tally.parts)
        return kept
    }

    /// Runs behind the mark, from which on nothing new comes.
    func eraseBlobs(of scope: Scope) async throws -> Erasure {
        var gone = Erasure()
        guard scope.subscope == nil, let blobs = store as? any BlobStore else { return gone }
        while true {
            try Task.checkCancellation()
            let parts = try await blobs.parts(in: scope, of: nil, writtenBefore: .max, limit: Self.erasedBlobs)
            for part in parts { try await blobs.drop(part) }
            let whole = try await blobs.blobs(in: scope, after: nil, seenBefore: .max, limit: Self.erasedBlobs)
            for blob in whole { _ = try await blobs.remove(blob, in: scope, seenBefore: .max) }
            gone.parts += parts.count
            gone.blobs += whole.count
            guard parts.isEmpty, whole.isEmpty else { continue }
            try await blobs.tidyBlobs(of: scope)
            try await blobs.noteScan(of: scope, at: configuration.moment())
            return gone
        }
    }

    func eraseParts(of principal: String, isRehearsal: Bool) async throws -> Erasure {
        var gone = Erasure()
        guard let blobs = store as? any BlobStore else { return gone }
        if isRehearsal {
            gone.parts = try await blobs.parts(in: nil, of: principal, writtenBefore: .max, limit: .max).count
            return gone
        }
        while true {
            try Task.checkCancellation()
            let parts = try await blobs.parts(in: nil, of: principal, writtenBefore: .max, limit: Self.erasedBlobs)
            for part in parts { try await blobs.drop(part) }
            gone.parts += parts.count
            if parts.isEmpty { return gone }
        }
    }
}
