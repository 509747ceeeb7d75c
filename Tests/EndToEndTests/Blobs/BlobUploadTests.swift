#if Server
    import Foundation
    import NIOCore
    import NIOHTTP1
    import Testing
    import TidemarkHummingbird
    import TidemarkWire

    @testable import TidemarkServer

    /// Uploads in parts, cut, wrong or too many (A12).
    @Suite("Uploads of blobs", .timeLimit(.minutes(5)))
    struct BlobUploadTests {
        private static let piece = TestBlob.piece

        private func run(
            _ kind: LiveStore, limits: Limits = Limits(),
            _ body: @Sendable (DialectServer, Caller) async throws -> Void
        ) async throws {
            try await DialectServer.run(kind, entities: [.state("task", attachments: ["photo"])], limits: limits) {
                server in
                try await body(server, try await server.caller().caller)
            }
        }

        @Test("Parts go on where the last one ended, and nowhere else", arguments: LiveStore.allCases)
        func parts(kind: LiveStore) async throws {
            let blob = TestBlob.large
            let size = blob.bytes.count
            try await run(kind) { _, caller in
                let first = try await caller.put(blob, 0..<Self.piece)
                #expect(first.status == 202 && first.offset == "\(Self.piece)")
                #expect(try await caller.head(blob).offset == "\(Self.piece)")
                for range in [0..<Self.piece, 2 * Self.piece..<size, 1..<size] {
                    let answer = try await caller.put(blob, range)
                    #expect(answer.status == 409 && answer.code == .uploadOffsetMismatch)
                    #expect(answer.offset == "\(Self.piece)" && answer.problem?.offset == Int64(Self.piece))
                }
                #expect(try await caller.fetch(blob).status == 404)
                #expect(try await caller.put(blob, Self.piece..<2 * Self.piece).offset == "\(2 * Self.piece)")
                #expect(try await caller.put(blob, 2 * Self.piece..<size).status == 201)
                #expect(try await caller.fetch(blob).bytes == blob.bytes)
                #expect(try await caller.put(blob, 0..<Self.piece).status == 200)
                // Without a place it is the whole, from the beginning.
                let other = TestBlob(count: Self.piece + 1, seed: 5)
                #expect(try await caller.put(other, 0..<Self.piece).status == 202)
                #expect(try await caller.put(other).status == 201)
            }
        }

        @Test("A place that is none, or does not fit the body, is refused and changes nothing")
        func places() async throws {
            let blob = TestBlob.large
            let (size, piece) = (blob.bytes.count, Self.piece)
            try await run(.sqlite) { _, caller in
                #expect(try await caller.put(blob, 0..<piece).status == 202)
                for place in [
                    "bytes 0-1", "bytes */\(size)", "bytes 5-4/\(size)", "bytes 0-\(size)/\(size)", "0-1/\(size)",
                    "bytes \(piece)-\(2 * piece - 1)/*", "bytes -1-5/\(size)", "bytes 0-1/2/3", "items 0-1/\(size)",
                    "bytes \(piece)-\(2 * piece - 1)/99999999999999999999", "bytes 1e3-2e3/\(size)", "bytes",
                    "bytes \(piece)-\(2 * piece)/\(size)",
                ] {
                    let answer = try await caller.put(blob, piece..<2 * piece, as: place)
                    #expect(answer.status == 400 && answer.code == .malformedRequest, "\(place): \(answer.text)")
                }
                let huge = try await caller.put(
                    blob, piece..<2 * piece, as: "bytes \(piece)-\(2 * piece - 1)/999999999999999999")
                #expect(huge.status == 413)
                let other = try await caller.put(
                    blob, piece..<2 * piece, as: "bytes \(piece)-\(2 * piece - 1)/\(size + 1)")
                #expect(other.code == .malformedRequest)
                #expect(try await caller.head(blob).offset == "\(piece)")
                let coded = try await caller.send(.PUT, blob.path(), blob.bytes, [("Content-Encoding", "gzip")])
                #expect(coded.status == 415 && coded.code == .unsupportedEncoding)
                #expect(try await caller.put(blob, piece..<size).status == 201)
            }
        }

        @Test("Bytes with another hash are refused, and nothing is kept of them", arguments: LiveStore.allCases)
        func forged(kind: LiveStore) async throws {
            let blob = TestBlob(count: 300)
            try await run(kind) { server, caller in
                let path = "/sync/blobs/\(blob.hash)?scope=w"
                for bytes in [[], [1], Array(blob.bytes.dropLast()), blob.bytes + [0]] as [[UInt8]] {
                    let answer = try await caller.send(.PUT, path, bytes, [])
                    #expect(answer.status == 422 && answer.code == .hashMismatch)
                }
                #expect(try await caller.head(blob).offset == "0")
                let blobs = try #require(server.server.store as? any BlobStore)
                #expect(try await blobs.blobTally(of: "w", by: nil) == BlobTally())
                #expect(try await caller.put(blob).status == 201)
            }
        }

        @Test("Uploads of one hash at one time end in one blob", arguments: LiveStore.allCases)
        func together(kind: LiveStore) async throws {
            let blob = TestBlob(count: Self.piece + 99)
            try await run(kind) { server, caller in
                let callers = try await [caller, caller, server.caller("bob").caller, server.caller("cy").caller]
                let statuses = await withTaskGroup(of: Int.self) { group in
                    for caller in callers { group.addTask { (try? await caller.put(blob).status) ?? 0 } }
                    return await group.reduce(into: []) { $0.append($1) }
                }
                // Two of one caller may take each other's place.
                #expect(statuses.allSatisfy { [200, 201, 409].contains($0) }, "\(statuses)")
                #expect(statuses.filter { $0 == 201 }.count == 1, "\(statuses)")
                #expect(try await caller.fetch(blob).bytes == blob.bytes)
                let blobs = try #require(server.server.store as? any BlobStore)
                #expect(try await blobs.blobTally(of: "w", by: nil).blobs == 1)
            }
        }

        @Test(
            "The bytes of a body that is cut stay, and the rest completes it",
            arguments: LiveStore.allCases)
        func cut(kind: LiveStore) async throws {
            let blob = TestBlob(count: 3 * Self.piece)
            try await run(kind) { server, caller in
                let socket = try Socket(port: server.live.port)
                try await socket.write(
                    """
                    PUT \(blob.path()) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(caller.token ?? "")\r
                    Content-Length: \(blob.bytes.count)\r\n\r\n
                    """)
                #expect(try await socket.write(Array(blob.bytes.prefix(Self.piece + 1000))) == 0)
                try await poll { try await caller.head(blob).offset == "\(Self.piece)" }
                socket.endWriting()
                try await poll { socket.received() != nil }
                let kept = Self.piece + 1000
                #expect(try await caller.head(blob).offset == "\(kept)")
                #expect(try await caller.put(blob, kept..<blob.bytes.count).status == 201)
                #expect(try await caller.fetch(blob).bytes == blob.bytes)
            }
        }

        @Test("Bytes that came before a connection was reset stay", arguments: LiveStore.allCases)
        func reset(kind: LiveStore) async throws {
            let blob = TestBlob(count: 3 * Self.piece)
            try await run(kind) { server, caller in
                var kept = 0
                // Nobody sees when the server has taken the bytes from its socket: what it has not is lost by right.
                for round in 1...20 where kept == 0 {
                    var socket: Socket? = try Socket(port: server.live.port)
                    socket?.resetsAtEnd()
                    try await socket?.write(
                        """
                        PUT \(blob.path()) HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(caller.token ?? "")\r
                        Content-Length: \(blob.bytes.count)\r\n\r\n
                        """)
                    _ = try await socket?.write(Array(blob.bytes.prefix(1000)))
                    try await Task.sleep(for: .milliseconds(20 * round))
                    withExtendedLifetime(socket) {}
                    socket = nil
                    for _ in 0..<20 where kept == 0 {
                        let offset = try await caller.head(blob).offset
                        kept = offset.flatMap { Int($0) } ?? 0
                        try await Task.sleep(for: .milliseconds(10))
                    }
                }
                #expect(kept == 1000)
                #expect(try await caller.put(blob, kept..<blob.bytes.count).status == 201)
                #expect(try await caller.fetch(blob).bytes == blob.bytes)
            }
        }

        @Test("Parts of any length make the whole", arguments: LiveStore.allCases)
        func uneven(kind: LiveStore) async throws {
            let blob = TestBlob(count: 2 * Self.piece + 9)
            try await run(kind) { _, caller in
                var kept = 0
                for length in [1, 65_535, Self.piece, 100_000, 7] {
                    let answer = try await caller.put(blob, kept..<kept + length)
                    kept += length
                    #expect(answer.status == 202 && answer.offset == "\(kept)")
                    #expect(try await caller.head(blob).offset == "\(kept)")
                }
                #expect(try await caller.put(blob, kept..<blob.bytes.count).status == 201)
                #expect(try await caller.fetch(blob).bytes == blob.bytes)
            }
        }

        @Test("A blob, a scope's blobs and a caller's parts have limits", arguments: LiveStore.allCases)
        func limits(kind: LiveStore) async throws {
            var limits = Limits()
            (limits.blobBytes, limits.scopeBlobBytes) = (2 * Self.piece, 8 * Self.piece)
            try await run(kind, limits: limits) { server, caller in
                let large = try await caller.put(TestBlob(count: 2 * Self.piece + 1))
                #expect(large.status == 413 && large.code == .requestTooLarge)
                let blobs = (0..<5).map { TestBlob(count: 2 * Self.piece - 300, seed: $0 * 7) }
                #expect(try await caller.put(blobs[0], 0..<Self.piece).status == 202)
                // A quarter of the scope's room is one caller's for what he is sending.
                let second = try await caller.put(blobs[1], 0..<Self.piece)
                #expect(second.status == 507 && second.code == .quotaExceeded)
                #expect(try await caller.put(blobs[0], Self.piece..<blobs[0].bytes.count).status == 201)
                for blob in blobs[1...3] { #expect(try await caller.put(blob).status == 201) }
                #expect(try await caller.put(blobs[4]).code == .quotaExceeded)
                let elsewhere = try await server.caller(scopes: ["x": .readWrite]).caller
                #expect(try await elsewhere.put(blobs[4], in: "x").status == 201)
            }
        }

        @Test("One caller has a share of the transfers, and all together have so many")
        func transfers() async throws {
            var limits = Limits()
            limits.blobTransfers = 4
            let blob = TestBlob(count: 100)
            try await run(.sqlite, limits: limits) { server, caller in
                let held = try server.server.beginTransfer(of: .read(as: "ada"))
                let refused = try await caller.put(blob)
                #expect(refused.status == 429 && refused.header("Retry-After") == "1")
                // Who has none is let in beyond what all have, but not for ever.
                let others = try (0..<14).map { try server.server.beginTransfer(of: .read(as: "other\($0)")) }
                let bob = try await server.caller("bob").caller
                #expect(try await bob.put(blob).status == 201)
                let last = try server.server.beginTransfer(of: .read(as: "last"))
                #expect(try await bob.fetch(blob).status == 503)
                withExtendedLifetime(last) {}
                withExtendedLifetime((held, others)) {}
            }
        }
    }
#endif
