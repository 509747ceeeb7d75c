import Foundation
import Synchronization
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Rules of the operator's own")
struct EntityRuleTests {
    private struct Broken: Error {}

    /// What the rule was last shown.
    private final class Seen: Sendable {
        let edit = Mutex<EntityRule.Edit?>(nil)
    }

    private func bench(
        _ declaration: EntityDeclaration = .state("task"), includingCommits: Bool = false,
        _ decide: @escaping @Sendable (EntityRule.Edit) throws -> EntityRule.Decision
    ) throws -> Bench {
        try Bench(
            entities: [declaration],
            rules: [EntityRule(declaration.name, includingCommits: includingCommits, decide: decide)])
    }

    @Test("A rule refuses with a reason of its own, and only what it is asked about")
    func refuses() async throws {
        let bench = try bench { edit in
            edit.mine["title"] == ""
                ? .reject(code: "title_missing", detail: "No title.", hint: "Give it one.") : .accept
        }
        let answer = try await bench.exchange([
            upsert(1, "a", #"{"title":""}"#), upsert(2, "b", #"{"title":"t"}"#),
            upsert(3, "c", #"{"title":""}"#, entity: "other"),
        ])
        #expect(answer.statuses == ["rejected", "applied", "applied"])
        let error = answer.results[0]["error"] as? [String: String]
        #expect(error == ["code": "title_missing", "detail": "No title.", "hint": "Give it one."])
        #expect(try await bench.pullAll().changes.map(\.id) == ["b", "c"])
    }

    @Test("A rule that throws refuses the edit and nothing else; its error's content stays in the server")
    func throwing() async throws {
        let bench = try bench { edit in
            if edit.id == "a" { throw Broken() }
            return .accept
        }
        let answer = try await bench.exchange([upsert(1, "a", "{}"), upsert(2, "b", "{}")])
        #expect(answer.statuses == ["rejected", "applied"])
        #expect(answer.errorCode(0) == "rule_failed")
    }

    @Test(
        "A code that devices would take for the protocol's own, or that has no code's form, is not passed on",
        arguments: [
            "record_deleted", "operation_mismatch", "", "Title", "a-b", "é", "1a", String(repeating: "a", count: 64),
        ])
    func codes(code: String) async throws {
        let bench = try bench { _ in .reject(code: code, detail: "d") }
        let answer = try await bench.exchange([upsert(1, "a", "{}")])
        #expect(answer.errorCode(0) == "rule_failed")
    }

    @Test("A rule's message to people is cut to its limit, between two letters")
    func longTexts() async throws {
        let bench = try bench { _ in .reject(code: "long", detail: String(repeating: "é", count: 400)) }
        let answer = try await bench.exchange([upsert(1, "a", "{}")])
        let detail = (answer.results[0]["error"] as? [String: String])?["detail"] ?? ""
        #expect(detail == String(repeating: "é", count: 250))
    }

    @Test("A rule changes fields, and adds some; the device is told the record and what it lost")
    func sets() async throws {
        let bench = try bench(.state("task", serverFields: ["seal"])) { edit in
            guard case .integer(let sum)? = edit.mine["sum"], case .integer(let old)? = edit.current?["sum"] else {
                return .set(["seal": "new"])
            }
            return .set(["sum": .integer(sum + old), "seal": "added"])
        }
        let first = try await bench.exchange([upsert(1, "a", #"{"sum":1}"#)])
        #expect(first.statuses == ["merged"])
        let second = try await bench.exchange([upsert(1, "a", #"{"sum":5}"#, base: 0)], client: "device-bbbb")
        #expect(second.statuses == ["merged"])
        #expect(second.results[0]["lost"] as? [[String: String]] == [["field": "sum", "rule": "serverRule"]])
        #expect(try await bench.pullAll().changes.last?.data == ["sum": 6, "seal": "added"])
        let delete = try await bench.exchange([delete(2, "a", base: 2)], client: "device-bbbb")
        #expect(delete.errorCode(0) == "rule_failed")
    }

    @Test("A rule sees what was sent, what stands, what the editor knew, and who asks")
    func edit() async throws {
        let seen = Seen()
        let bench = try bench(.state("task", serverFields: ["summary"])) { edit in
            seen.edit.withLock { $0 = edit }
            return .accept
        }
        _ = try await bench.exchange([upsert(1, "a", #"{"x":1,"y":1}"#)])
        #expect(seen.edit.withLock { $0 }?.current == nil)
        _ = try await bench.exchange([upsert(2, "a", #"{"y":2}"#, base: 1)])
        _ = try await bench.exchange(
            [upsert(1, "a", #"{"x":3,"summary":"no"}"#, base: 1)], client: "device-bbbb",
            access: .readWrite(as: "eve"))
        let edit = try #require(seen.edit.withLock { $0 })
        #expect(edit.scope == "s" && edit.entity == "task" && edit.id == "a" && !edit.isDelete)
        #expect(edit.mine == ["x": 3])
        #expect(edit.current == ["x": 1, "y": 2])
        #expect(edit.base == ["x": 1])
        #expect(edit.isStale("y") && !edit.isStale("x") && !edit.isStale("z"))
        #expect(edit.proposed == ["x": 3, "y": 2])
        #expect(edit.caller == EntityRule.Caller(principal: "eve", client: "device-bbbb", isService: false))
        #expect(edit.moment == Date(milliseconds: bench.clock))
    }

    @Test("Events can be refused; commits are held to a rule only where it says so", arguments: [true, false])
    func eventsAndCommits(includingCommits: Bool) async throws {
        let bench = try bench(.events("audit"), includingCommits: includingCommits) { edit in
            edit.mine["what"] == nil ? .reject(code: "empty_event", detail: "What happened?") : .accept
        }
        let answer = try await bench.exchange([
            upsert(1, "e1", "{}", entity: "audit"), upsert(2, "e2", #"{"what":"x"}"#, entity: "audit"),
        ])
        #expect(answer.statuses == ["rejected", "applied"])
        let commit: () async throws -> Void = {
            try await bench.server.commit(to: "s") { $0.upsert("audit", id: "e3", [:]) }
        }
        if includingCommits {
            let error = await #expect(throws: CommitError.self) { try await commit() }
            #expect(error?.code == "empty_event")
        } else {
            try await commit()
        }
    }

    @Test("A field cannot pass a rule beside another one that the rule takes for the same")
    func spellings() async throws {
        let bench = try bench { edit in
            edit.mine["apiKey"] ?? "ok" == "ok" ? .accept : .reject(code: "bad_key", detail: "")
        }
        // The second K is the Kelvin sign: other bytes, the same string.
        let answer = try await bench.exchange([
            upsert(1, "a", "{\"apiKey\":\"bad\",\"api\u{212A}ey\":\"ok\"}"),
            upsert(2, "b", "{\"apiKey\":\"ok\"}"),
            upsert(3, "b", "{\"api\u{212A}ey\":\"ok\"}", base: 0, extra: #","baseNumber":2"#),
            upsert(4, "b", "{\"apiKey\":\"bad\"}", base: 0, extra: #","baseNumber":2"#),
            upsert(5, "b", "{\"other\":1}", base: 0, extra: #","baseNumber":2"#),
        ])
        #expect(answer.statuses == ["rejected", "applied", "rejected", "rejected", "applied"])
        #expect(answer.errorCode(0) == "rule_failed" && answer.errorCode(2) == "rule_failed")
        #expect(answer.errorCode(3) == "bad_key")
        #expect(try await bench.contents() == ["b": ["apiKey": "ok", "other": 1]])
    }

    @Test("A value that a rule sets does not stand beside another spelling of its field")
    func setSpelling() async throws {
        let bench = try bench { edit in edit.mine["apiKey"] == nil ? .accept : .set(["apiKey": "clean"]) }
        let answer = try await bench.exchange([
            upsert(1, "a", "{\"api\u{212A}ey\":\"x\"}"), upsert(2, "b", "{\"apiKey\":1}"),
        ])
        #expect(answer.statuses == ["rejected", "merged"])
        #expect(try await bench.contents() == ["b": ["apiKey": "clean"]])
    }

    @Test("An edit that claims to be replayed after a loss is judged like any other")
    func replayed() async throws {
        let bench = try bench { $0.isDelete ? .reject(code: "kept", detail: "Tasks are kept.") : .accept }
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "there", ["x": 1]) }
        let operations = ["there", "unknown"].enumerated().map { index, id in
            #"""
            {"lane":"lane-aaaa","number":\#(index + 1),"type":"delete","entity":"task","id":"\#(id)","baseVersion":1,\#
            "original":{"epoch":"lost","version":9}}
            """#
        }
        let answer = try await bench.exchange(operations)
        #expect(answer.statuses == ["rejected", "rejected"])
        #expect(answer.errorCode(0) == "kept" && answer.errorCode(1) == "kept")
        #expect(answer.head == 1)
    }

    @Test("Several rules of one entity: the first refusal counts, and what they set adds up")
    func several() async throws {
        let bench = try Bench(rules: [
            EntityRule("task") { _ in .set(["a": 1]) }, EntityRule("task") { _ in .set(["b": 2]) },
            EntityRule("task") { $0.mine["x"] == 1 ? .reject(code: "no", detail: "") : .accept },
        ])
        let answer = try await bench.exchange([upsert(1, "r", "{}"), upsert(2, "s", #"{"x":1}"#)])
        #expect(answer.statuses == ["merged", "rejected"])
        #expect(try await bench.pullAll().changes.map(\.data) == [["a": 1, "b": 2]])
    }
}
