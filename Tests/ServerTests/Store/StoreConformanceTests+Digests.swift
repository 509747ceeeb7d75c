import Testing
import TidemarkCore
import TidemarkWire

@testable import TidemarkServer

extension StoreConformanceTests {
    @Test("The digest is that of the live records, whatever was written and undone", arguments: StoreKind.allCases)
    func digests(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.append(.delete("never"), .event("e"), .idmap("3"))
        #expect(try await bench.read { try $0.digest(of: "task") } == nil)
        try await bench.append(.upsert("a", #"{"n":1,"t":"x"}"#), .upsert("b", #"{"n":2}"#), .upsert("a", of: "note"))
        try await bench.expectDigest(of: "task", records: 2)
        try await bench.expectDigest(of: "note", records: 1)
        try await bench.append(.upsert("a", #"{"m":null,"n":3}"#), .upsert("c", #"{"n":2}"#))
        try await bench.append(.delete("b"), .delete("a"), .upsert("a", #"{"n":4}"#))
        try await bench.expectDigest(of: "task", records: 2)
        try await bench.write { writer throws in
            writer.attemptInVain {
                _ = try writer.append(.upsert("d", #"{"n":1}"#), at: 1)
            }
            _ = try writer.append(.upsert("c", #"{"n":5}"#), at: 1)
        }
        try await bench.expectDigest(of: "task", records: 2)
        try? await bench.write { writer throws in
            _ = try writer.append(.delete("c"), at: 1)
            throw Undone()
        }
        try await bench.expectDigest(of: "task", records: 2)
        // What leaves the log was not live.
        _ = try await bench.store.sweep(supersededBefore: .max, limit: 99)
        try await bench.write { try $0.expire(through: $0.state.head) }
        try await bench.expectDigest(of: "task", records: 2)
        try bench.reopen()
        try await bench.append(.upsert("z", #"{"n":9}"#))
        try await bench.expectDigest(of: "task", records: 3)
    }

    @Test("The size is that of the rows that nothing has taken the place of", arguments: StoreKind.allCases)
    func size(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        func expect(_ rows: Int64, _ bytes: Int64, _ place: SourceLocation = #_sourceLocation) async throws {
            let size = try await bench.read { $0.state.size }
            #expect(size == ScopeSize(rows: rows, bytes: bytes), sourceLocation: place)
        }
        try await expect(0, 0)
        try await bench.append(.upsert("a", #"{"n":1}"#), .upsert("b", #"{"n":22}"#), .event("e"), .idmap("3"))
        let others = try await bench.read { $0.state.size } - ScopeSize(rows: 2, bytes: 7 + 8)
        #expect(others.rows == 2)
        var noted = NewRow.upsert("a", #"{"n":333}"#)
        (noted.fieldVersions, noted.originals) = ([1, 2], [3])
        try await bench.append(noted)
        try await expect(4, 9 + 8 + others.bytes)
        var tombstone = NewRow.delete("a")
        (tombstone.payload, tombstone.fieldVersions) = (Array(#""base":1"#.utf8), [1, 2, 3])
        try await bench.append(tombstone)
        try await expect(4, 3 + 8 + others.bytes)
        try await bench.write { writer throws in
            writer.attemptInVain { _ = try writer.append(.upsert("d", #"{"n":1}"#), at: 1) }
            _ = try writer.newest(entity: "task", record: "a")
            _ = try writer.append(.upsert("a", #"{"n":1}"#), at: 1)
        }
        try await expect(4, 7 + 8 + others.bytes)
        try await bench.append(.delete("b"))
        // What is superseded was not counted any more, and what ages goes.
        _ = try await bench.store.sweep(supersededBefore: .max, limit: 99)
        try await expect(4, 7 + others.bytes)
        try await bench.write { try $0.expire(through: $0.state.head) }
        try await expect(1, 7)
        try bench.reopen()
        try await expect(1, 7)
        // Events come first, and are taken for records' rows where the entity is declared anew.
        try await bench.append(.event("f", of: "task"), .upsert("f", #"{"n":4}"#))
        try await expect(2, 14)
    }

    @Test("Inside a write, too, the digest belongs to the head", arguments: StoreKind.allCases)
    func digestOfWriter(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.append(.upsert("a", #"{"n":1}"#))
        try await bench.write { writer throws in
            let before = try writer.digest(of: "task")
            writer.attemptInVain {
                _ = try writer.append(.upsert("b"), at: 1)
                #expect(try writer.liveDigest(of: "task")?.count == 2)
            }
            #expect(try writer.digest(of: "task") == before)
            _ = try writer.append(.upsert("b"), at: 1)
            #expect(try writer.liveDigest(of: "task")?.count == 2)
            #expect(try writer.digest(of: "note") == nil)
        }
    }
}

extension ScopeReader {
    /// The digest that is kept of an entity, after a look at whether it is that of its live rows.
    func liveDigest(of entity: String) throws -> EntityDigest? {
        let kept = try digest(of: entity).map { try EntityDigest(kept: $0) }
        var counted = EntityDigest()
        let prefix = CellHash.prefix(entity: entity)
        var failure: (any Error)?
        try records(of: entity, above: 0, at: nil, after: nil) { change in
            guard change.kind == .upsert else { return true }
            do { try counted.replace(CellHash.record(prefix, id: change.record), nil, with: change.payload) } catch {
                failure = error
            }
            return failure == nil
        }
        if let failure { throw failure }
        #expect(kept?.comparable ?? EntityDigest().comparable == counted.comparable)
        return kept
    }
}

extension StoreBench {
    func expectDigest(of entity: String, records: Int64) async throws {
        let count = try await read { try $0.liveDigest(of: entity)?.count }
        #expect(count == records)
    }
}

extension EntityDigest {
    /// Without the order in which fields were first seen, and without those that nobody has any more.
    fileprivate var comparable: EntityDigest {
        EntityDigest(
            fields: fields.filter { $0.count != 0 }.sorted { $0.name.lexicographicallyPrecedes($1.name) },
            count: count, records: records, isOverfull: isOverfull)
    }
}
