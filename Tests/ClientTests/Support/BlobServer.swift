import Foundation
import Synchronization
import TidemarkCore
import TidemarkWire

@testable import Tidemark

/// A server's blobs in memory, as the contract has them (Protocol.md), in front of a transport for everything else. It
/// cuts, refuses and lies as a test wants it.
final class BlobServer: Transport {
    struct Cut: Error {}

    struct State {
        /// Whole blobs by scope and hash, and unfinished ones.
        var blobs: [String: [UInt8]] = [:]
        var parts: [String: [UInt8]] = [:]
        /// After so many bytes of bodies, a connection is cut, again and again.
        var cutsEvery: Int?
        var untilCut = 0
        /// Answers before the server does.
        var faults: [@Sendable (TransportRequest) throws -> TransportResponse?] = []
        /// Requests of this method wait for ``open(one:)``.
        var held: String?
        var waiting: [CheckedContinuation<Void, Never>] = []
        var log: [String] = []
        var bytesUp = 0
        var bytesDown = 0
        var atOnce = 0
        var mostAtOnce = 0
    }

    let state = Mutex(State())
    let inner: any Transport

    init(before inner: any Transport) { self.inner = inner }

    // MARK: What a test says and asks

    func cut(every bytes: Int?) { state.withLock { ($0.cutsEvery, $0.untilCut) = (bytes, bytes ?? 0) } }

    /// What happens to each request that it answers, from now on.
    func fault(_ fault: @escaping @Sendable (TransportRequest) throws -> TransportResponse?) {
        state.withLock { $0.faults.append(fault) }
    }

    func endFaults() { state.withLock { ($0.faults, $0.cutsEvery) = ([], nil) } }

    func hold(_ method: String) { state.withLock { $0.held = method } }

    /// Lets all go on that wait, or only the first of them.
    func open(one: Bool = false) {
        let waiting = state.withLock { state in
            if !one { state.held = nil }
            defer { state.waiting = one ? Array(state.waiting.dropFirst()) : [] }
            return one ? Array(state.waiting.prefix(1)) : state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Methods and hashes' first digits of the requests for blobs, in their order.
    var log: [String] { state.withLock(\.log) }

    /// Bytes of bodies that got through.
    var bytesUp: Int { state.withLock(\.bytesUp) }
    var bytesDown: Int { state.withLock(\.bytesDown) }
    /// Requests that wait for ``open(one:)``.
    var waiting: Int { state.withLock { $0.waiting.count } }
    var mostAtOnce: Int { state.withLock(\.mostAtOnce) }

    /// Unfinished uploads are gone.
    func dropParts() { state.withLock { $0.parts = [:] } }

    func count(_ method: String) -> Int { log.count { $0.hasPrefix(method + " ") } }

    func blob(_ reference: BlobReference, in scope: Scope = Device.scope) -> [UInt8]? {
        state.withLock { $0.blobs["\(scope) \(reference.hash)"] }
    }

    func put(_ bytes: [UInt8], as reference: BlobReference, in scope: Scope = Device.scope) {
        state.withLock { $0.blobs["\(scope) \(reference.hash)"] = bytes }
    }

    func lose(_ reference: BlobReference, in scope: Scope = Device.scope) {
        state.withLock { $0.blobs["\(scope) \(reference.hash)"] = nil }
    }

    // MARK: Transport

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        guard request.path.hasPrefix("/sync/blobs/") else { return try await inner.send(request) }
        let hash = String(request.path.dropFirst("/sync/blobs/".count))
        let mustWait = state.withLock { state in
            state.log.append("\(request.method) \(hash.prefix(6))")
            state.atOnce += 1
            state.mostAtOnce = max(state.mostAtOnce, state.atOnce)
            return state.held == request.method
        }
        defer { state.withLock { $0.atOnce -= 1 } }
        if mustWait {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLock { state in
                    if state.held == nil { return true }
                    state.waiting.append(continuation)
                    return false
                }
                if isOpen { continuation.resume() }
            }
        }
        try Task.checkCancellation()
        for fault in state.withLock(\.faults) { if let answer = try fault(request) { return answer } }
        let scope = request.query.first { $0.name == "scope" }?.value ?? ""
        return try state.withLock { try $0.answer(request, "\(scope) \(hash)", hash) }
    }
}

