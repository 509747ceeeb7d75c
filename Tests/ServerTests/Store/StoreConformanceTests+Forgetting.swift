import Testing
import TidemarkWire

@testable import TidemarkServer

extension StoreConformanceTests {
    @Test(
        "Devices and lanes of before a moment are counted and forgotten, some at a time", arguments: StoreKind.allCases)
    func forgotten(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.append(.upsert("a"))
        let devices = (1...5).map { DeviceName.test("device-\($0)") }
        try await bench.write { writer throws in
            for (index, device) in devices.enumerated() {
                try writer.note(DeviceStanding(version: 1, seen: Int64(index + 1) * 10), of: device)
                // Nobody has heard of these but as lanes.
                try writer.store(
                    .applied(1), .test("lane", of: .test("unknown-\(index)")), 1, at: Int64(index + 1) * 10)
            }
        }
        #expect(try await pair(bench.read { try $0.unheard(devicesBefore: 40, lanesBefore: 30) }) == [3, 2])
        try await bench.write { writer throws in
            #expect(try pair(writer.forget(devicesBefore: 40, lanesBefore: 30, limit: 2)) == [2, 2])
            #expect(try pair(writer.forget(devicesBefore: 40, lanesBefore: 30, limit: 2)) == [1, 0])
            #expect(try pair(writer.unheard(devicesBefore: 40, lanesBefore: 30)) == [0, 0])
        }
        try await bench.read { reader throws in
            #expect(try devices.map { try reader.standing(of: $0) != nil } == [false, false, false, true, true])
            #expect(try (0..<5).map { try reader.lane(.test("lane", of: .test("unknown-\($0)"))) } == [0, 0, 1, 1, 1])
        }
        #expect(try await pair(bench.read { try $0.unheard(devicesBefore: 50, lanesBefore: .min) }) == [1, 0])
    }

    @Test("With a device go its verdicts; its lanes age from when it was last heard of", arguments: StoreKind.allCases)
    func forgottenLanes(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let (old, new) = (LaneName.test("lane-old"), LaneName.test("lane-new"))
        let other = LaneName.test("lane", of: .test("device-bbbb"))
        try await bench.write { writer throws in
            try writer.store(.applied(1), old, 1, at: 10)
            try writer.store(.applied(2), new, 2, at: 200)
            try writer.store(.applied(3), other, 3, at: 10)
            try writer.note(DeviceStanding(version: nil, seen: 100), of: .test)
            try writer.note(DeviceStanding(version: nil, seen: 500), of: .test("device-bbbb"))
        }
        // A known device's lanes do not age.
        #expect(try await pair(bench.read { try $0.unheard(devicesBefore: 0, lanesBefore: 300) }) == [0, 0])
        #expect(
            try await pair(bench.write { try $0.forget(devicesBefore: 101, lanesBefore: 100, limit: 9) }) == [1, 0])
        try await bench.read { reader throws in
            #expect(try reader.standing(of: .test) == nil)
            #expect(try [reader.lane(old), reader.lane(new), reader.lane(other)] == [1, 2, 3])
            #expect(try reader.verdict(old, 1) == nil)
            #expect(try reader.verdict(new, 2) == nil)
            #expect(try reader.verdict(other, 3) == .applied(3))
            #expect(try reader.lanes(of: .test, limit: 9).map(\.lane) == ["lane-new", "lane-old"])
        }
        #expect(try await pair(bench.read { try $0.unheard(devicesBefore: 0, lanesBefore: 101) }) == [0, 1])
        #expect(try await pair(bench.write { try $0.forget(devicesBefore: 0, lanesBefore: 200, limit: 9) }) == [0, 1])
        #expect(try await bench.read { [try $0.lane(old), try $0.lane(new)] } == [0, 2])
        #expect(try await pair(bench.write { try $0.forget(devicesBefore: 0, lanesBefore: 201, limit: 9) }) == [0, 1])
        #expect(try await bench.read { [try $0.lane(old), try $0.lane(new)] } == [0, 0])
        // Its lanes may begin anew.
        try await bench.write { try $0.store(.applied(1), old, 1, at: 900) }
        #expect(try await bench.read { try $0.verdict(old, 1) } == .applied(1))
    }

    @Test("A lane that was used in the same write is not old", arguments: StoreKind.allCases)
    func usedAgain(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.write { try $0.store(.applied(1), .test, 1, at: 10) }
        try await bench.write { writer throws in
            try writer.store(.applied(2), .test, 2, at: 100)
            #expect(try pair(writer.unheard(devicesBefore: 0, lanesBefore: 50)) == [0, 0])
            #expect(try pair(writer.forget(devicesBefore: 0, lanesBefore: 50, limit: 9)) == [0, 0])
            try writer.store(.applied(3), .test, 3, at: 100)
        }
        #expect(try await bench.read { try $0.lane(.test) } == 3)
        #expect(try await bench.read { try $0.verdict(.test, 2) } == .applied(2))
    }

    @Test(
        "The id behind a temporary id is remembered as long as its device is, anywhere", arguments: StoreKind.allCases
    )
    func aliasesForgotten(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let names = ["device-1", "device-2", "device-3", "device-4"].map {
            TemporaryName(principal: "ada", client: $0, entity: "task", id: "-1")
        }
        try await bench.write { writer throws in
            for name in names { try writer.store("7", for: name, at: name.client == "device-4" ? 100 : 10) }
            try writer.note(DeviceStanding(version: 1, seen: 1), of: .test("device-1"))
        }
        try await bench.write("other") { writer throws in
            try writer.store(.applied(1), .test("lane", of: .test("device-2")), 1, at: 500)
        }
        @Sendable func known(_ reader: any ScopeReader) throws -> [Bool] {
            try names.map { try reader.id(for: $0) == "7" }
        }
        // 1 is known as a device, 2 by a lane of another scope, 3 by nothing, and 4 by nothing but not for long yet.
        _ = try await bench.write { try $0.forget(devicesBefore: 0, lanesBefore: 10, limit: 9) }
        #expect(try await bench.read { try known($0) } == [true, true, true, true])
        _ = try await bench.write { try $0.forget(devicesBefore: 0, lanesBefore: 100, limit: 9) }
        #expect(try await bench.read { try known($0) } == [true, true, false, true])
        _ = try await bench.write { try $0.forget(devicesBefore: 99, lanesBefore: 101, limit: 9) }
        #expect(try await bench.read { try known($0) } == [false, true, false, false])
    }
}
