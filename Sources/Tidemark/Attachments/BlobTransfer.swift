import Foundation
import TidemarkCore
import TidemarkWire

/// One file on its way in one scope: the requests, and what their answers mean. It knows of no table.
struct BlobTransfer: Sendable {
    enum Outcome: Hashable, Sendable {
        /// The server has the bytes, or they lie verified beside their place.
        case done
        /// Something more urgent has come: it goes on later where it is.
        case yielded
        /// The server does not have the bytes.
        case awaited
        /// It makes no sense to try again.
        case failed(AttachmentFailure)
    }

    let transport: ReleasableTransport
    let folder: BlobFolder
    let reference: BlobReference
    let scope: Scope
    let clientID: String
    /// How often it has failed. Each time halves the parts: a network that cuts every so many bytes lets those through.
    let attempts: Int64
    /// Whether the server had them before it lost some of its history, and may have them still.
    let isDoubted: Bool
    /// Hears how many bytes are across; `false` where something more urgent has come.
    let progress: @Sendable (Int64) async -> Bool

    /// The bytes of one request.
    private var partBytes: Int64 {
        let usual = Int64(max(1, folder.configuration.partBytes))
        return max(usual >> min(attempts, 5), min(usual, Self.leastPart))
    }

    private static let leastPart: Int64 = 32 << 10

    /// How often in a row a server may take another offset for the right one.
    private static let disagreementLimit = 3

    // MARK: Up

    /// Uploads what the server does not have yet.
    ///
    /// - Throws: `Failure` and what the transport throws; ``SyncError`` `folder_failed`.
    func upload() async throws -> Outcome {
        guard let file = try folder.reader(of: reference) else { return .failed(.fileMissing) }
        guard var offset = try await isAskedFirst ? keptBytes() : 0 else { return .done }
        if offset >= reference.size, reference.size > 0 {
            // The server holds a part of the full size that it never took as the blob. It drops that part at a request
            // without a range and with other bytes.
            _ = try await send("PUT", body: [])
            offset = 0
        }
        var disagreements = 0
        while true {
            guard await progress(offset) else { return .yielded }
            let count = min(partBytes, reference.size - offset)
            let part = try file.read(at: offset, count: Int(count))
            guard part.count == count else { return .failed(.fileDamaged) }
            let range = count == 0 ? nil : "bytes \(offset)-\(offset + count - 1)/\(reference.size)"
            let answer = try await send("PUT", ["Content-Range": range], body: part)
            switch answer.status {
            case 200, 201:
                guard answer.header("ETag") == tag else { throw unusable }
                return .done
            case 202: offset = try kept(by: answer, above: offset)
            case 409:
                disagreements += 1
                guard disagreements < Self.disagreementLimit else { throw unusable }
                guard let kept = try await keptBytes() else { return .done }
                offset = kept < reference.size ? kept : 0
            case 422:
                guard try await folder.isWhole(folder.url(of: reference), reference) else {
                    return .failed(.fileDamaged)
                }
                throw failure(answer)
            default: return try refused(answer)
            }
        }
    }

    /// Where a part goes on that the server has taken bytes of.
    private func kept(by answer: TransportResponse, above offset: Int64) throws -> Int64 {
        guard let kept = answer.header("Upload-Offset").flatMap({ Int64($0) }), kept > offset, kept < reference.size
        else { throw unusable }
        return kept
    }

    /// Whether the server is asked what it has. A small file that it cannot have is sent without a question, which
    /// would take as long.
    private var isAskedFirst: Bool { attempts > 0 || isDoubted || reference.size > min(Self.leastPart, partBytes) }

    /// How many bytes the server has of a part; `nil` where it has the whole.
    private func keptBytes() async throws -> Int64? {
        let answer = try await send("HEAD")
        switch answer.status {
        case 200:
            // A proxy that answers in the server's place does not know the tag.
            guard answer.header("ETag") == tag else { throw unusable }
            return nil
        case 404:
            guard let kept = answer.header("Upload-Offset").flatMap({ Int64($0) }), 0...reference.size ~= kept else {
                // A caller who may not write is told no offset; the server's own header says that it was the server.
                guard answer.header(ProtocolVersion.header) != nil else { throw unusable }
                throw Failure(
                    SyncError(.scopeForbidden, "The token does not grant uploads.", scope: scope), scope: scope)
            }
            return kept
        default: throw failure(answer)
        }
    }

    private func refused(_ answer: TransportResponse) throws -> Outcome {
        let failure = failure(answer)
        guard answer.status == 413, failure.problem?.code == .requestTooLarge else { throw failure }
        return .failed(.tooLarge)
    }

    // MARK: Down

