import Testing
import TidemarkWire

@testable import TidemarkServer

extension StoreConformanceTests {
    @Test(
        "Superseded rows are counted, and go beyond a weight, the first of them first", arguments: StoreKind.allCases)
    func window(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        func expect(
            _ rows: Int64, _ bytes: Int64, floor: Version, _ place: SourceLocation = #_sourceLocation
        ) async throws {
            let state = try await bench.state()
            #expect(state.superseded == ScopeSize(rows: rows, bytes: bytes), sourceLocation: place)
            #expect(state.sweepFloor == floor, sourceLocation: place)
            try await bench.expectSizes(of: "s")
        }
        // 1 a, 2 b, 3 b again (2 goes first, though it came later), 4 a again, 5 a deleted; the clock is put back.
        try await bench.append(.upsert("a", #"{"n":1}"#), .upsert("b", #"{"n":22}"#), at: 5000)
        try await expect(0, 0, floor: 0)
        try await bench.append(.upsert("b", #"{"n":333}"#), at: 6000)
        var tombstone = NewRow.delete("a")
        tombstone.fieldVersions = [1, 2, 3]
        try await bench.append(.upsert("a", #"{"n":4444}"#), tombstone, at: 100)
        try await expect(3, 8 + 7 + 10, floor: 0)
        // An entity that held events once: two rows have one successor.
        try await bench.append(.event("e", "[1]", of: "task"), .event("e", "[22]", of: "task"), .event("x"))
        try await bench.append(.upsert("e", "{}"), .upsert("a", "{}"))
        try await expect(6, 25 + 3 + 4 + 3, floor: 0)
        let others = try await bench.append(.upsert("a"), .upsert("a"), to: "other")
        func sweep(_ weight: Int64, _ limit: Int) async throws -> Int {
            try await bench.write { try $0.sweep(supersededBeyond: weight, limit: limit) }
        }
        let row = ScopeSize.rowWeight
        #expect(try await sweep(6 * row + 35, 9) == 0)
        #expect(try await sweep(6 * row + 34, 9) == 1)
        try await expect(5, 27, floor: 3)
        #expect(try await sweep(0, 1) == 1)
        try await expect(4, 20, floor: 4)
        #expect(try await sweep(2 * row + 7, 9) == 2)
        try await expect(2, 7, floor: 9)
        #expect(try await bench.changes(through: 9).map(\.version) == [3, 5, 8, 9])
        #expect(try await sweep(0, 0) == 0)
        try bench.reopen()
        try await expect(2, 7, floor: 9)
        #expect(try await sweep(-1, 9) == 2)
        try await expect(0, 0, floor: 10)
        #expect(try await sweep(-1, 9) == 0)
        #expect(others == [1, 2])
        #expect(try await bench.state("other").superseded == ScopeSize(rows: 1, bytes: 2))
        #expect(try await sweepElsewhere(bench) == 0)
    }

    /// In a scope that nobody has written to.
    private func sweepElsewhere(_ bench: StoreBench) async throws -> Int {
        try await bench.write("none") { try $0.sweep(supersededBeyond: 0, limit: 9) }
    }

    @Test(
        "Each removal of superseded rows takes them from the count, and one that is undone does not",
        arguments: StoreKind.allCases)
    func windowInStep(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        var tombstone = NewRow.delete("a")
        tombstone.fieldVersions = [1, 2, 3]
        let deleted = tombstone
        try await bench.append(.upsert("a", #"{"n":1}"#), deleted, .upsert("a", #"{"n":2}"#), .upsert("a"), at: 10)
        try await bench.expectSizes(of: "s")
        try await bench.write { writer throws in
            let before = writer.state
            writer.attemptInVain {
                _ = try writer.append(.upsert("a", #"{"n":3}"#), at: 20)
                #expect(try writer.sweep(supersededBeyond: 0, limit: 2) == 2)
                #expect(writer.state.sweepFloor == 3)
            }
            #expect(writer.state == before)
        }
        try await bench.expectSizes(of: "s")
        // A superseded tombstone goes with what ages.
        try await bench.write { try $0.expire(through: 3) }
        #expect(try await bench.state().superseded == ScopeSize(rows: 2, bytes: 14))
        try await bench.expectSizes(of: "s")
        #expect(try await bench.store.sweep(supersededBefore: 12, limit: 9) == 1)
        #expect(try await bench.state().superseded == ScopeSize(rows: 1, bytes: 7))
        try? await bench.write { writer throws in
            try writer.sweep(supersededBeyond: 0, limit: 9)
            throw Undone()
        }
        try await bench.expectSizes(of: "s")
        #expect(try await bench.changes(through: 3).map(\.version) == [3])
    }
}

extension StoreBench {
    /// What is counted of a scope is what a look at each of its rows counts.
    func expectSizes(of scope: Scope, _ place: SourceLocation = #_sourceLocation) async throws {
        let (state, counted) = try await read(scope) { reader in (reader.state, try reader.counted()) }
        #expect(state.size == counted.live, sourceLocation: place)
        #expect(state.superseded == counted.superseded, sourceLocation: place)
    }
}

extension ScopeReader {
    /// Each row that is kept is live as of its own version.
    fileprivate func counted() throws -> (live: ScopeSize, superseded: ScopeSize) {
        let live = Set(try seen(after: 0, through: state.head, tombstonesAfter: 0).map(\.version))
        var sizes = (live: ScopeSize(), superseded: ScopeSize())
        for version in 0..<state.head {
            for row in try seen(after: version, through: version + 1, tombstonesAfter: 0) {
                let isNoted = row.kind == .delete
                let note = isNoted ? try self.row(entity: row.entity, record: row.record, at: row.version) : nil
                let size = ScopeSize(of: row.kind, payload: Array(row.payload.utf8), note: note?.fieldVersions)
                if live.contains(row.version) {
                    sizes.live = sizes.live + size
                } else {
                    sizes.superseded = sizes.superseded + size
                }
            }
        }
        return sizes
    }
}
