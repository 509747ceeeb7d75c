import TidemarkCore
package import TidemarkWire

/// An upload as its request announces it.
package struct BlobUpload: Hashable, Sendable {
    /// The SHA-256 of the whole, in 64 digits.
    package var hash: String
    package var scope: Scope
    /// Where it goes on; `nil`: from the beginning, in the place of whatever is kept.
    package var start: Int64?
    /// Bytes of the body.
    package var length: Int64
    /// Bytes of the whole.
    package var size: Int64

    package init(hash: String, scope: Scope, start: Int64?, length: Int64, size: Int64) {
        (self.hash, self.scope, self.start) = (hash, scope, start)
        (self.length, self.size) = (length, size)
    }
}

/// What became of an upload.
package enum BlobReceipt: Hashable, Sendable {
    /// The scope has the blob, and had none.
    case created
    /// The scope has had the blob already.
    case present
    /// The rest is waited for.
    case part(kept: Int64)
}

extension SyncServer {
    /// Pieces of a part after which an upload that goes on is made durable and noted.
    private static let settledPieces: Int64 = 16

    /// Takes the body of an upload in, a piece at a time. What has come of one that is cut stays.
    ///
    /// - Throws: the protocol's problems; what the store throws.
    package func receive<Body: AsyncSequence>(
        _ upload: BlobUpload, access: Access, _ body: Body
    ) async throws -> BlobReceipt where Body.Element == [UInt8] {
        let (scope, isWritten) = try await admit(upload.hash, upload.scope, access, to: .readWrite)
        try check(upload)
        let transfer = try beginTransfer(of: access)
        defer { withExtendedLifetime(transfer) {} }
        let name = BlobPartName(scope: scope, principal: access.principal, hash: upload.hash)
        if try await used(upload.hash, in: scope) != nil {
            try await pass(body, upto: upload.length)
            return .present
        }
        do {
            let part = try await take(body, of: upload, into: try await opened(name, upload, access, isWritten))
            guard part.isComplete else { return .part(kept: part.kept) }
            return try await complete(part) ? .created : .present
        } catch let refusal as BlobRefusal { throw try await problem(of: refusal, name) }
    }

    private func check(_ upload: BlobUpload) throws(Problem) {
        guard upload.size <= limits.blobBytes else {
            throw Problem(.requestTooLarge, "The blob has \(upload.size) bytes where \(limits.blobBytes) are taken.")
        }
    }

    /// The part that the body goes on with.
    ///
    /// - Parameter isWritten: whether the scope has records.
    private func opened(
        _ name: BlobPartName, _ upload: BlobUpload, _ access: Access, _ isWritten: Bool
    ) async throws -> BlobPart {
        let blobs = try blobStore()
        if let start = upload.start {
            let part = try await livePart(name)
            guard part?.kept ?? 0 == start else { throw try await offsetMismatch(name) }
            if let part {
                guard part.size == upload.size else {
                    throw Problem(.malformedRequest, "In `Content-Range`: the blob had \(part.size) bytes before.")
                }
                return part
            }
        }
        let room = BlobRoom(
            scope: Int64(limits.scopeBlobBytes), caller: Int64(limits.scopeBlobBytes / 4), parts: limits.blobParts)
        let isNew = isWritten ? false : try await blobs.blobTally(of: name.scope, by: nil) == BlobTally()
        guard !isNew || mayOpenScope(access.principal) else {
            throw Problem(
                .quotaExceeded, "One user may begin \(limits.scopesPerPrincipal) scopes within a day here.")
        }
        let part = try await blobs.begin(name, size: upload.size, within: room, at: configuration.now())
        if isNew { openedScope(access.principal) }
        return part
    }

    private func take<Body: AsyncSequence>(
        _ body: Body, of upload: BlobUpload, into part: BlobPart
    ) async throws -> BlobPart where Body.Element == [UInt8] {
        var (part, piece, received) = (part, [UInt8](), Int64(0))
        var iterator = body.makeAsyncIterator()
        do {
            while let bytes = try await Self.next(&iterator) {
                received += Int64(bytes.count)
                guard received <= upload.length else { throw Self.longer }
                var rest = bytes[...]
                while !rest.isEmpty {
                    let whole = min(part.room, configuration.blobPieceBytes)
                    let some = rest.prefix(whole - piece.count)
                    piece += some
                    rest = rest.dropFirst(some.count)
                    let isLast = received == upload.length && rest.isEmpty
                    guard isLast || piece.count == whole else { continue }
                    // What fails is not tried again with the remainder.
                    let full = piece
                    piece = []
                    // Finishing a part makes it durable.
                    let isWhole = part.kept + Int64(full.count) == part.size
                    part = try await keep(
                        full, in: part, isLast: isLast && !isWhole || settles(part, at: configuration.now()))
                }
            }
            guard received == upload.length else { throw Self.cut }
            return part
        } catch {
            // The network may cut each body before it has brought a whole piece.
            if !piece.isEmpty { _ = try? await keep(piece, in: part, isLast: true) }
            throw error
        }
    }

    /// Appends bytes in a task of its own: a caller who goes, and with him his request's task, takes none of those
    /// away that he has sent.
    private func keep(_ bytes: [UInt8], in part: BlobPart, isLast: Bool) async throws -> BlobPart {
        let (blobs, now) = (try blobStore(), configuration.now())
        return try await outliving { try await blobs.append(bytes, to: part, isLast: isLast, at: now) }
    }

    /// Whether the next piece of a part is made durable and noted. The pieces of all its requests count, and so does
    /// the time: else one that is cut again and again would never be noted, and would go although bytes come.
    private func settles(_ part: BlobPart, at now: Int64) -> Bool {
        (part.kept / Int64(configuration.blobPieceBytes) + 1) % Self.settledPieces == 0
            || now - part.written > Self.seenStep
    }

    /// Reads a body that nobody needs.
    private func pass<Body: AsyncSequence>(
        _ body: Body, upto length: Int64
    ) async throws where Body.Element == [UInt8] {
        var (iterator, received) = (body.makeAsyncIterator(), Int64(0))
        while let bytes = try await Self.next(&iterator) {
            received += Int64(bytes.count)
            guard received <= length else { throw Self.longer }
        }
    }

    private static func next<Iterator: AsyncIteratorProtocol>(
        _ iterator: inout Iterator
    ) async throws -> Iterator.Element? {
        do { return try await iterator.next() } catch let error where error is CancellationError || error is Problem {
            throw error
        } catch { throw cut }
    }

    private static var cut: Problem {
        Problem(.malformedRequest, "The body is not framed as HTTP has it, or was cut on the way.")
    }

    private static var longer: Problem { Problem(.malformedRequest, "The body has more bytes than were announced.") }

    private func problem(of refusal: BlobRefusal, _ name: BlobPartName) async throws -> Problem {
        switch refusal {
        case .moved: try await offsetMismatch(name)
        case .scopeFull:
            Problem(.quotaExceeded, "The scope may have \(limits.scopeBlobBytes) bytes of blobs.")
        case .callerFull:
            Problem(
                .quotaExceeded,
                "One user may be sending \(limits.blobParts) blobs to a scope, and a quarter of its bytes.")
        case .erased:
            Problem(.scopeErased, "Scope \(name.scope) was erased by the operator, with all that it held.")
        }
    }
}