    /// Downloads to the partial file, and verifies it.
    ///
    /// - Throws: as ``upload()`` does; `WrongBytes` where they are not what the reference says.
    func download() async throws -> Outcome {
        try folder.prepare()
        let partial = folder.partial(of: reference)
        var offset = folder.size(of: partial) ?? 0
        if offset > reference.size || folder.size(of: partial) == nil {
            try folder.failing {
                try Dependencies.current.use(partial, for: .fileWrite) { try Data().write(to: partial) }
            }
            offset = 0
        }
        var hasAsked = false
        while offset < reference.size {
            guard await progress(offset) else { return .yielded }
            let last = min(offset + partBytes, reference.size) - 1
            let answer = try await send("GET", ["Range": "bytes=\(offset)-\(last)", "If-Range": tag])
            hasAsked = true
            switch answer.status {
            case 206: try check(answer, offset...last)
            case 200:
                guard answer.header("ETag") == tag, answer.body.count == reference.size else { throw unusable }
                offset = 0
            case 404:
                guard isOurs(answer) else { throw unusable }
                return .awaited
            case 416: throw try wrong(partial)
            default: throw failure(answer)
            }
            try append(answer.body, to: partial, at: offset)
            offset += Int64(answer.body.count)
        }
        // All bytes may have come from another scope, before a process ended: that says nothing of this one.
        if !hasAsked, try await !isStored() { return .awaited }
        guard try await folder.isWhole(partial, reference) else { throw try wrong(partial) }
        return .done
    }

    /// The server's bytes are not those of the reference.
    struct WrongBytes: Error {}

    private func wrong(_ partial: URL) throws -> WrongBytes {
        try folder.failing {
            try Dependencies.current.use(partial, for: .fileRemove) { try FileManager.default.removeItem(at: partial) }
        }
        return WrongBytes()
    }

    private func check(_ answer: TransportResponse, _ range: ClosedRange<Int64>) throws {
        let told = "bytes \(range.lowerBound)-\(range.upperBound)/\(reference.size)"
        guard answer.header("Content-Range") == told, answer.body.count == range.count,
            answer.header("ETag") ?? tag == tag
        else {
            // A blob of that hash that is of another size is another reference's.
            throw answer.header("Content-Range")?.hasSuffix("/\(reference.size)") == true
                ? unusable : try wrong(folder.partial(of: reference))
        }
    }

    private func isStored() async throws -> Bool {
        let answer = try await send("HEAD")
        guard answer.status == 200 || answer.status == 404 else { throw failure(answer) }
        return answer.status == 200
    }

    private func append(_ bytes: [UInt8], to partial: URL, at offset: Int64) throws {
        try folder.failing {
            let (file, world) = (try FileHandle(forWritingTo: partial), Dependencies.current)
            defer { try? file.close() }
            try file.seek(toOffset: UInt64(offset))
            try world.use(partial, for: .fileWrite) { try file.write(contentsOf: bytes) }
            if offset + Int64(bytes.count) >= reference.size {
                try file.truncate(atOffset: UInt64(reference.size))
                if world.fsyncsFiles { try file.synchronize() }
            }
        }
    }

    // MARK: Requests

    private var tag: String { "\"\(reference.hash)\"" }

    private func send(
        _ method: String, _ headers: [String: String?] = [:], body: [UInt8] = []
    ) async throws -> TransportResponse {
        var request = TransportRequest(
            method: method, path: "/sync/blobs/\(reference.hash)", query: [.init("scope", scope.name)],
            headers: TransportRequest.headers(clientID: clientID).merging(headers.compactMapValues { $0 }) { $1 },
            body: body)
        request.carriesBytes = true
        if method == "PUT" { request.headers["Content-Type"] = "application/octet-stream" }
        return try await transport.send(request)
    }

    /// Whether the server itself says so, and no proxy before it.
    private func isOurs(_ answer: TransportResponse) -> Bool {
        answer.header(ProtocolVersion.header) != nil || Failure(answer, scope: scope).problem != nil
    }

    /// The answer to HEAD has no body that would say why.
    private func failure(_ answer: TransportResponse) -> Failure {
        var failure = Failure(answer, scope: scope)
        guard failure.problem == nil, answer.header(ProtocolVersion.header) != nil else { return failure }
        failure.kind = FailureClass(status: answer.status)
        if answer.status == 403 {
            failure.kind = .forbidden
            failure.error = SyncError(.scopeForbidden, "The token does not grant this scope.", scope: scope)
        }
        return failure
    }

    private var unusable: Failure {
        Failure(
            SyncError(
                .answerUnusable, "The answer is not what this server sends.", hint: "It is asked for again.",
                scope: scope), scope: scope)
    }
}
