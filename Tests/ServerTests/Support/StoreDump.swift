import TidemarkTesting
import TidemarkWire

@testable import TidemarkServer

/// The names that scripts and dumps of stores use: few, so that they meet often.
enum StoreNames {
    static let scopes: [Scope] = ["s", "s:2", "A"]
    static let entities = ["task", "note", "audit"]
    static let records: [RecordID] = ["a", "B", "b", "10", "9", "\u{e9}", "e\u{301}", "😀"]
    static let devices = [
        DeviceName(principal: "ada", client: "device-aaaa"), DeviceName(principal: "ada", client: "device-bbbb"),
        DeviceName(principal: "\u{e9}mile", client: "device-aaaa"),
        DeviceName(principal: "e\u{301}mile", client: "device-aaaa"),
        DeviceName(principal: "ada\u{0}", client: "device-aaaa"),
    ]
    static let lanes = devices.flatMap { [LaneName.test("lane-1", of: $0), LaneName.test("lane-2", of: $0)] }
    static let temporaries: [TemporaryName] = devices.flatMap { device in
        (["-1", "-2", "tmp_a"] as [RecordID]).map {
            TemporaryName(principal: device.principal, client: device.client, entity: "task", id: $0)
        }
    }
    /// The highest number that an operation of a script has.
    static let lastNumber: Int64 = 12
}

extension ScopeReader {
    /// Everything that can be seen of a scope through the seam, but the random ids of its incarnations.
    func dump() throws -> [String] {
        var lines = [
            "head \(state.head), swept \(state.sweepFloor), expired \(state.retentionFloor)",
            "incarnations at \(state.incarnations.map(\.start))", "entities \(state.entities.all)",
            "size \(state.size), superseded \(state.superseded)",
            "slowest \(try slowest() ?? -1)",
        ]
        for horizon in horizons {
            lines.append("at \(horizon): \(try seen(after: 0, through: horizon, tombstonesAfter: 0).map(\.version))")
            lines.append("aged \(try aged(after: 0, through: horizon, before: .max, limit: 7))")
        }
        lines += try seen(after: 0, through: state.head, tombstonesAfter: 0).map(\.description)
        for entity in StoreNames.entities {
            lines.append("digest of \(entity): \(try digest(of: entity) ?? [])")
            lines.append(
                "deletes of \(entity): \(try ["ada", "e\u{301}"].map { try tally(by: $0, of: entity) ?? [] })")
            for (base, horizon) in [(0, nil), (0, state.head / 2), (state.head / 3, nil)] as [(Version, Version?)] {
                let seen = try seen(of: entity, above: base, at: horizon).map(\.version)
                lines.append("\(entity) above \(base) at \(horizon ?? -1): \(seen)")
            }
            for record in StoreNames.records {
                lines.append("\(entity)/\(record.bytes): \(try dump(of: record, in: entity))")
            }
        }
        for device in StoreNames.devices {
            let lanes = try lanes(of: device, limit: 9).map { "\($0.lane) \($0.number)" }
            let name = Array(device.principal.utf8)
            lines.append("\(name) \(device.client): \(lanes) \(try standing(of: device).map { "\($0)" } ?? "")")
            lines.append("told: \(try report(of: device).map { "\($0)" } ?? "")")
        }
        for lane in StoreNames.lanes {
            for number in 1...StoreNames.lastNumber {
                guard let verdict = try verdict(lane, number) else { continue }
                lines.append("\(Array(lane.principal.utf8)) \(lane) \(number): \(verdict)")
            }
        }
        return try lines
            + StoreNames.temporaries.map { "\($0): \(try id(for: $0)?.bytes ?? [])" }
    }

    /// Some versions from first to last: of a long history not all.
    private var horizons: StrideThrough<Version> { stride(from: 0, through: state.head, by: Int(1 + state.head / 9)) }

    private func dump(of record: RecordID, in entity: String) throws -> String {
        var visited: [String] = []
        try newest(entity: entity, record: record) { change in
            SeenChange(change).map { visited.append($0.description) }
        }
        let newest = try newest(entity: entity, record: record).map { "\($0)" } ?? ""
        let rows = try horizons.map { try row(entity: entity, record: record, at: $0)?.version ?? 0 }
        let place = try assignment(of: record, entity: entity).map { "\($0)" } ?? ""
        return "\(visited) \(newest) \(rows) \(place)"
    }
}

extension RecordID {
    fileprivate var bytes: [UInt8] { Array(text.utf8) }
}

extension ChangeStore {
    /// Everything that can be seen of a store through the seam, but its token key and the ids of its incarnations.
    func dump() async throws -> [String] {
        var lines = [
            "scopes \(try await scopes(after: nil, limit: 99))", "age clock \(try await ageClock() ?? -1)",
        ]
        lines += try await rejections(in: nil, id: nil, limit: 99).map { "\($0)" }
        for order in FleetQuery.Order.allCases {
            var query = FleetQuery()
            (query.order, query.limit) = (order, 5)
            let page = try await devices(query)
            lines += ["\(order): \(page.total) devices"] + page.devices.map { "\($0)" }
            (query.hasTrouble, query.leastBehind, query.principal) = (true, 2, "ada")
            lines += try await devices(query).devices.map { "\($0)" }
        }
        for scope in StoreNames.scopes { lines += try await read(scope) { ["— \(scope)"] + (try $0.dump()) } }
        return lines
    }
}
