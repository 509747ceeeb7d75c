import Tidemark
import TidemarkServer
import TidemarkWire

/// The bytes of attachments, as far as Tidemark's own client asks for them.
extension InProcessTransport {
    func blobAnswer(_ request: TransportRequest, cutAfter cut: Int?) async throws -> TransportResponse {
        do {
            let scope = try scope(request)
            let access = try await authorize(scope)
            let hash = String(request.path.split(separator: "/").last ?? "")
            switch request.method {
            case "HEAD": return found(try await server.findBlob(hash, in: scope, access: access), request)
            case "GET": return try await get(hash, scope, access, request)
            case "PUT": return try await put(hash, scope, access, request, cutAfter: cut)
            default: throw Problem(.notFound, "There is nothing at \(request.method) \(request.path).")
            }
        } catch let problem as Problem {
            return refused(problem, request)
        } catch let error as StoreUnavailable {
            return refused(Problem(.unavailable, error.description), request)
        }
    }

    private func refused(_ problem: Problem, _ request: TransportRequest) -> TransportResponse {
        let headers = problem.offset.map { [BlobAddress.offsetHeader: "\($0)"] } ?? [:]
        return answer(
            problem.code.status, headers, request.method == "HEAD" ? [] : problem.body(), Problem.contentType,
            to: request)
    }

    private func answer(
        _ status: Int, _ headers: [String: String], _ body: [UInt8] = [], _ type: String = "application/octet-stream",
        to request: TransportRequest
    ) -> TransportResponse {
        let answer = response(status, body, type, to: request)
        return TransportResponse(
            status: status, headers: answer.headers.merging(headers) { $1 }, body: body,
            bytesSent: answer.bytesSent, bytesReceived: answer.bytesReceived)
    }

    private func found(_ finding: SyncServer.BlobFinding, _ request: TransportRequest) -> TransportResponse {
        switch finding {
        case .whole(let blob):
            answer(200, ["ETag": "\"\(blob.hash)\"", "Content-Length": "\(blob.size)"], to: request)
        case .missing(let kept):
            answer(404, kept.map { [BlobAddress.offsetHeader: "\($0)"] } ?? [:], to: request)
        }
    }

    private func get(
        _ hash: String, _ scope: Scope, _ access: Access, _ request: TransportRequest
    ) async throws -> TransportResponse {
        let blob = try await server.blob(hash, in: scope, access: access)
        let tag = "\"\(hash)\""
        var (offset, end, status, headers) = (Int64(0), blob.size, 200, ["ETag": tag])
        if let ends = request.headers["Range"].flatMap(Self.numbers), ends.count == 2, ends[0] <= ends[1],
            request.headers["If-Range"] ?? tag == tag
        {
            guard ends[0] < blob.size else {
                return answer(416, ["Content-Range": "bytes */\(blob.size)"], to: request)
            }
            (offset, end, status) = (ends[0], min(ends[1] + 1, blob.size), 206)
            headers["Content-Range"] = "bytes \(offset)-\(end - 1)/\(blob.size)"
        }
        let transfer = try server.beginTransfer(of: access)
        defer { withExtendedLifetime(transfer) {} }
        var body: [UInt8] = []
        while offset < end {
            let piece = try await server.bytes(of: blob, in: scope, from: offset, limit: end - offset)
            body += piece
            offset += Int64(piece.count)
        }
        return answer(status, headers, body, to: request)
    }

    private func put(
        _ hash: String, _ scope: Scope, _ access: Access, _ request: TransportRequest, cutAfter cut: Int?
    ) async throws -> TransportResponse {
        let length = Int64(request.body.count)
        var upload = BlobUpload(hash: hash, scope: scope, start: nil, length: length, size: length)
        if let range = request.headers["Content-Range"] {
            guard let numbers = Self.numbers(range), numbers.count == 3, numbers[1] - numbers[0] + 1 == length else {
                throw Problem(.malformedRequest, "In `Content-Range`: `bytes FIRST-LAST/SIZE` was expected.")
            }
            (upload.start, upload.size) = (numbers[0], numbers[2])
        }
        let receipt = try await server.receive(upload, access: access, BlobBody(bytes: request.body, cut: cut))
        return switch receipt {
        case .created: answer(201, ["ETag": "\"\(hash)\""], to: request)
        case .present: answer(200, ["ETag": "\"\(hash)\""], to: request)
        case .part(let kept): answer(202, [BlobAddress.offsetHeader: "\(kept)"], to: request)
        }
    }

    private static func numbers(_ header: String) -> [Int64]? {
        guard header.hasPrefix("bytes") else { return nil }
        return header.split { !$0.isASCII || !$0.isNumber }.compactMap { Int64($0) }
    }
}

/// The bytes of an upload as they come.
private struct BlobBody: AsyncSequence {
    /// The connection ended before all bytes had come.
    struct Cut: Error {}

    var bytes: [UInt8]
    var cut: Int?

    func makeAsyncIterator() -> Iterator { Iterator(bytes: Array(bytes.prefix(cut ?? .max)), isCut: cut != nil) }

    struct Iterator: AsyncIteratorProtocol {
        var bytes: [UInt8]?
        let isCut: Bool

        mutating func next() async throws -> [UInt8]? {
            if let some = bytes, !some.isEmpty {
                bytes = nil
                return some
            }
            if isCut { throw Cut() }
            return nil
        }
    }
}