extension BlobServer.State {
    mutating func answer(_ request: TransportRequest, _ key: String, _ hash: String) throws -> TransportResponse {
        var response =
            switch request.method {
            case "HEAD": head(key, hash)
            case "PUT": try put(request, key, hash)
            default: try get(request, key, hash)
            }
        response = TransportResponse(
            status: response.status, headers: response.headers.merging([ProtocolVersion.header: "1"]) { $1 },
            body: response.body)
        return response
    }

    private func head(_ key: String, _ hash: String) -> TransportResponse {
        if let blob = blobs[key] {
            return TransportResponse(
                status: 200,
                headers: ["ETag": "\"\(hash)\"", "Content-Length": "\(blob.count)", "Accept-Ranges": "bytes"])
        }
        return TransportResponse(status: 404, headers: ["Upload-Offset": "\(parts[key]?.count ?? 0)"])
    }

    private mutating func put(_ request: TransportRequest, _ key: String, _ hash: String) throws -> TransportResponse {
        var total = request.body.count
        if let range = request.headers["Content-Range"] {
            let numbers = range.split(whereSeparator: { !$0.isNumber }).compactMap { Int($0) }
            guard numbers.count == 3 else { return problem(400, "malformed_request") }
            guard numbers[0] == parts[key]?.count ?? 0 else {
                return problem(
                    409, "upload_offset_mismatch", ["Upload-Offset": "\(parts[key]?.count ?? 0)"])
            }
            total = numbers[2]
        } else {
            parts[key] = nil
        }
        let arrived = pass(request.body.count)
        bytesUp += arrived
        parts[key, default: []] += request.body.prefix(arrived)
        if arrived < request.body.count { throw BlobServer.Cut() }
        guard let part = parts[key], part.count >= total else {
            return TransportResponse(status: 202, headers: ["Upload-Offset": "\(parts[key]?.count ?? 0)"])
        }
        parts[key] = nil
        let found = SHA256.digest(part).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        guard found == hash else { return problem(422, "hash_mismatch") }
        let isNew = blobs.updateValue(part, forKey: key) == nil
        return TransportResponse(status: isNew ? 201 : 200, headers: ["ETag": "\"\(hash)\""])
    }

    private mutating func get(_ request: TransportRequest, _ key: String, _ hash: String) throws -> TransportResponse {
        guard let blob = blobs[key] else { return problem(404, "not_found") }
        var (bytes, headers, status) = (blob, ["ETag": "\"\(hash)\""], 200)
        let numbers = request.headers["Range"]?.split(whereSeparator: { !$0.isNumber }).compactMap { Int($0) } ?? []
        if numbers.count == 2, request.headers["If-Range"] ?? "\"\(hash)\"" == "\"\(hash)\"" {
            guard numbers[0] < blob.count else { return problem(416, "x", ["Content-Range": "bytes */\(blob.count)"]) }
            let last = min(numbers[1], blob.count - 1)
            bytes = Array(blob[numbers[0]...last])
            headers["Content-Range"] = "bytes \(numbers[0])-\(last)/\(blob.count)"
            status = 206
        }
        let sent = pass(bytes.count)
        bytesDown += sent
        if sent < bytes.count { throw BlobServer.Cut() }
        return TransportResponse(status: status, headers: headers, body: bytes)
    }

    /// How many bytes get through before the connection is cut.
    private mutating func pass(_ count: Int) -> Int {
        guard let cutsEvery else { return count }
        guard count > untilCut else {
            untilCut -= count
            return count
        }
        defer { untilCut = cutsEvery }
        return untilCut
    }

    private func problem(_ status: Int, _ code: String, _ headers: [String: String] = [:]) -> TransportResponse {
        BlobServer.problem(status, code, headers)
    }
}

extension BlobServer {
    static func problem(_ status: Int, _ code: String, _ headers: [String: String] = [:]) -> TransportResponse {
        let body = #"{"type":"about:blank","title":"t","status":\#(status),"code":"\#(code)","detail":"d"}"#
        return TransportResponse(
            status: status,
            headers: headers.merging(["Content-Type": Problem.contentType, ProtocolVersion.header: "1"]) { $1 },
            body: Array(body.utf8))
    }
}
