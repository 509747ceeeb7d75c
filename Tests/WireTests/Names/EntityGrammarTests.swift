import Testing

@testable import TidemarkWire

@Suite("Names of entities (W4, W73)")
struct EntityGrammarTests {
    @Test(
        "A table's name is an entity's, whatever SQLite allows in it",
        arguments: [
            "task", "1task", "Order Details", "select", #"Order "Details" é\"#, "naïve", "e\u{301}", "日本", "a/b:c,d%20",
            "'", "😀",
            "\u{a0}a", String(repeating: "a", count: 128), String(repeating: "é", count: 64),
        ])
    func names(name: String) throws {
        #expect(Identifier.isEntity(name))
        var operation = Operation(.delete, entity: name, id: "a")
        operation.references = [Reference(.field("of"), to: name)]
        let text =
            #"{"lane":"lane-0001","number":1,"# + String(decoding: operation.sealedMembers(), as: UTF8.self) + "}"
        let (_, again) = try Array(text.utf8).withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            return try Operation.read(from: &reader)
        }
        #expect(Array(again.entity.utf8) == Array(name.utf8))
        #expect(again == operation)
        let declared = Declarations(entities: [EntityDeclaration(name)])
        let read = try declared.body().withUnsafeBytes { try Declarations(from: $0) }
        #expect(read.entities.map(\.name) == [name])
        #expect(try Array(PercentEncoding.decoded(path: PercentEncoding.encoded(name)).utf8) == Array(name.utf8))
    }

    @Test(
        "None is empty, has control characters or a blank at an end, or is longer than 128 bytes",
        arguments: [
            "", " ", " a", "a ", "a\n", "\u{0}", "a\u{1f}b", "\u{7f}", String(repeating: "a", count: 129),
            String(repeating: "é", count: 65),
        ])
    func refused(name: String) { #expect(!Identifier.isEntity(name)) }

    @Test("Letters of ASCII are compared without regard to case, all else by its bytes")
    func sameness() {
        #expect(EntityKey("MiXed É") == EntityKey("mIXED É"))
        #expect(EntityKey("É") != EntityKey("é"))
        #expect(EntityKey("\u{e9}") != EntityKey("e\u{301}"))
        #expect(Identifier.isSameName("Task[", "tASK["))
        #expect(!Identifier.isSameName("task[", "task{"))
        #expect(!Identifier.isSameName("task", "tasks"))
        #expect(EntityKey("MiXed É").text == "mixed É")
    }

    @Test("A brake travels with the declarations, and no brake is none")
    func brake() throws {
        let declared = Declarations(entities: [
            .state("a", brake: DeleteBrake()), .state("b"),
            .state("c", brake: DeleteBrake(rows: 5, window: .seconds(90))),
        ])
        let body = declared.body()
        #expect(String(decoding: body, as: UTF8.self).contains(#""brake":{"rows":100,"window":3600}"#))
        let read = try body.withUnsafeBytes { try Declarations(from: $0) }
        #expect(read == declared)
    }

    @Test("A query's members are taken apart once, and a plus is a plus")
    func query() throws {
        let members = try PercentEncoding.members(ofQuery: "a=b%3Dc=d&%61&&x=1+2&y=&=z")
        #expect(members.map { "\($0.name):\($0.value)" } == ["a:b=c=d", "a:", "x:1+2", "y:", ":z"])
    }

    @Test("Broken percent-encoding or UTF-8 is no query", arguments: ["a=%", "a=%4", "%zz=a", "a=%ff", "a=%ed%a0%80"])
    func brokenQuery(text: String) {
        #expect(throws: Problem.self) { try PercentEncoding.members(ofQuery: text) }
    }

    @Test("Broken percent-encoding or UTF-8 is no name in a path", arguments: ["%", "%4", "a%zz", "%ff", "%ed%a0%80"])
    func paths(text: String) { #expect(throws: Problem.self) { try PercentEncoding.decoded(path: text) } }
}
