import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("Temporary ids in an operation give way to those that they stand for")
struct ResolutionTests {
    private func replaced(_ document: String, _ path: String) -> String? {
        JSONPath(path)?.replacing(in: Array(document.utf8)) { value in
            value.text == "local-1" || value.text == "-7" ? value.replaced(by: "42") : nil
        }.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        "A path finds its places, and everything else stays byte by byte",
        arguments: [
            (#"{"a":"local-1"}"#, "$.a", #"{"a":"42"}"#),
            (
                #" { "a" : [ {"id":-7 }, {"id":"local-1"},{"id":1e3}, 5 ] , "é":"\u00e9"}"#, "$.a[*].id",
                #" { "a" : [ {"id":42 }, {"id":"42"},{"id":1e3}, 5 ] , "é":"\u00e9"}"#
            ),
            (#"["x","local-1"]"#, "$[1]", #"["x","42"]"#),
            (#""local-1""#, "$", #""42""#),
            (#"-7"#, "$", "42"),
            (#"[["local-1"],["local-1"]]"#, "$[*][0]", #"[["42"],["42"]]"#),
            (#"{"a":"\u006cocal-1"}"#, "$.a", #"{"a":"42"}"#),
        ])
    func found(document: String, path: String, result: String) { #expect(replaced(document, path) == result) }

    @Test(
        "Where the path finds nothing, or the text is no document, nothing changes",
        arguments: [
            (#"{"a":"local-1"}"#, "$.b"), (#"{"a":"local-1"}"#, "$[0]"), (#"["local-1"]"#, "$[1]"),
            (#"{"a":{"b":"local-1"}}"#, "$.a"), ("not json", "$"), (#"{"a":"local-1"} x"#, "$.a"), ("", "$"),
            (#"{"a":"local-2"}"#, "$.a"), (#"{"a":-7.0}"#, "$.a"), (#"{"a":99999999999999999999}"#, "$.a"),
        ])
    func nothing(document: String, path: String) { #expect(replaced(document, path) == nil) }

    @Test(
        "A malformed path is none", arguments: ["", "a", "$.", "$..a", "$[", "$[x]", "$[-1]", "$[01]", "$a", "$.a[*]b"])
    func malformed(path: String) { #expect(JSONPath(path) == nil) }

    @Test("Fields keep their order and their kind; what is not known stays, with its reference")
    func fields() throws {
        var operation = Operation(
            .upsert, entity: "line", id: #"["local-1",{"$int":"-2305843009213693960"},"local-9"]"#)
        operation.fields = DataObject([
            "a": 1, "one": "local-1", "two": .integer(-(1 << 61) - 8), "nine": "local-9", "plain": "local-1", "n": nil,
        ])
        operation.references = [
            Reference(.field("one"), to: "order"), Reference(.field("two"), to: "order"),
            Reference(.field("nine"), to: "order"), Reference(.field("n"), to: "order"),
            Reference(.field("absent"), to: "order"), Reference(.key(part: 0), to: "order"),
            Reference(.key(part: 1), to: "order"), Reference(.key(part: 2), to: "other"),
            Reference(.key(part: 7), to: "order"),
        ]
        let resolution = try Resolution(operation) { entity, temporary in
            entity == "order" && temporary != "local-9" ? "77" : nil
        }
        let fields = DataObject(["a": 1, "one": "77", "two": 77, "nine": "local-9", "plain": "local-1", "n": nil])
        #expect(resolution.operation.fields == fields)
        #expect(resolution.operation.id == #"["77",77,"local-9"]"#)
        #expect(resolution.missing == Resolution.Missing(entity: "order", temporary: "local-9"))
        #expect(
            resolution.operation.references
                == [Reference(.field("nine"), to: "order"), Reference(.key(part: 2), to: "other")])
    }

    private func listing(_ ids: [String], paths: [String]) -> Operation {
        var operation = Operation(.upsert, entity: "line", id: "l1")
        operation.fields = DataObject(["doc": .text("[" + ids.map { "\"\($0)\"" }.joined(separator: ",") + "]")])
        operation.references = paths.map { Reference(.document(field: "doc", path: $0), to: "order") }
        return operation
    }

    @Test("An id is asked for once, however many places and paths name it")
    func once() throws {
        var asked: [RecordID] = []
        let ids = (0..<500).map { "local-\($0 % 5)" }
        let resolution = try Resolution(listing(ids, paths: Array(repeating: "$[*]", count: 64))) { _, temporary in
            asked.append(temporary)
            return "42"
        }
        #expect(asked.count == 5)
        #expect(
            resolution.operation.fields.value("doc")
                == .text("[" + ids.map { _ in "\"42\"" }.joined(separator: ",") + "]"))
        #expect(resolution.operation.references.isEmpty && !resolution.isTooMany)
    }

    @Test("Where the first id that is not known ends it, no other is asked for")
    func stops() throws {
        var asked = 0
        let ids = (0..<500).map { "local-\($0)" }
        let resolution = try Resolution(listing(ids, paths: ["$[*]", "$[*]"]), stopsAtMissing: true) { _, _ in
            asked += 1
            return nil
        }
        #expect(asked == 1)
        #expect(resolution.missing == Resolution.Missing(entity: "order", temporary: "local-0"))
    }

    @Test("More places than allowed are told, and nothing is changed; ids of other shapes are not counted")
    func limited() throws {
        let ids = (0..<50).map { "plain-\($0)" } + (0..<11).map { "local-\($0)" }
        let operation = listing(ids, paths: ["$[*]"])
        let refused = try Resolution(operation, limit: 10) { _, _ in "42" }
        #expect(refused.isTooMany && refused.operation == operation)
        #expect(try !Resolution(operation, limit: 11) { _, _ in "42" }.isTooMany)
    }

    @Test("Paths that go different ways into one document find their places in one pass")
    func several() throws {
        var operation = Operation(.upsert, entity: "line", id: "l1")
        operation.fields = DataObject(["doc": #"{"a":{"id":"local-1"},"b":[{"id":"local-2"},{"no":"local-1"}]}"#])
        operation.references = ["$.b[*].id", "$.a.id", "$.b[1].no", "$.c"].map {
            Reference(.document(field: "doc", path: $0), to: $0 == "$.a.id" ? "order" : "item")
        }
        let resolution = try Resolution(operation) { entity, temporary in
            RecordID("\(entity)-\(temporary.text.suffix(1))")
        }
        #expect(
            resolution.operation.fields.value("doc")
                == .text(#"{"a":{"id":"order-1"},"b":[{"id":"item-2"},{"no":"item-1"}]}"#))
    }
}
