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
    private static let durablePieces: Int64 = 16

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
            if upload.length == upload.size, upload.size <= configuration.blobPieceBytes, upload.start ?? 0 == 0 {
                return try await takeWhole(body, of: upload, name, access, isWritten) ? .created : .present
            }
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
        if let part = try await keptPart(name, upload) { return part }
        return try await opening(name.scope, access, isWritten) { blobs, room in
            try await blobs.begin(name, size: upload.size, within: room, at: configuration.moment())
        }
    }

    /// The part that the upload says it goes on with.
    private func keptPart(_ name: BlobPartName, _ upload: BlobUpload) async throws -> BlobPart? {
        guard let start = upload.start else { return nil }
        let part = try await livePart(name)
        guard part?.kept ?? 0 == start else { throw try await offsetMismatch(name) }
        guard part?.size ?? upload.size == upload.size else {
            throw Problem(.malformedRequest, "In `Content-Range`: the blob had \(part?.size ?? 0) bytes before.")
        }
        return part
    }

    /// Takes something new in, where the caller may begin the scope with it.
    private func opening<Result>(
        _ scope: Scope, _ access: Access, _ isWritten: Bool,
        _ body: (any BlobStore, BlobRoom) async throws -> Result
    ) async throws -> Result {
        let blobs = try blobStore()
        let isNew = isWritten ? false : try await blobs.blobTally(of: scope, by: nil) == BlobTally()
        guard !isNew || mayOpenScope(access.principal) else {
            throw Problem(
                .quotaExceeded, "One user may begin \(limits.scopesPerPrincipal) scopes within a day here.")
        }
        let room = BlobRoom(
            scope: Int64(limits.scopeBlobBytes), caller: Int64(limits.scopeBlobBytes / 4), parts: limits.blobParts)
        let result = try await body(blobs, room)
        if isNew { openedScope(access.principal) }
        return result
    }

    /// Takes a blob of one piece in, in one change of the store. What has come of a cut body becomes a part, as always.
    /// A caller who goes, and with him his request's task, takes none of the bytes away that he has sent.
    ///
    /// Answers whether the scope had none.
    private func takeWhole<Body: AsyncSequence>(
        _ body: Body, of upload: BlobUpload, _ name: BlobPartName, _ access: Access, _ isWritten: Bool
    ) async throws -> Bool where Body.Element == [UInt8] {
        let former = try await upload.start == nil ? livePart(name) : keptPart(name, upload)
        var bytes: [UInt8] = []
        do {
            try await read(body, upto: upload.length) { bytes += $0 }
            guard bytes.count == upload.length else { throw Self.cut }
        } catch {
            let some = bytes
            try? await outliving { [self] in try await keepCut(some, of: upload, name, access, isWritten, former) }
            throw error
        }
        let whole = bytes
        return try await outliving { [self] in
            guard try await hash(of: upload.size, reading: { _ in whole }) == upload.hash else {
                // As where it was put together of parts: all that was kept of it goes.
                if let former { try await blobStore().drop(former) }
                throw Self.mismatch(upload.size)
            }
            return try await opening(name.scope, access, isWritten) { blobs, room in
                try await blobs.keep(whole, as: name, within: room, at: configuration.moment())
            }
        }
    }

    /// Makes a part of what has come of a blob of one piece, unless another request has done more meanwhile.
    private func keepCut(
        _ bytes: [UInt8], of upload: BlobUpload, _ name: BlobPartName, _ access: Access, _ isWritten: Bool,
        _ former: BlobPart?
    ) async throws {
        let blobs = try blobStore()
        guard !bytes.isEmpty, try await blobs.blob(name.hash, in: name.scope) == nil,
            try await livePart(name) == former
        else { return }
        _ = try await keep(bytes, in: try await opened(name, upload, access, isWritten), isLast: true)
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
                    // A piece that fails is not tried again with the remainder.
                    let full = piece
                    piece = []
                    // Finishing a part makes it durable.
                    let isWhole = part.kept + Int64(full.count) == part.size
                    part = try await keep(
                        full, in: part, isLast: isLast && !isWhole || makesDurable(part, at: configuration.moment()))
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
        let (blobs, now) = (try blobStore(), configuration.moment())
        return try await outliving { try await blobs.append(bytes, to: part, isLast: isLast, at: now) }
    }

    /// Whether the next piece of a part is made durable and noted. The pieces of all its requests count, and so does
    /// the time: else one that is cut again and again would never be noted, and would go although bytes come.
    private func makesDurable(_ part: BlobPart, at now: Int64) -> Bool {
        (part.kept / Int64(configuration.blobPieceBytes) + 1) % Self.durablePieces == 0
            || now.saturatingSubtracting(part.written) > Self.seenStep
    }

    /// Reads a body that nobody needs.
    private func pass<Body: AsyncSequence>(
        _ body: Body, upto length: Int64
    ) async throws where Body.Element == [UInt8] {
        try await read(body, upto: length) { _ in }
    }

    private func read<Body: AsyncSequence>(
        _ body: Body, upto length: Int64, _ take: ([UInt8]) -> Void
    ) async throws where Body.Element == [UInt8] {
        var (iterator, received) = (body.makeAsyncIterator(), Int64(0))
        while let bytes = try await Self.next(&iterator) {
            received += Int64(bytes.count)
            guard received <= length else { throw Self.longer }
            take(bytes)
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

    static func mismatch(_ size: Int64) -> Problem {
        Problem(.hashMismatch, "The \(size) bytes have another SHA-256.")
    }

    private static var longer: Problem { Problem(.malformedRequest, "The body has more bytes than were announced.") }

    private func problem(of refusal: BlobRefusal, _ name: BlobPartName) async throws -> Problem {
        if refusal == .scopeFull {
            return Problem(.quotaExceeded, "The scope may have \(limits.scopeBlobBytes) bytes of blobs.")
        }
        if refusal == .callerFull {
            return Problem(
                .quotaExceeded,
                "One user may be sending \(limits.blobParts) blobs to a scope, and a quarter of its bytes.")
        }
        if refusal == .erased {
            return Problem(.scopeErased, "Scope \(name.scope) was erased by the operator, with all that it held.")
        }
        return try await offsetMismatch(name)
    }
}

extension SyncServer {
    /// Does a work in a task of its own: a caller who goes, and with him his request's task, takes nothing of it away.
    func outliving<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            configuration.begin {
                do { continuation.resume(returning: try await work()) } catch { continuation.resume(throwing: error) }
            }
        }
    }
}
