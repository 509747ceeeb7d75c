import Testing
import TidemarkWire

@testable import TidemarkServer

extension StoreConformanceTests {
    /// Something of each kind in the scope, by two callers.
    private func fill(_ bench: StoreBench, _ scope: Scope) async throws {
        try await bench.append(.upsert("a", #"{"n":1}"#), .event("e"), .delete("b"), to: scope)
        try await bench.append(.upsert("a", #"{"n":2}"#), to: scope, at: 2000)
        try await bench.write(scope) { writer throws in
            for principal in ["ada", "bob", "b\u{0}b"] {
                let device = DeviceName(principal: principal, client: "device-aaaa")
                try writer.store(.applied(1), .test("lane-1", of: device), 1, at: 1000)
                try writer.store(.applied(2), .test("lane-1", of: device), 2, at: 1000)
                try writer.note(DeviceStanding(version: 1, seen: 1000), of: device)
                try writer.store(tally: [1], by: principal, of: "task", at: 1000)
                let name = TemporaryName(
                    principal: principal, client: scope.name, entity: "task", id: RecordID(stringLiteral: "-1"))
                try writer.store("7", for: name, at: 1000)
                try writer.keep(
                    StoredRejection(
                        scope: scope, entity: "task", record: "a", isDelete: false, fields: [1],
                        lane: .test("lane-1", of: device), number: 3, code: "c", detail: "d", time: 1000), limit: 9)
            }
        }
    }

    /// What `fill` leaves of three callers, or of one.
    private static func kept(by callers: Int, changes: Int = 0) -> Erasure {
        var kept = Erasure()
        (kept.changes, kept.devices, kept.lanes, kept.verdicts) = (changes, callers, callers, 2 * callers)
        (kept.assignedIDs, kept.tallies, kept.rejections) = (callers, callers, callers)
        return kept
    }

    @Test(
        "A scope is marked, and all that is kept of it goes in steps; others keep theirs", arguments: StoreKind.allCases
    )
    func erased(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await fill(bench, "s")
        try await fill(bench, "other")
        let other = try await bench.read("other") { try $0.dump() }
        #expect(try await bench.read { try $0.countKept(by: nil) } == Self.kept(by: 3, changes: 4))
        let head = try await bench.state().head
        try await bench.write { writer throws in
            try writer.markErased(at: 5000)
            #expect(writer.state.erasedAt == 5000)
            try writer.markErased(at: 6000)
        }
        #expect(try await bench.state() == .erased(at: 5000, head: head + 1))
        #expect(try await bench.read { try $0.digest(of: "task") } == nil)
        #expect(try await bench.read { try $0.countKept(by: nil) } == Self.kept(by: 3, changes: 4))
        var gone = Erasure()
        var steps = 0
        while true {
            let step = try await bench.write { try $0.erase(of: nil, limit: 5) }
            guard !step.isEmpty else { break }
            #expect(step.count <= 5)
            gone.add(step)
            steps += 1
        }
        #expect(steps >= 4)
        #expect(gone == Self.kept(by: 3, changes: 4))
        #expect(try await bench.read { try $0.countKept(by: nil) } == Erasure())
        try bench.reopen()
        #expect(try await bench.state() == .erased(at: 5000, head: head + 1))
        #expect(try await bench.changes().isEmpty)
        #expect(try await bench.store.rejections(in: "s", id: nil, limit: 9).isEmpty)
        #expect(try await bench.store.rejections(in: "other", id: nil, limit: 9).count == 3)
        // But for the ids of its incarnations, which `dump()` leaves out.
        #expect(try await bench.read("other") { try $0.dump() } == other)
    }

    @Test("Everything under a caller's name goes, and nothing else", arguments: StoreKind.allCases)
    func erasedCaller(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await fill(bench, "s")
        let state = try await bench.state()
        for name in ["b\u{0}b", "bob"] {
            #expect(try await bench.read { try $0.countKept(by: name) } == Self.kept(by: 1))
            let (first, second) = try await bench.write {
                (try $0.erase(of: name, limit: 4), try $0.erase(of: name, limit: 99))
            }
            #expect(first.count == 4)
            #expect(first.count + second.count == Self.kept(by: 1).count)
            #expect(try await bench.read { try $0.countKept(by: name) } == Erasure())
        }
        #expect(try await bench.read { try $0.countKept(by: nil) } == Self.kept(by: 1, changes: 4))
        #expect(try await bench.read { try $0.countKept(by: "ada") } == Self.kept(by: 1))
        #expect(try await bench.read { try $0.countKept(by: "a") } == Erasure())
        #expect(try await bench.state() == state)
        #expect(try await bench.read { try $0.lane(.test("lane-1")) } == 2)
    }

    @Test(
        "A mark that is undone was never there; a scope that nobody wrote to can be marked",
        arguments: StoreKind.allCases)
    func eraseUndone(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await fill(bench, "s")
        let before = try await bench.store.dump()
        await #expect(throws: Undone.self) {
            try await bench.write { writer throws in
                try writer.markErased(at: 1)
                _ = try writer.erase(of: nil, limit: 9)
                throw Undone()
            }
        }
        #expect(try await bench.store.dump() == before)
        #expect(try await bench.write("new") { try $0.erase(of: nil, limit: 9) } == Erasure())
        try await bench.write("new") { try $0.markErased(at: 7) }
        #expect(try await bench.state("new") == .erased(at: 7, head: 1))
    }
}
