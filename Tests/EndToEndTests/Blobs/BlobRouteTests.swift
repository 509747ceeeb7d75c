#if Server
    import Foundation
    import NIOHTTP1
    import Testing
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire

    /// Blobs over HTTP, as any client would send and fetch them (A12).
    @Suite("Blobs", .timeLimit(.minutes(5)))
    struct BlobRouteTests {
        private let small = TestBlob(count: 1000)

        private func run(
            _ kind: LiveStore, limits: Limits = Limits(),
            _ body: @Sendable (DialectServer, Caller) async throws -> Void
        ) async throws {
            try await DialectServer.run(
                kind, entities: [.state("task", attachments: ["photo"]), .state("clip", subscope: "media")],
                limits: limits
            ) { server in
                try await body(server, try await server.caller().caller)
            }
        }

        @Test("A blob is sent once, found, and fetched with a tag that never changes", arguments: LiveStore.allCases)
        func whole(kind: LiveStore) async throws {
            let blob = TestBlob.large
            try await run(kind) { _, caller in
                let missing = try await caller.head(blob)
                #expect(missing.status == 404 && missing.offset == "0")
                #expect(try await caller.fetch(blob).code == .notFound)
                let sent = try await caller.put(blob)
                #expect(sent.status == 201 && sent.header("ETag") == "\"\(blob.hash)\"")
                #expect(try await caller.put(blob).status == 200)
                let head = try await caller.head(blob)
                #expect(head.status == 200 && head.bytes.isEmpty && head.offset == nil)
                #expect(head.header("Content-Length") == "\(blob.bytes.count)")
                let fetched = try await caller.fetch(blob, in: "w", ("Accept-Encoding", "gzip, br"))
                #expect(fetched.status == 200 && fetched.bytes == blob.bytes)
                for answer in [head, fetched] {
                    #expect(answer.header("ETag") == "\"\(blob.hash)\"")
                    #expect(answer.header("Accept-Ranges") == "bytes")
                    #expect(answer.header("Content-Type") == "application/octet-stream")
                    #expect(answer.header("Cache-Control") == "private, max-age=31536000, immutable")
                    #expect(answer.header("X-Content-Type-Options") == "nosniff")
                    #expect(answer.header("Content-Encoding") == nil)
                }
                let known = try await caller.fetch(blob, in: "w", ("If-None-Match", "\"x\", \"\(blob.hash)\""))
                #expect(known.status == 304 && known.bytes.isEmpty && known.header("ETag") == "\"\(blob.hash)\"")
            }
        }

        @Test("No bytes at all are a blob", arguments: LiveStore.allCases)
        func empty(kind: LiveStore) async throws {
            try await run(kind) { _, caller in
                let blob = TestBlob([])
                let sent = try await caller.put(blob)
                #expect(sent.status == 201)
                #expect(try await caller.head(blob).header("Content-Length") == "0")
                #expect(try await caller.fetch(blob).bytes.isEmpty)
                #expect(try await caller.fetch(blob, in: "w", ("Range", "bytes=0-")).status == 416)
            }
        }

        @Test("One range is sent, several or malformed ones are passed over", arguments: LiveStore.allCases)
        func ranges(kind: LiveStore) async throws {
            let blob = TestBlob.large
            let size = blob.bytes.count
            try await run(kind) { _, caller in
                #expect(try await caller.put(blob).status == 201)
                let parts: [(String, Range<Int>)] = [
                    ("bytes=0-0", 0..<1), ("Bytes=10-19", 10..<20), ("bytes=\(size - 1)-", size - 1..<size),
                    ("bytes=-5", size - 5..<size), ("bytes=5-99999999999999999999999", 5..<size),
                    ("bytes=-99999999999999999999999", 0..<size),
                    (
                        "bytes=\(TestBlob.piece - 3)-\(2 * TestBlob.piece + 3)",
                        TestBlob.piece - 3..<2 * TestBlob.piece + 4
                    ),
                ]
                for (header, range) in parts {
                    let answer = try await caller.fetch(blob, in: "w", ("Range", header))
                    #expect(answer.status == 206 && answer.bytes == Array(blob.bytes[range]), "\(header)")
                    #expect(
                        answer.header("Content-Range") == "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)")
                }
                for header in [
                    "bytes=0-1,5-6", "bytes=9-5", "bytes=-", "bytes=a-b", "lines=0-1", "bytes=1", "bytes 0-1",
                    "bytes=1-2-3", "bytes= 0-1", "bytes=--5", "",
                ] {
                    let answer = try await caller.fetch(blob, in: "w", ("Range", header))
                    #expect(answer.status == 200 && answer.bytes.count == size, "\(header)")
                }
                for header in ["bytes=\(size)-", "bytes=-0", "bytes=99999999999999999999999-"] {
                    let answer = try await caller.fetch(blob, in: "w", ("Range", header))
                    #expect(answer.status == 416 && answer.header("Content-Range") == "bytes */\(size)", "\(header)")
                }
                for (tag, status) in [("\"\(blob.hash)\"", 206), ("W/\"\(blob.hash)\"", 200), ("\"x\"", 200)] {
                    let answer = try await caller.fetch(blob, in: "w", ("Range", "bytes=0-1"), ("If-Range", tag))
                    #expect(answer.status == status, "\(tag)")
                }
            }
        }

        @Test(
            "A caller that may not read a scope, or not write, is told so before any blob is looked for",
            arguments: LiveStore.allCases)
        func access(kind: LiveStore) async throws {
            let blob = small
            try await run(kind) { server, caller in
                #expect(try await caller.put(blob).status == 201)
                let stranger = try await server.caller("eve", scopes: ["mine": .readWrite]).caller
                for blob in [blob, TestBlob(count: 999, seed: 7)] {
                    for answer in [
                        try await stranger.fetch(blob), try await stranger.put(blob),
                        try await stranger.fetch(blob, in: "w", ("If-None-Match", "*")),
                    ] {
                        #expect(answer.status == 403 && answer.code == .scopeForbidden)
                    }
                    let head = try await stranger.head(blob)
                    #expect(head.status == 403 && head.offset == nil)
                    #expect(try await Caller(url: server.live.url).put(blob).status == 401)
                }
                let reader = try await server.caller("rob", scopes: ["w": .read]).caller
                #expect(try await reader.put(blob).code == .scopeReadOnly)
                #expect(try await reader.fetch(blob).bytes == blob.bytes)
                #expect(try await reader.head(blob).status == 200)
                let missing = try await reader.head(TestBlob(count: 5))
                #expect(missing.status == 404 && missing.offset == nil)
            }
        }

        @Test(
            "A hash that is known from another scope, or by another's part, proves nothing",
            arguments: LiveStore.allCases)
        func foreign(kind: LiveStore) async throws {
            let blob = TestBlob.large
            try await run(kind) { server, caller in
                #expect(try await caller.put(blob).status == 201)
                let other = try await server.caller("eve", scopes: ["other": .readWrite]).caller
                #expect(try await other.head(blob, in: "other").offset == "0")
                #expect(try await other.fetch(blob, in: "other").status == 404)
                #expect(try await other.put(blob, 0..<TestBlob.piece, in: "other").status == 202)
                let bob = try await server.caller("bob", scopes: ["other": .readWrite]).caller
                #expect(try await bob.head(blob, in: "other").offset == "0")
                let answer = try await bob.put(blob, TestBlob.piece..<blob.bytes.count, in: "other")
                #expect(answer.code == .uploadOffsetMismatch && answer.offset == "0")
                // His own part, begun with other bytes, does not touch hers.
                let forged = TestBlob(count: blob.bytes.count, seed: 9)
                let path = "/sync/blobs/\(blob.hash)?scope=other"
                let wrong = try await bob.send(.PUT, path, forged.bytes, [])
                #expect(wrong.code == .hashMismatch)
                #expect(try await other.head(blob, in: "other").offset == "\(TestBlob.piece)")
                #expect(try await other.put(blob, TestBlob.piece..<blob.bytes.count, in: "other").status == 201)
                #expect(try await bob.fetch(blob, in: "other").bytes == blob.bytes)
            }
        }

        @Test("A sub-scope's name stands for its scope", arguments: LiveStore.allCases)
        func subscopes(kind: LiveStore) async throws {
            let blob = small
            try await run(kind) { _, caller in
                let sent = try await caller.put(blob, in: "w~media")
                #expect(sent.status == 201)
                #expect(try await caller.fetch(blob).bytes == blob.bytes)
                #expect(try await caller.put(blob, in: "w~nobody").code == .scopeForbidden)
            }
        }

        @Test("An address that names no hash, and methods that are not taken")
        func addresses() async throws {
            let blob = small
            try await run(.sqlite) { _, caller in
                for hash in ["x", String(blob.hash.dropLast()), blob.hash.uppercased(), blob.hash + "0"] {
                    let answer = try await caller.get("/sync/blobs/\(hash)", "scope=w")
                    #expect(answer.code == .invalidIdentifier, "\(hash)")
                }
                #expect(try await caller.get("/sync/blobs/\(blob.hash)").code == .malformedRequest)
                #expect(try await caller.send(.DELETE, blob.path(), nil, []).code == .methodNotAllowed)
                #expect(try await caller.send(.POST, blob.path(), [1], []).header("Allow") == "GET, HEAD, PUT")
            }
        }

        @Test("An erased scope takes and gives nothing", arguments: LiveStore.allCases)
        func erased(kind: LiveStore) async throws {
            let blob = TestBlob.large
            try await run(kind) { server, caller in
                #expect(try await caller.put(blob).status == 201)
                let other = TestBlob(count: 2 * TestBlob.piece, seed: 3)
                #expect(try await caller.put(other, 0..<TestBlob.piece).status == 202)
                try await server.server.erase(.scope("w"))
                #expect(try await caller.fetch(blob).code == .scopeErased)
                #expect(try await caller.put(blob).code == .scopeErased)
                #expect(try await caller.head(other).status == 403)
            }
        }
    }
#endif
