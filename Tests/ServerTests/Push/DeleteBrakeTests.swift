import Foundation
import Testing

@testable import TidemarkCore
@testable import TidemarkServer
@testable import TidemarkWire

/// Of an entity with a brake, one user deletes so many records in one scope; more have to be confirmed (W74).
@Suite("The brake on deletes")
struct DeleteBrakeTests {
    private static let rows = 20

    /// A store with records `1` to `20` of `task` and `note`; a user may delete three tasks in an hour.
    private func bench(_ kind: StoreKind) async throws -> EngineBench {
        let bench = try EngineBench(kind, entities: [.state("Task", brake: DeleteBrake(rows: 3))])
        try await bench.server.commit(to: "s") { changes in
            for number in 1...Self.rows {
                changes.upsert("task", id: RecordID("\(number)")!, [:])
                changes.upsert("note", id: RecordID("\(number)")!, [:])
            }
        }
        return bench
    }

    private func delete(
        _ number: Int, _ record: Int, entity: String = "task", lane: String = "lane-aaaa", extra: String = ""
    ) -> String {
        #"{"lane":"\#(lane)","number":\#(number),"type":"delete","entity":"\#(entity)","id":"\#(record)","#
            + #""baseVersion":40\#(extra)}"#
    }

    private func deletes(_ numbers: ClosedRange<Int>, entity: String = "task", extra: String = "") -> [String] {
        numbers.map { delete($0, $0, entity: entity, extra: extra) }
    }

