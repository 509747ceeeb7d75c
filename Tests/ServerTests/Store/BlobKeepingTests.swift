import Testing
import TidemarkCore
import TidemarkWire

@testable import TidemarkServer

/// What a server does with bytes whose caller goes (A12).
@Suite("Bytes of a blob outlast their caller's request")
struct BlobKeepingTests {
    static let kinds: [StoreKind] = [.sqlite, .postgres]

    /// A body that is cut behind its last piece, since its request is cancelled.
    private struct LeftBody: AsyncSequence, AsyncIteratorProtocol, Sendable {
        typealias Element = [UInt8]
        var pieces: [[UInt8]]

        mutating func next() async throws -> [UInt8]? {
            guard pieces.isEmpty else { return pieces.removeFirst() }
            Self.cancelTask()
            return nil
        }

        func makeAsyncIterator() -> LeftBody { self }

        private static func cancelTask() {
            withUnsafeCurrentTask { (task: UnsafeCurrentTask?) -> Void in task?.cancel() }
        }
    }

    /// Two pieces and a bit.
    private static let bytes: [UInt8] = (0..<2 * BlobPart.pieceBytes + 77).map {
        UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8))
    }

    private static let name = BlobPartName(
        scope: "s", principal: "ada",
        hash: SHA256.digest(bytes).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined())

    private static let upload = BlobUpload(
        hash: name.hash, scope: "s", start: nil, length: Int64(bytes.count), size: Int64(bytes.count))

    @Test("What has come is kept when the request is cancelled, also less than a piece", arguments: kinds)
    func cancelled(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try #require(bench.store as? any BlobStore)
        let server = SyncServer(store: bench.store, configuration: .still)
        let body = LeftBody(pieces: [Array(Self.bytes.prefix(1000)), Array(Self.bytes[1000..<1500])])
        let request = Task { try await server.receive(Self.upload, access: .readWrite(as: "ada"), body) }
        await #expect(throws: Problem.self) { try await request.value }
        let part = try #require(try await store.part(Self.name))
        #expect(part.kept == 1500)
        #expect(try await store.bytes(of: part, from: 0, limit: 9999) == Array(Self.bytes.prefix(1500)))
    }

    @Test("A piece that cannot be appended is tried once")
    func once() async throws {
        let bench = try Bench()
        let asked = Guarded<[HookedBlobs.Step]>([])
        let blobs = HookedBlobs(bench.store) { step in
            asked.withLock { $0.append(step) }
            throw StoreUnavailable("the disk is full")
        }
        let server = SyncServer(store: blobs, configuration: .still)
        let body = LeftBody(pieces: [Self.bytes])
        await #expect(throws: StoreUnavailable.self) {
            try await server.receive(Self.upload, access: .readWrite(as: "ada"), body)
        }
        #expect(asked.withLock { $0 } == [.append(count: BlobPart.pieceBytes)])
    }
}
