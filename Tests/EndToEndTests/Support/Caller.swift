#if Server
    import AsyncHTTPClient
    import Foundation
    import NIOCore
    import NIOHTTP1
    import TidemarkGzip
    import TidemarkWire

    /// One HTTP answer, as it came.
    struct Answer: Sendable {
        let status: Int
        let headers: HTTPHeaders
        let bytes: [UInt8]

        var text: String { String(decoding: bytes, as: UTF8.self) }
        var problem: Problem? { bytes.withUnsafeBytes { Problem(from: $0) } }
        var code: ProblemCode? { problem?.code }

        func member(_ name: String) -> Any? {
            let object = try? JSONSerialization.jsonObject(with: Data(bytes))
            return (object as? [String: Any])?[name]
        }

        var results: [[String: Any]] { member("results") as? [[String: Any]] ?? [] }
        var changes: [[String: Any]] { member("changes") as? [[String: Any]] ?? [] }
        var nextSince: String { member("nextSince") as? String ?? "" }
    }

    /// Speaks to a server as any HTTP client would.
    struct Caller: Sendable {
        /// One that leaves bodies as they came, so that tests see what was on the wire.
        private static let client = HTTPClient(
            eventLoopGroupProvider: .singleton,
            // A busy machine may take long until one of its connections is free.
            configuration: HTTPClient.Configuration(
                timeout: .init(connect: .seconds(60)), decompression: .disabled))

        let url: String
        var token: String?
        var headers: [(String, String)] = []
        var timeout = TimeAmount.seconds(20)

        func get(_ path: String, _ query: String = "", headers: [(String, String)] = []) async throws -> Answer {
            try await send(.GET, query.isEmpty ? path : path + "?" + query, nil, headers)
        }

        func post(
            _ path: String, _ body: String, headers: [(String, String)] = [("Content-Type", "application/json")]
        ) async throws -> Answer {
            try await send(.POST, path, Array(body.utf8), headers)
        }

        func send(
            _ method: HTTPMethod, _ path: String, _ body: [UInt8]?, _ headers: [(String, String)]
        ) async throws -> Answer {
            var request = HTTPClientRequest(url: url + path)
            request.method = method
            if let token { request.headers.add(name: "Authorization", value: "Bearer \(token)") }
            for (name, value) in self.headers + headers { request.headers.add(name: name, value: value) }
            if let body { request.body = .bytes(ByteBuffer(bytes: body)) }
            let response = try await Self.client.execute(request, timeout: timeout)
            let bytes = try await response.body.collect(upTo: 64 << 20)
            return Answer(
                status: Int(response.status.code), headers: response.headers, bytes: Array(bytes.readableBytesView))
        }

        /// Pushes operations of one lane, numbered from `first` on.
        func push(
            _ operations: [String], scope: String = "w", lane: String = "lane-0001", from first: Int = 1,
            path: String = "/sync", members: String = ""
        ) async throws -> Answer {
            let numbered = operations.enumerated().map { index, operation in
                #"{"lane":"\#(lane)","number":\#(first + index),\#(operation)}"#
            }
            let body = #"{"scope":"\#(scope)","clientId":"device-01"\#(members),"operations":["#
            return try await post(path, body + numbered.joined(separator: ",") + "]}")
        }

        /// Everything that a scope holds, from the beginning.
        func pullAll(scope: String = "w", limit: Int = 1000) async throws -> [[String: Any]] {
            var changes: [[String: Any]] = []
            var since = ""
            while true {
                let answer = try await get("/sync/changes", "scope=\(scope)&limit=\(limit)\(since)")
                guard answer.status == 200 else { throw URLError(.badServerResponse) }
                changes += answer.changes
                since = "&since=\(answer.nextSince)"
                if answer.member("hasMore") as? Bool != true { return changes }
            }
        }
    }

    func upsert(_ id: String, _ fields: String, entity: String = "task", base: Int? = nil) -> String {
        let base = base.map { #","baseVersion":\#($0)"# } ?? ""
        return #""type":"upsert","entity":"\#(entity)","id":"\#(id)"\#(base),"fields":{\#(fields)}"#
    }
#endif