    @Test("Deletes above the bound are refused, with a hint; edits are not", arguments: StoreKind.allCases)
    func bound(kind: StoreKind) async throws {
        let bench = try await bench(kind)
        let first = try await bench.exchange(deletes(1...2))
        let second = try await bench.exchange(deletes(3...5) + [upsert(6, "6", #"{"n":1}"#, base: 40)])
        #expect(first.statuses == ["applied", "applied"])
        #expect(second.statuses == ["applied", "rejected", "rejected", "applied"])
        #expect(second.errorCode(1) == "delete_brake")
        let error = second.results[1]["error"] as? [String: Any]
        #expect((error?["hint"] as? String)?.contains("confirmed") == true)
        // Told again it is the same, and the records are still there.
        let again = try await bench.exchange(deletes(3...5))
        #expect(again.statuses == ["applied", "rejected", "rejected"])
        let live = try await bench.pullAll().changes.filter { $0.type == "upsert" && $0.entity == "Task" }
        #expect(live.count == Self.rows - 3)
        #expect(try await bench.server.rejections().map(\.code) == ["delete_brake", "delete_brake"])
    }

    @Test("Deletes that were confirmed pass and count for nothing", arguments: StoreKind.allCases)
    func confirmed(kind: StoreKind) async throws {
        let bench = try await bench(kind)
        let many = try await bench.exchange(deletes(1...10, extra: #","confirmed":true"#))
        #expect(Set(many.statuses) == ["applied"])
        let more = try await bench.exchange(deletes(11...14))
        #expect(more.statuses == ["applied", "applied", "applied", "rejected"])
        let anew = try await bench.exchange([delete(15, 14, extra: #","confirmed":true"#)])
        #expect(anew.statuses == ["applied"])
    }

    @Test("Moves, other entities, what is gone already, other users and the server itself are apart")
    func apart() async throws {
        for kind in StoreKind.allCases {
            let bench = try await bench(kind)
            let moves = try await bench.exchange(deletes(1...6, extra: #","moved":true"#))
            #expect(Set(moves.statuses) == ["applied"])
            let others = try await bench.exchange((1...6).map { delete($0 + 6, $0, entity: "note") })
            #expect(Set(others.statuses) == ["applied"])
            let gone = try await bench.exchange((1...6).map { delete($0 + 12, $0) } + [delete(19, 99)])
            #expect(Set(gone.statuses) == ["applied"])
            let own = try await bench.exchange((7...10).map { delete($0 + 13, $0, entity: "TASK") })
            #expect(own.statuses == ["applied", "applied", "applied", "rejected"])
            // A delete that has nothing to delete is none, also behind the bound.
            #expect(try await bench.exchange([delete(24, 7)]).statuses == ["applied"])
            let bob = try await bench.exchange(
                [delete(1, 10)], client: "device-bbbb", access: .readWrite(as: "bob"))
            #expect(bob.statuses == ["applied"])
            try await bench.server.commit(to: "s") { changes in
                for number in 11...18 { changes.delete("task", id: RecordID("\(number)")!) }
            }
        }
    }

    @Test("A user's devices count together, on every node", arguments: StoreKind.allCases)
    func devices(kind: StoreKind) async throws {
        let bench = try await bench(kind)
        let other = bench.node(entities: bench.entities)
        _ = try await bench.push(delete(1, 1), delete(2, 2))
        // This node's clock is the system's, which is later than the bench's by more than the window.
        let second = try await bench.push(delete(1, 3), delete(2, 4), client: "device-bbbb")
        #expect(second.statuses == ["applied", "rejected"])
        let third = try await bench.push(delete(1, 5), client: "device-cccc", on: other)
        #expect(third.statuses == ["applied"])
    }

    @Test("The window slides: an hour later as many pass again", arguments: StoreKind.allCases)
    func window(kind: StoreKind) async throws {
        let bench = try await bench(kind)
        _ = try await bench.exchange(deletes(1...1))
        bench.clock += 30 * 60_000
        #expect(try await bench.exchange(deletes(2...4)).statuses == ["applied", "applied", "rejected"])
        bench.clock += 32 * 60_000
        #expect(try await bench.exchange(deletes(5...6)).statuses == ["applied", "rejected"])
        bench.clock += 61 * 60_000
        #expect(try await bench.exchange(deletes(7...10)).statuses == ["applied", "applied", "applied", "rejected"])
    }

    @Test("A group is refused whole, and counts for nothing then", arguments: StoreKind.allCases)
    func group(kind: StoreKind) async throws {
        let bench = try await bench(kind)
        let group = #","group":"g""#
        let refused = try await bench.exchange(deletes(1...4, extra: group))
        #expect(refused.statuses == ["rejected", "rejected", "rejected", "rejected"])
        #expect(
            (0..<4).map { refused.errorCode($0) } == ["group_failed", "group_failed", "group_failed", "delete_brake"])
        let taken = try await bench.exchange((1...3).map { delete($0 + 4, $0, extra: group) })
        #expect(taken.statuses == ["applied", "applied", "applied"])
    }

    @Test("Without a declaration nothing is held up")
    func off() async throws {
        let bench = try EngineBench(.memory)
        try await bench.server.commit(to: "s") { changes in
            for number in 1...300 { changes.upsert("task", id: RecordID("\(number)")!, [:]) }
        }
        let answer = try await bench.exchange((1...300).map { delete($0, $0) })
        #expect(Set(answer.statuses) == ["applied"])
    }

    @Test("Tallies of long ago go with the devices of that time", arguments: StoreKind.allCases)
    func forgotten(kind: StoreKind) async throws {
        let bench = try await bench(kind)
        _ = try await bench.exchange(deletes(1...3))
        bench.clock += 91 * 86_400_000
        _ = try await bench.server.compact(trustingClock: true)
        #expect(try await bench.bench.read { try $0.tally(by: "ada", of: "task") } == nil)
    }

    @Test("A tally counts over a window that slides in steps, and stays small whatever the clock does")
    func tally() {
        var tally = DeleteTally(stored: [])
        let hour: Int64 = 3_600_000
        for minute in 0..<120 { tally.add(at: Int64(minute) * 60_000, within: hour) }
        #expect((60...61).contains(tally.count(at: 119 * 60_000, within: hour)))
        #expect(tally.count(at: 300 * 60_000, within: hour) == 0)
        // Put back by a little it forgets nothing; by days, what is in the future counts no more.
        #expect(tally.count(at: 90 * 60_000, within: hour) > 30)
        #expect(tally.count(at: -10 * hour, within: hour) == 0)
        #expect(DeleteTally(stored: tally.stored).count(at: 119 * 60_000, within: hour) >= 60)
        for moment in stride(from: Int64(0), to: 3_600_000, by: 700) { tally.add(at: 7_200_000 + moment, within: 1000) }
        #expect(tally.stored.count < 2000)
        #expect(DeleteTally(stored: [0xff]).count(at: 0, within: hour) == 0)
    }
}
