import Foundation
import Testing
import TidemarkWire

@testable import TidemarkServer

extension StoreConformanceTests {
    @Test(
        "A lane comes as far as it was last stored, and keeps its mark without its verdicts",
        arguments: StoreKind.allCases)
    func lanes(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let verdict = StoredVerdict(
            digest: [9, 0, 255], members: Array("{}".utf8), version: nil, baseNumber: 3, tookEffect: false)
        try await bench.write { writer throws in
            for number in 1...4 as ClosedRange<Int64> { try writer.store(.applied(number), .test, number, at: 10) }
            try writer.store(verdict, .test, 7, at: 20)
        }
        try await bench.write { try $0.forgetVerdicts(.test, through: 3) }
        try await bench.read { reader throws in
            #expect(try reader.lane(.test) == 7)
            #expect(
                try (1...8).map { try reader.verdict(.test, $0) != nil } == [
                    false, false, false, true, false, false, true, false,
                ])
            #expect(try reader.verdict(.test, 4) == .applied(4))
            #expect(try reader.verdict(.test, 7) == verdict)
            #expect(try reader.lane(.test("lane-bbbb")) == 0)
        }
        try await bench.write { try $0.forgetVerdicts(.test, through: 9) }
        #expect(try await bench.read { try $0.lane(.test) } == 7)
        #expect(try await bench.read("other") { try $0.lane(.test) } == 0)
    }

    @Test("Names that only begin alike are not one, whatever stands in them", arguments: StoreKind.allCases)
    func wholeNames(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let names = ["ada", "ada\u{0}", "ada\u{0}b", "ada'--", "", "\u{0}"]
        let devices = names.map { DeviceName(principal: $0, client: "device-aaaa") }
        let temporaries = names.map {
            TemporaryName(principal: $0, client: "device-aaaa", entity: "task", id: "local-1")
        }
        try await bench.write { writer throws in
            for (index, device) in devices.enumerated() {
                let number = Int64(index + 1)
                try writer.store(.applied(number), .test("lane-1", of: device), number, at: 10)
                try writer.note(DeviceStanding(version: number, seen: 10), of: device)
                try writer.store(RecordID("r\(index)")!, for: temporaries[index], at: 10)
                var rejection = StoredRejection.test("s", number: number)
                (rejection.lane.principal, rejection.detail) = (device.principal, "\(device.principal) may not.")
                try writer.keep(rejection, limit: 10)
            }
        }
        let rejections = try await bench.store.rejections(in: "s", id: nil, limit: 10).reversed()
        #expect(rejections.map(\.lane.principal) == names)
        #expect(rejections.map(\.detail) == names.map { "\($0) may not." })
        try await bench.read { reader throws in
            #expect(try devices.map { try reader.lane(.test("lane-1", of: $0)) } == Array(1...6))
            #expect(try devices.map { try reader.lanes(of: $0, limit: 9).count } == [1, 1, 1, 1, 1, 1])
            #expect(try devices.map { try reader.standing(of: $0)?.version } == Array(1...6))
            #expect(try temporaries.map { try reader.id(for: $0)?.text } == (0..<6).map { "r\($0)" })
        }
        let gone = try await bench.write { pair(try $0.forget(devicesBefore: 11, lanesBefore: 11, limit: 10)) }
        #expect(gone == [6, 6])
        #expect(try await bench.read { reader in try temporaries.allSatisfy { try reader.id(for: $0) == nil } })
    }

    @Test("A device's lanes come the last used first, and no more than asked for", arguments: StoreKind.allCases)
    func laneOrder(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        for (lane, moment) in [("lane-1", 10), ("lane-2", 30), ("lane-3", 20), ("lane-4", 5)] as [(String, Int64)] {
            try await bench.write { try $0.store(.applied(1), .test(lane), moment, at: moment) }
        }
        try await bench.write { try $0.store(.applied(1), .test("lane-x", of: .test("device-bbbb")), 1, at: 99) }
        @Sendable func lanes(_ limit: Int, _ reader: any ScopeReader) throws -> [String] {
            try reader.lanes(of: .test, limit: limit).map { "\($0.lane) \($0.number)" }
        }
        try await bench.read { reader throws in
            #expect(try lanes(9, reader) == ["lane-2 30", "lane-3 20", "lane-1 10", "lane-4 5"])
            #expect(try lanes(2, reader) == ["lane-2 30", "lane-3 20"])
        }
        try await bench.write { writer throws in
            try writer.store(.applied(1), .test("lane-1"), 40, at: 40)
            try writer.store(.applied(1), .test("lane-5"), 1, at: 25)
            #expect(try lanes(3, writer) == ["lane-1 40", "lane-2 30", "lane-5 1"])
        }
        #expect(try await bench.read { try lanes(3, $0) } == ["lane-1 40", "lane-2 30", "lane-5 1"])
    }

    @Test("Names are what their bytes are: nobody speaks for one who is written alike", arguments: StoreKind.allCases)
    func names(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let (one, two) = (StoreNames.devices[2], StoreNames.devices[3])
        #expect(one.principal == two.principal)
        #expect(one != two)
        let (first, second) = (LaneName.test("lane-1", of: one), LaneName.test("lane-1", of: two))
        let temporaries = [one, two].map {
            TemporaryName(principal: $0.principal, client: $0.client, entity: "task", id: "-1")
        }
        try await bench.write { writer throws in
            try writer.store(.applied(1), first, 1, at: 10)
            #expect(try writer.lane(second) == 0)
            try writer.store(.applied(2), second, 1, at: 10)
            try writer.store("7", for: temporaries[0], at: 10)
            try writer.store("8", for: temporaries[1], at: 10)
            try writer.note(DeviceStanding(version: 1, seen: 1), of: one)
            #expect(try writer.standing(of: two) == nil)
        }
        try await bench.read { reader throws in
            #expect(try reader.verdict(first, 1) == .applied(1))
            #expect(try reader.verdict(second, 1) == .applied(2))
            #expect(try temporaries.map { try reader.id(for: $0) } == ["7", "8"])
        }
    }

    @Test("Of a caller's devices those stay that spoke last; lanes stay all", arguments: StoreKind.allCases)
    func fewDevices(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let devices = (1...4).map { DeviceName.test("device-\($0)") }
        let other = DeviceName(principal: "eve", client: "device-1")
        let lane = devices[0].lane("lane-aaaa")
        try await bench.append(.upsert("a"))
        try await bench.write { writer throws in
            try writer.store(.applied(1), lane, 1, at: 10)
            try writer.note(DeviceStanding(version: 1, seen: 1), of: other)
            for (seen, device) in devices.enumerated() {
                try writer.note(DeviceStanding(version: 1, seen: Int64(10 + seen)), of: device)
            }
        }
        // The first speaks again: the second is silent for longest.
        try await bench.write { writer throws in
            try writer.note(DeviceStanding(version: 1, seen: 20), of: devices[0])
            try writer.forgetDevices(beyond: 2, besides: devices[0])
        }
        let known = try await bench.read { reader in try (devices + [other]).map { try reader.standing(of: $0) != nil }
        }
        #expect(known == [true, false, false, true, true])
        try await bench.write { try $0.forgetDevices(beyond: 1, besides: devices[3]) }
        try await bench.read { reader throws in
            #expect(try reader.standing(of: devices[0]) == nil && reader.standing(of: other) != nil)
            // Its verdicts are gone, and its numbers are used all the same.
            #expect(try reader.verdict(lane, 1) == nil)
            #expect(try reader.lane(lane) == 1)
        }
    }

    @Test(
        "A device is known from its last word on, and keeps its version without a new one",
        arguments: StoreKind.allCases)
    func devices(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let (one, two, three) = (DeviceName.test("device-1"), DeviceName.test("device-2"), DeviceName.test("device-3"))
        try await bench.append(.upsert("a"))
        try await bench.write { writer throws in
            try writer.note(DeviceStanding(version: nil, seen: 10), of: one)
            #expect(try writer.slowest() == nil)
            try writer.note(DeviceStanding(version: 7, seen: 20), of: two)
            try writer.note(DeviceStanding(version: 5, seen: 30), of: three)
        }
        try await bench.write { try $0.note(DeviceStanding(version: nil, seen: 40), of: two) }
        try await bench.read { reader throws in
            #expect(try reader.standing(of: one) == DeviceStanding(version: nil, seen: 10))
            #expect(try reader.standing(of: two) == DeviceStanding(version: 7, seen: 40))
            #expect(try reader.slowest() == 5)
        }
        // A device that was restored holds on to less than before.
        try await bench.write { try $0.note(DeviceStanding(version: 2, seen: 50), of: two) }
        #expect(try await bench.read { try $0.slowest() } == 2)
        #expect(try await bench.read("other") { try $0.slowest() } == nil)
    }

    @Test(
        "The rows that a device holds by verdicts are kept until it shows a checkpoint", arguments: StoreKind.allCases)
    func oldestVerdict(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.append(.upsert("a"))
        func noted(_ standing: DeviceStanding) async throws -> DeviceStanding? {
            try await bench.write { try $0.note(standing, of: .test) }
            return try await bench.read { try $0.standing(of: .test) }
        }
        #expect(try await noted(DeviceStanding(version: nil, seen: 1, oldest: 9))?.oldest == 9)
        #expect(try await noted(DeviceStanding(version: nil, seen: 2, oldest: 4))?.oldest == 4)
        let later = try await noted(DeviceStanding(version: nil, seen: 3))
        #expect(later == DeviceStanding(version: nil, seen: 3, oldest: 4))
        #expect(try await bench.read { try $0.slowest() } == nil)
        let whole = try await noted(DeviceStanding(version: 7, seen: 4))
        #expect(whole == DeviceStanding(version: 7, seen: 4))
        let anew = try await noted(DeviceStanding(version: nil, seen: 5, oldest: 3))
        #expect(anew == DeviceStanding(version: 7, seen: 5, oldest: 3))
    }

    @Test(
        "A remedy for a device stays where the rest changes, is undone with its write, and goes with the device",
        arguments: StoreKind.allCases)
    func remedy(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let first = KeptRemedy(number: 7, remedy: .stop(message: "é"), asked: Date(milliseconds: 5))
        // A device that is not remembered is asked for nothing.
        try await bench.append(.upsert("a"))
        try await bench.write { try $0.note(first, of: .test) }
        #expect(try await bench.read { try $0.standing(of: .test) } == nil)
        try await bench.write { writer in
            try writer.note(DeviceStanding(version: 1, seen: 1), of: .test)
            try writer.note(first, of: .test)
            try writer.note(DeviceStanding(version: 1, seen: 2), of: .test)
        }
        #expect(try await bench.read { try $0.standing(of: .test)?.remedy } == first)
        #expect(try await bench.store.devices(FleetQuery()).devices.map(\.remedy) == [first])
        try await bench.write { writer in
            let second = KeptRemedy(number: 8, remedy: .clear, asked: Date(milliseconds: 6))
            writer.attemptInVain { try writer.note(second, of: .test) }
        }
        #expect(try await bench.read { try $0.standing(of: .test)?.remedy } == first)
        try await bench.write { writer in
            _ = try writer.forget(devicesBefore: .max, lanesBefore: 0, limit: 9)
            try writer.note(DeviceStanding(version: 1, seen: 3), of: .test)
        }
        #expect(try await bench.read { try $0.standing(of: .test) } == DeviceStanding(version: 1, seen: 3))
    }
}
