import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

/// The bytes of blobs as rows (decision 17).
@Suite("Pieces of blobs in PostgreSQL")
struct PostgresBlobTests {
    private static let room = BlobRoom(scope: 4 << 20, caller: 4 << 20, parts: 9)
    private static let piece = BlobPart.pieceBytes
    private static let name = BlobPartName(scope: "s", principal: "ada", hash: String(repeating: "a", count: 64))
    private static let bytes: [UInt8] = (0..<2 * piece + 9).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8)) }

    /// Sends the bytes in parts that end where it is said, and at the end of each piece.
    private func send(to store: PostgresStore, endingAt ends: [Int] = []) async throws -> BlobPart {
        let all = Self.bytes
        var part = try await store.begin(Self.name, size: Int64(all.count), within: Self.room, at: 1)
        while !part.isComplete {
            let start = Int(part.kept)
            let end = min(start + part.room, ends.first { $0 > start } ?? all.count)
            part = try await store.append(Array(all[start..<end]), to: part, isLast: true, at: 1)
        }
        return part
    }

    @Test("Each part is written once, and read from any place", arguments: [0, 3])
    func small(partitions: Int) async throws {
        let bench = try PostgresBench()
        let node = try bench.node { $0.partitions = partitions }
        defer { node.close() }
        let ends = [1, 2, 3, 1000, Self.piece - 1, Self.piece + 5]
        let part = try await send(to: node, endingAt: ends)
        let (cluster, schema) = (bench.cluster, bench.schema)
        let rows = try await offPool {
            try cluster.psql("SELECT start FROM \(schema).blob_piece ORDER BY start")
        }
        let starts = rows.split(separator: "\n").compactMap { Int($0) }
        #expect(starts == [0, 1, 2, 3, 1000, Self.piece - 1, Self.piece, Self.piece + 5, 2 * Self.piece])
        for offset in [0, 1, 3, 999, 1000, Self.piece - 2, Self.piece, Self.piece + 7, Self.bytes.count - 1] {
            for limit in [1, 2, 5000, Self.piece] {
                let read = try await node.bytes(of: part, from: Int64(offset), limit: limit)
                #expect(read == Array(Self.bytes.dropFirst(offset).prefix(limit)), "\(limit) from \(offset)")
            }
        }
        await #expect(throws: BlobRefusal.moved) { try await node.bytes(of: part, from: part.size, limit: 9) }
    }

    @Test("A store of the version before has its blobs", arguments: [0, 3])
    func older(partitions: Int) async throws {
        let bench = try PostgresBench()
        let node = try bench.node { $0.partitions = partitions }
        #expect(try await node.finish(try await send(to: node), at: 1))
        node.close()
        let (cluster, schema) = (bench.cluster, bench.schema)
        _ = try await offPool {
            try cluster.psql(
                """
                UPDATE \(schema).blob_piece SET start = start / 262144;
                ALTER TABLE \(schema).blob_piece RENAME COLUMN start TO number
                """)
        }
        let later = try bench.node()
        defer { later.close() }
        let blob = try #require(try await later.blob(Self.name.hash, in: "s"))
        var all: [UInt8] = []
        while all.count < Self.bytes.count {
            all += try await later.bytes(of: blob, in: "s", from: Int64(all.count), limit: Self.piece)
        }
        #expect(all == Self.bytes)
    }
}
