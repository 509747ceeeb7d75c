#if Server
    import Foundation
    import NIOHTTP1
    import TidemarkCore
    import TidemarkServer
    import TidemarkWire

    /// Bytes and their hash.
    struct TestBlob: Sendable {
        let bytes: [UInt8]
        let hash: String

        init(_ bytes: [UInt8]) {
            self.bytes = bytes
            hash = SHA256.digest(bytes).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        }

        /// Bytes that do not repeat soon.
        init(count: Int, seed: Int = 1) {
            self.init((0..<count).map { UInt8(truncatingIfNeeded: ($0 &* 2_654_435_761 &+ seed) >> 11) })
        }

        var reference: String { "sha256:\(hash):\(bytes.count)" }
        func path(_ scope: String = "w") -> String { "/sync/blobs/\(hash)?scope=\(scope)" }

        /// Two pieces and a bit.
        static let large = TestBlob(count: 2 * BlobPart.pieceBytes + 1234)
        static let piece = BlobPart.pieceBytes
    }

    extension Caller {
        func head(_ blob: TestBlob, in scope: String = "w", _ headers: (String, String)...) async throws -> Answer {
            try await send(.HEAD, blob.path(scope), nil, headers)
        }

        func fetch(_ blob: TestBlob, in scope: String = "w", _ headers: (String, String)...) async throws -> Answer {
            try await send(.GET, blob.path(scope), nil, headers)
        }

        func put(_ blob: TestBlob, in scope: String = "w", _ headers: (String, String)...) async throws -> Answer {
            try await send(.PUT, blob.path(scope), blob.bytes, headers)
        }

        /// Sends some bytes of a blob, which may be announced as something else.
        func put(
            _ blob: TestBlob, _ range: Range<Int>, in scope: String = "w", as place: String? = nil
        ) async throws -> Answer {
            let place = place ?? "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(blob.bytes.count)"
            return try await send(.PUT, blob.path(scope), Array(blob.bytes[range]), [("Content-Range", place)])
        }
    }

    extension Answer {
        var offset: String? { headers.first(name: "Upload-Offset") }
        func header(_ name: String) -> String? { headers.first(name: name) }
    }
#endif
