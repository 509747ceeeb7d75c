import Foundation
import Testing
import TidemarkCore
import TidemarkSQLite
import TidemarkTesting

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Digest")
struct DigestTests {
    private func ask(
        _ bench: Bench, scope: Scope = "s", at: String? = nil, access: Access = .read(as: "ada"),
        _ change: (inout DigestQuery) -> Void = { _ in }
    ) async throws -> String {
        var query = DigestQuery(of: scope)
        query.at = at
        change(&query)
        return String(decoding: try await bench.server.digest(query, access: access), as: UTF8.self)
    }

    /// What the answer says of the entities, as text.
    private func entities(_ text: String) -> Substring {
        text[(text.range(of: #""entities":"#)?.lowerBound ?? text.endIndex)...]
    }

    /// The digests worked out from the live rows, by the definition: no sum is kept, no order is assumed.
    private func worked(_ bench: Bench, scope: Scope = "s") async throws -> [String: EntityDigest] {
        try await bench.store.read(scope) { reader in
            var digests: [String: EntityDigest] = [:]
            for entity in reader.state.entities.all {
                var rows: [(id: String, data: DataObject)] = []
                try reader.records(of: entity, above: 0, at: nil, after: nil) { change in
                    guard change.kind == .upsert, let data = try? DataObject(stored: Array(change.payload)) else {
                        return true
                    }
                    rows.append((String(decoding: change.record, as: UTF8.self), data))
                    return true
                }
                digests[entity] = Self.digest(entity, rows)
            }
            return digests.filter { !$0.value.isEmpty }
        }
    }

    private static func digest(_ entity: String, _ rows: [(id: String, data: DataObject)]) -> EntityDigest {
        func hash(_ text: String, _ rest: some Collection<UInt8>) -> UInt64 {
            var hash = SipHash()
            hash.update(Array(text.utf8) + [0] + Array(rest))
            return hash.finish()
        }
        var fields: [String: EntityDigest.Field] = [:]
        var records: UInt64 = 0
        for row in rows {
            let number = hash(entity.lowercased(), row.id.utf8) | 1
            records &+= number
            for place in row.data.fields {
                let name = String(decoding: row.data.name(place), as: UTF8.self)
                var field = fields[name] ?? EntityDigest.Field(name.utf8)
                field.count += 1
                field.having &+= number
                let value = row.data.value(place)
                if !value.elementsEqual("null".utf8) { field.sum &+= number &* hash(name, value) }
                fields[name] = field
            }
        }
        return EntityDigest(fields: Array(fields.values), count: Int64(rows.count), records: records)
    }

    private func kept(_ bench: Bench, scope: Scope = "s") async throws -> [String: EntityDigest] {
        try await bench.store.read(scope) { reader in
            var digests: [String: EntityDigest] = [:]
            for entity in reader.state.entities.all {
                digests[entity] = try reader.digest(of: entity).map { try EntityDigest(kept: $0) }
            }
            return digests.filter { !$0.value.isEmpty }
        }
    }

    private static let values: [Value] = [
        .null, 0, 1, -1, .integer(.max), .integer(.min), .integer(1 << 53), 0.0, .real(-0.0), 1.5, .real(.infinity),
        .real(.leastNonzeroMagnitude), .real(1e300), "", "plain", "two\nlines \"quoted\" \\", "nul\u{0}inside", "é",
        "e\u{301}", "😀",
        .blob([]), .blob([0, 255, 128]), "null", "{}",
    ]

    @Test("The kept sums are those of the live rows, whatever became of them", arguments: 1...8 as ClosedRange<UInt64>)
    func history(seed: UInt64) async throws {
        let bench = try Bench(entities: [.state("task"), .state("note", conflict: .lastWriteWins), .events("audit")])
        var dice = SplitMix64(seed: seed)
        var numbers: [String: Int] = [:]
        var marks: [(since: String, text: String)] = []
        for step in 0..<150 {
            let entity = dice.pick(["task", "note", "project"])
            let id = dice.pick(["a", "b", "c", "é", "1", "[1,2]"])
            let fields = dice.pick(["title", "done", "weird \"name\"", "x"])
            let base = dice.chance(60) ? bench.clock : nil
            switch dice.below(8) {
            case 0...3:
                let lane = dice.pick(["lane-aaaa", "lane-bbbb"])
                numbers[lane, default: 0] += 1
                var object = DataObject.Builder()
                object.append(fields, dice.pick(Self.values))
                if dice.chance(50) { object.append("other", dice.pick(Self.values)) }
                let data = String(decoding: object.finish().bytes, as: UTF8.self)
                _ = try await bench.exchange([
                    upsert(numbers[lane] ?? 0, id, data, base: base, entity: entity, lane: lane)
                ])
            case 4: try await bench.server.commit(to: "s") { $0.delete(entity, id: RecordID(id)!) }
            case 5:
                try await bench.server.commit(to: "s") { changes in
                    for id in ["a", "b"] { changes.upsert(entity, id: RecordID(id)!, [fields: dice.pick(Self.values)]) }
                    changes.delete(entity, id: "a")
                    changes.upsert(entity, id: "a", ["title": "anew"])
                    changes.upsert("audit", id: RecordID("e\(step)")!, ["what": 1])
                }
            case 6: try await bench.server.commit(to: "other") { $0.upsert(entity, id: RecordID(id)!, ["o": 1]) }
            default:
                if dice.chance(20) { try bench.reopen() }
                if step == 100 { _ = try await bench.server.sweep() }
            }
            if step % 7 == 3 {
                // The second member names a record that was never there, so that neither has an effect.
                let number = numbers["lane-cccc", default: 0]
                numbers["lane-cccc"] = number + 2
                let group = #","group":"g\#(step)""#
                _ = try await bench.exchange([
                    upsert(number + 1, id, #"{"title":"undone"}"#, entity: entity, lane: "lane-cccc", extra: group),
                    upsert(number + 2, "never", "{}", base: 1, entity: entity, lane: "lane-cccc", extra: group),
                ])
            }
            bench.clock += 1
            if step % 10 == 0, let since = try await bench.pullAll().nextSince {
                marks.append((since, try await ask(bench)))
            }
        }
        #expect(try await kept(bench) == worked(bench), "seed \(seed)")
        #expect(try await kept(bench, scope: "other") == worked(bench, scope: "other"), "seed \(seed)")
        for mark in marks {
            #expect(entities(try await ask(bench, at: mark.since)) == entities(mark.text), "seed \(seed)")
        }
    }

    @Test("A digest reads a bounded number of bytes: computed back it is refused, a range goes on (I14)")
    func bytes() async throws {
        var limits = Limits()
        limits.digestBytes = 3000
        let bench = try Bench(limits: limits)
        let text = Value.text(String(repeating: "x", count: 1000))
        func write(_ ids: ClosedRange<Int>, _ value: Value) async throws {
            try await bench.server.commit(to: "s") { changes in
                for id in ids { changes.upsert("task", id: RecordID("\(id)")!, ["n": value]) }
            }
        }
        try await write(1...9, text)
        let since = try #require(try await bench.pullAll().nextSince)
        let then = try await ask(bench, at: since)
        try await write(1...1, 1)
        #expect(try await ask(bench, at: since) == then)
        try await write(2...4, 1)
        #expect(await problem { _ = try await ask(bench, at: since) }?.code == .digestUnavailable)
        var (count, after, requests): (Int64, String?, Int) = (0, nil, 0)
        while true {
            let answer = try await parts(bench, after: after, every: 100)
            count += answer.parts.reduce(0) { $0 + $1.count }
            requests += 1
            guard answer.hasMore else { break }
            after = try #require(answer.parts.last?.through)
        }
        #expect(count == 9 && requests == 2)
    }

    @Test(
        "As of a checkpoint the digest is what it was then, while the window and the limit hold",
        arguments: WindowEnd.allCases)
    func rewound(end: WindowEnd) async throws {
        var limits = Limits()
        limits.digestRewind = 3
        let bench = try Bench(limits: limits)
        try await bench.server.commit(to: "s") { changes in
            for id in ["a", "b", "c"] { changes.upsert("task", id: RecordID(id)!, ["n": 1]) }
        }
        let since = try #require(try await bench.pullAll().nextSince)
        let then = try await ask(bench, at: since)
        #expect(then.contains(#""version":3,"entities":{"task":{"count":3,"#))
        try await bench.server.commit(to: "s") { changes in
            changes.upsert("task", id: "a", ["n": 2])
            changes.delete("task", id: "b")
            changes.upsert("task", id: "d", ["m": 1])
        }
        #expect(try await entities(ask(bench)) != entities(then))
        #expect(try await ask(bench, at: since) == then)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "a", ["n": 3]) }
        #expect(try await ask(bench, at: since) == then)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "e", ["n": 3]) }
        #expect(await problem { _ = try await ask(bench, at: since) }?.code == .digestUnavailable)

        let fresh = try #require(try await bench.pullAll().nextSince)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "a", ["n": 4]) }
        try await bench.endWindow(end)
        #expect(await problem { _ = try await ask(bench, at: fresh) }?.code == .digestUnavailable)
        let range = await problem { _ = try await ask(bench, at: fresh) { $0.entity = "task" } }
        #expect(range?.code == .digestUnavailable)
        #expect(await problem { _ = try await ask(bench, at: "garbage") }?.code == .invalidCheckpoint)
    }

    private func parts(
        _ bench: Bench, at: String? = nil, after: String? = nil, through: String? = nil, every: Int64? = nil,
        fields: [String] = ["n"]
    ) async throws -> (parts: [DigestPart], hasMore: Bool) {
        var query = DigestQuery(of: "s")
        (query.at, query.entity, query.after, query.through) = (at, "task", after, through)
        (query.every, query.fields) = (every, fields)
        let bytes = try await bench.server.digest(query, access: .read(as: "ada"))
        let object = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
        let elements = object?["parts"] as? [Any] ?? []
        let parts = try elements.map { element in
            try [UInt8](JSONSerialization.data(withJSONObject: element)).withUnsafeBytes { buffer in
                var reader = JSONReader(buffer)
                return try DigestPart(from: &reader)
            }
        }
        return (parts, object?["hasMore"] as? Bool ?? false)
    }

    private func filled(_ limits: Limits = Limits()) async throws -> Bench {
        let bench = try Bench(entities: [.events("audit"), .state("log", direction: .push)], limits: limits)
        try await bench.server.commit(to: "s") { changes in
            // In text order 10 stands before 9.
            for id in 1...20 {
                changes.upsert(
                    "task", id: RecordID(String(id))!, id % 2 == 0 ? ["n": .integer(Int64(id))] : ["m": "x"])
            }
            changes.upsert("audit", id: "e1", ["what": "x"])
            changes.upsert("log", id: "l1", ["line": "x"])
            changes.delete("task", id: "13")
        }
        return bench
    }

    @Test("A key range is cut into parts that add up to the whole", arguments: [1, 3, 7, 19, 100] as [Int64])
    func ranges(every: Int64) async throws {
        let bench = try await filled()
        let whole = try #require(try await worked(bench)["task"])
        let (parts, hasMore) = try await parts(bench, every: every, fields: ["n", "m", "absent"])
        #expect(!hasMore)
        let full = Int(19 / every)
        #expect(parts.count == full + 1)
        #expect(parts.last?.through == nil)
        let count = parts.map(\.count).reduce(0, +)
        let records: UInt64 = parts.map(\.records).reduce(0, &+)
        let sum: UInt64 = parts.map(\.sum).reduce(0, &+)
        let expected: [UInt64] = ["n", "m"].map { whole[$0.utf8]?.sum ?? 0 }
        #expect(count == 19)
        #expect(records == whole.records)
        #expect(sum == expected[0] &+ expected[1])
        for part in parts where part.count > 0 {
            let absent = part.having.first { $0.field == Array("absent".utf8) }
            #expect(absent?.sum == 0)
        }
        guard every == 1 else { return }
        let ids: [String?] = (1...20).map { String($0) }.filter { $0 != "13" }.sorted()
        #expect(parts.dropLast().map(\.through) == ids)
    }

    @Test("A range lies behind `after`, up to and with `through`, as of a checkpoint; a long one goes on")
    func bounds() async throws {
        var limits = Limits()
        limits.digestScan = 4
        limits.digestParts = 3
        let bench = try await filled(limits)
        let since = try await bench.pullAll().nextSince
        let (some, _) = try await parts(bench, after: "11", through: "15", every: 1)
        #expect(some.map(\.through) == ["12", "14", "15", "15"])
        #expect(some.map(\.count) == [1, 1, 1, 0])
        #expect(try await parts(bench, after: "15", through: "15").parts.map(\.count) == [0])
        #expect(try await parts(bench, after: "1x", through: "1y").parts.map(\.through) == ["1y"])
        let one = try await parts(bench)
        #expect(one.hasMore && one.parts.map(\.count) == [4])
        for every in 1...5 as ClosedRange<Int64> {
            var (count, after, requests): (Int64, String?, Int) = (0, nil, 0)
            while true {
                let answer = try await parts(bench, after: after, every: min(every, 4))
                count += answer.parts.reduce(0) { $0 + $1.count }
                requests += 1
                guard answer.hasMore else { break }
                after = try #require(answer.parts.last?.through)
            }
            #expect(count == 19)
            #expect(requests >= 5)
        }
        let before = try await parts(bench, at: since, after: "1", through: "14", every: 1)
        try await bench.server.commit(to: "s") { changes in
            changes.upsert("task", id: "12", ["n": 0])
            changes.delete("task", id: "14")
            changes.upsert("task", id: "13", ["n": 0])
        }
        let then = try await parts(bench, at: since, after: "1", through: "14", every: 1)
        #expect(then.parts == before.parts)
        #expect(try await parts(bench, after: "1", through: "14", every: 1).parts != before.parts)
    }

    @Test("Events and what is only pushed are left out, and the answer says so")
    func leftOut() async throws {
        let bench = try await filled()
        let text = try await ask(bench)
        #expect(text.hasSuffix(#","leftOut":{"audit":"events","log":"push"}}"#))
        #expect(entities(text).hasPrefix(#""entities":{"task":"#))
        #expect(await problem { _ = try await ask(bench) { $0.entity = "audit" } }?.code == .notFound)
        #expect(await problem { _ = try await ask(bench) { $0.entity = "log" } }?.code == .notFound)
        let service = Access(.read, principal: "ops", isService: true)
        #expect(try await ask(bench, access: service).contains(#""log":{"count":1"#))
    }

    @Test("Questions outside the limits and the permission are refused")
    func refused() async throws {
        let bench = try await filled()
        func code(_ change: @escaping (inout DigestQuery) -> Void) async -> ProblemCode? {
            await problem {
                _ = try await ask(bench) {
                    $0.entity = "task"
                    change(&$0)
                }
            }?.code
        }
        #expect(await code { $0.every = 0 } == .limitOutOfRange)
        #expect(await code { $0.every = 100_001 } == .limitOutOfRange)
        #expect(await code { $0.fields = Array(repeating: "a", count: 501) } == .limitOutOfRange)
        #expect(await code { $0.entity = "no entity " } == .invalidIdentifier)
        #expect(await code { $0.after = "" } == .invalidIdentifier)
        #expect(await code { $0.through = "\u{7}" } == .invalidIdentifier)
        #expect(await code { $0.entity = "unheard" } == nil)
        #expect(await problem { _ = try await ask(bench, access: .none) }?.code == .scopeForbidden)
        #expect(try await ask(bench, scope: "empty").contains(#""version":0,"entities":{},"#))
    }

    @Test("An entity that held events once has the sums of its records")
    func formerEvents() async throws {
        let bench = try Bench()
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "a", ["n": 1]) }
        let other = SyncServer(store: bench.store, entities: [.events("task")], configuration: .still)
        _ = try? await other.commit(to: "s") { $0.upsert("task", id: "b", ["n": 1]) }
        try await bench.server.commit(to: "s") { changes in
            changes.upsert("task", id: "a", ["n": 2])
            changes.upsert("task", id: "b", ["n": 2])
        }
        #expect(try await kept(bench) == worked(bench))
    }
}
