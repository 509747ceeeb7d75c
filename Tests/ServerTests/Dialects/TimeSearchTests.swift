import Testing
import TidemarkCore
import TidemarkTesting

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Where in a log a time lies")
struct TimeSearchTests {
    /// The place by looking at all rows that are left.
    private func expected(_ rows: [(version: Version, time: Int64)], _ moment: Int64, _ state: ScopeState) -> Version {
        if moment >= state.lastTime { return state.head }
        return rows.last { $0.time <= moment }?.version ?? 0
    }

    @Test("Each moment, over rows that were superseded, swept and expired", arguments: StoreKind.allCases)
    func everyMoment(kind: StoreKind) async throws {
        var generator = SplitMix64(seed: 7)
        for round in 0..<3 {
            let bench = try StoreBench(kind)
            var rows: [(version: Version, time: Int64)] = []
            var clock: Int64 = 100
            for step in 0..<40 {
                clock += Int64(generator.next() % 4)
                let record = RecordID("r\(generator.next() % 6)") ?? "r"
                let row: NewRow =
                    switch step % 7 {
                    case 3: NewRow(entity: "task", record: record, kind: .delete, payload: nil)
                    case 5:
                        NewRow(entity: "visit", record: RecordID("e\(step)") ?? "e", kind: .event, payload: [123, 125])
                    default: NewRow(entity: "task", record: record, kind: .upsert, payload: [123, 125])
                    }
                let moment = clock
                let version = try await bench.write { try $0.append(row, at: moment) }
                rows.append((version, try await bench.state().lastTime))
            }
            #expect(zip(rows, rows.dropFirst()).allSatisfy { $0.time < $1.time })
            if round > 0 { _ = try await bench.store.sweep(supersededBefore: clock - 10, limit: 1000) }
            if round > 1 { try await bench.write { try $0.expire(through: 20) } }
            let (kept, end) = (rows, clock + 60)
            try await bench.read { reader throws in
                var left: [(version: Version, time: Int64)] = []
                for row in kept {
                    let seen = try reader.aged(
                        after: row.version - 1, through: row.version, before: .max, limit: 1)
                    if seen.through == row.version { left.append(row) }
                }
                #expect((left.count < kept.count) == (round > 0))
                for moment in -1...end {
                    let place = try reader.version(at: moment)
                    #expect(place == expected(left, moment, reader.state), "\(moment)")
                    #expect(!left.contains { $0.version > place && $0.time <= moment })
                    #expect(!left.contains { $0.version <= place && $0.time > moment })
                }
                #expect(try reader.version(at: .max) == reader.state.head)
                #expect(try reader.version(at: .min) == 0)
            }
        }
    }

    @Test("A scope that nobody wrote to has one place", arguments: StoreKind.allCases)
    func empty(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.read { reader throws in
            for moment in [Int64.min, 0, 5, .max] {
                #expect(try reader.version(at: moment) == 0)
                #expect(try reader.boundary(of: moment, now: 10).position == 0)
            }
        }
    }

    @Test("The looks for a time are as many as the newest version has binary digits")
    func cost() async throws {
        let bench = try StoreBench(.sqlite)
        try await bench.write { writer in
            for number in 0..<5000 {
                _ = try writer.append(
                    NewRow(entity: "task", record: "r", kind: .upsert, payload: [123, 125]), at: 1000 + Int64(number))
            }
        }
        try await bench.read { reader throws in
            let counted = CountingReader(reader)
            #expect(try counted.version(at: 3333) == 2334)
            #expect((1...14).contains(counted.looks))
        }
    }
}

/// Counts how often rows are looked at for their times.
private final class CountingReader: ScopeReader {
    private let reader: any ScopeReader
    private(set) var looks = 0

    init(_ reader: any ScopeReader) { self.reader = reader }

    func countKept(by principal: String?) throws -> Erasure { try reader.countKept(by: principal) }

    func aged(
        after version: Version, through last: Version, before moment: Int64, events: Bool, limit: Int
    ) throws -> (through: Version, rows: Int) {
        looks += limit
        return try reader.aged(after: version, through: last, before: moment, events: events, limit: limit)
    }

    var state: ScopeState { reader.state }
    func newest(entity: String, record: RecordID) throws -> StoredRecord? {
        try reader.newest(entity: entity, record: record)
    }
    func newest(entity: String, record: RecordID, _ visit: (BorrowedChange) -> Void) throws {
        try reader.newest(entity: entity, record: record, visit)
    }
    func row(entity: String, record: RecordID, at version: Version) throws -> StoredRecord? {
        try reader.row(entity: entity, record: record, at: version)
    }
    func digest(of entity: String) throws -> [UInt8]? { try reader.digest(of: entity) }
    func changes(
        after position: Version, through horizon: Version, tombstonesAfter: Version, _ visit: (BorrowedChange) -> Bool
    ) throws {
        try reader.changes(after: position, through: horizon, tombstonesAfter: tombstonesAfter, visit)
    }
    func records(
        of entity: String, above base: Version, at horizon: Version?, after record: RecordID?,
        _ visit: (BorrowedChange) -> Bool
    ) throws {
        try reader.records(of: entity, above: base, at: horizon, after: record, visit)
    }
    func lane(_ lane: LaneName) throws -> Int64 { try reader.lane(lane) }
    func lanes(of device: DeviceName, limit: Int) throws -> [(lane: String, number: Int64)] {
        try reader.lanes(of: device, limit: limit)
    }
    func standing(of device: DeviceName) throws -> DeviceStanding? { try reader.standing(of: device) }
    func report(of device: DeviceName) throws -> DeviceReport? { try reader.report(of: device) }
    func slowest() throws -> Version? { try reader.slowest() }
    func unheard(devicesBefore: Int64, lanesBefore: Int64) throws -> (devices: Int, lanes: Int) {
        try reader.unheard(devicesBefore: devicesBefore, lanesBefore: lanesBefore)
    }
    func verdict(_ lane: LaneName, _ number: Int64) throws -> StoredVerdict? { try reader.verdict(lane, number) }
    func tally(by principal: String, of entity: String) throws -> [UInt8]? {
        try reader.tally(by: principal, of: entity)
    }
    func id(for name: TemporaryName) throws -> RecordID? { try reader.id(for: name) }
    func assignment(of record: RecordID, entity: String) throws -> AssignmentPlace? {
        try reader.assignment(of: record, entity: entity)
    }
}
