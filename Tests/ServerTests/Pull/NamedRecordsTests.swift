import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Records by name")
struct NamedRecordsTests {
    private func ask(
        _ bench: Bench, _ ids: [String], entity: String = "task", follow: [String] = [], since: String? = nil,
        access: Access = .read(as: "ada")
    ) async throws -> (answer: Answer, text: String) {
        var named = NamedRecords(of: entity, in: "s", ids: ids)
        named.follow = follow
        named.since = since
        let bytes = try await bench.server.records(named, access: access)
        return (try Answer(bytes), String(decoding: bytes, as: UTF8.self))
    }

    private func filled(limits: Limits = Limits()) async throws -> Bench {
        let bench = try Bench(entities: [.events("audit")], limits: limits)
        try await bench.server.commit(to: "s") { changes in
            changes.upsert("project", id: "p1", ["name": "one"])
            changes.upsert("project", id: "7", ["name": "seven"])
            changes.upsert("task", id: "t1", ["title": "a", "project_id": "p1", "owner": "u1"])
            changes.upsert("task", id: "t2", ["title": "b", "project_id": 7])
            changes.upsert("task", id: "t3", ["title": "c", "project_id": nil])
            changes.upsert("task", id: "t4", ["title": "d", "project_id": 1.5])
            changes.upsert("audit", id: "e1", ["what": "x"])
        }
        try await bench.server.commit(to: "s") { $0.delete("task", id: "t3") }
        return bench
    }

    @Test("Live rows, tombstones and what there is not, in the order of the question, as of one version")
    func named() async throws {
        let bench = try await filled()
        let (answer, text) = try await ask(bench, ["t2", "t3", "t9", "t1", "t2"])
        #expect(answer.changes.map(\.id) == ["t2", "t3", "t9", "t1"])
        #expect(answer.changes.map(\.type) == ["upsert", "delete", "none", "upsert"])
        #expect(answer.changes.map(\.version) == [4, 8, 8, 3])
        #expect(answer.changes[0].data == ["title": "b", "project_id": 7])
        #expect(answer.head == 8)
        #expect(!answer.hasMore)
        #expect(text.contains(#""scope":"s","since":null,"epoch":""#))
        #expect(try await ask(bench, ["e1"], entity: "audit").answer.changes.map(\.type) == ["event"])
        #expect(try await ask(bench, ["t1"], entity: "nothing").answer.changes.map(\.type) == ["none"])
    }

    @Test("Fields that hold text or integers are followed, each record comes once")
    func follow() async throws {
        let bench = try await filled()
        let (answer, _) = try await ask(
            bench, ["t1", "t2", "t3", "t4"], follow: ["project_id:project", "owner:user", "absent:user"])
        #expect(answer.changes.map(\.id) == ["t1", "t2", "t3", "t4", "p1", "u1", "7"])
        #expect(answer.changes.map(\.entity).suffix(3) == ["project", "user", "project"])
        #expect(answer.changes[5].type == "none")
        let twice = try await ask(bench, ["t1", "t1"], follow: ["project_id:project", "project_id:project"]).answer
        #expect(twice.changes.map(\.id) == ["t1", "p1"])
        let itself = try await ask(bench, ["t1"], follow: ["title:task"]).answer
        #expect(itself.changes.map(\.id) == ["t1", "a"])
    }

    @Test("Records that are only pushed are told to the operator's own programs alone")
    func withheld() async throws {
        let bench = try Bench(entities: [.state("log", direction: .push)])
        _ = try await bench.exchange([upsert(1, "l1", #"{"task":"t1"}"#, entity: "log")])
        let service = Access(.read, principal: "ops", isService: true)
        #expect(try await ask(bench, ["l1"], entity: "log", access: service).answer.changes.map(\.type) == ["upsert"])
        #expect(await problem { _ = try await ask(bench, ["l1"], entity: "log") }?.code == .notFound)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "t1", ["log": "l1"]) }
        #expect(try await ask(bench, ["t1"], follow: ["log:log"]).answer.changes.map(\.id) == ["t1"])
    }

    @Test("An answer ends early rather than pass its byte budget, and says so")
    func byteBudget() async throws {
        var limits = Limits()
        limits.pageBytes = 300
        let bench = try await filled(limits: limits)
        let (first, _) = try await ask(bench, ["t1", "t2", "t4", "t9"], follow: ["project_id:project"])
        #expect(first.hasMore)
        #expect(first.changes.first?.id == "t1")
        #expect(first.changes.count < 4)
        limits.pageBytes = 1
        let narrow = try await filled(limits: limits)
        #expect(try await ask(narrow, ["t1", "t2"]).answer.changes.map(\.id) == ["t1"])
    }

    @Test("Questions outside the limits are refused, with what is allowed")
    func limits() async throws {
        let bench = try await filled()
        func code(_ ids: [String], _ entity: String = "task", _ follow: [String] = []) async -> ProblemCode? {
            await problem { _ = try await ask(bench, ids, entity: entity, follow: follow) }?.code
        }
        #expect(await code([]) == .malformedRequest)
        #expect(await code((0...100).map { "t\($0)" }) == .limitOutOfRange)
        #expect(await code((0..<100).map { "t\($0)" }) == nil)
        #expect(await code([""]) == .invalidIdentifier)
        #expect(await code(["t1"], "no entity ") == .invalidIdentifier)
        #expect(await code(["t1"], "task", Array(repeating: "a:b", count: 9)) == .limitOutOfRange)
        #expect(await code(["t1"], "task", ["project_id"]) == .malformedRequest)
        #expect(await code(["t1"], "task", [":project"]) == .malformedRequest)
        #expect(await code(["t1"], "task", ["project_id:"]) == .invalidIdentifier)
    }

    @Test("Nothing is told without the scope's permission, or to a checkpoint of another history")
    func permission() async throws {
        let bench = try await filled()
        #expect(await problem { _ = try await ask(bench, ["t1"], access: .none) }?.code == .scopeForbidden)
        let since = try await bench.pullAll().nextSince
        #expect(try await ask(bench, ["t1"], since: since).text.contains(#""since":"\#(since ?? "")""#))
        #expect(await problem { _ = try await ask(bench, ["t1"], since: "garbage") }?.code == .invalidCheckpoint)
        let copy = bench.directory.appending(path: "copy.sqlite")
        try bench.reopen { try FileManager.default.copyItem(at: $0, to: copy) }
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "t5", ["title": "e"]) }
        let later = try await bench.pullAll().nextSince
        try bench.reopen { file in
            try FileManager.default.removeItem(at: file)
            try FileManager.default.copyItem(at: copy, to: file)
        }
        #expect(await problem { _ = try await ask(bench, ["t1"], since: later) }?.code == .checkpointExpired)
    }
}
