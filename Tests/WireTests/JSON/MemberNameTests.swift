import Testing

@testable import TidemarkWire

@Suite("Names and bases of an object, in little more than their bytes")
struct MemberNameTests {
    private func names(_ text: String, ignoringCase: Bool = false) throws(JSONError) -> Int {
        let result: Result<Int, JSONError> = Array(text.utf8).withUnsafeBytes { bytes in
            Result { () throws(JSONError) in
                var reader = JSONReader(bytes)
                var names = MemberNames()
                var count = 0
                try reader.enterObject()
                while let name = try reader.nextMember() {
                    try names.insert(name, of: reader, ignoringCase: ignoringCase)
                    try reader.skip()
                    count += 1
                }
                return count
            }
        }
        return try result.get()
    }

    private func object(_ names: some Sequence<String>) -> String {
        "{" + names.map { "\"\($0)\":1" }.joined(separator: ",") + "}"
    }

    @Test(
        "A name that comes again is found among few and among many, however it is spelled", arguments: [3, 8, 9, 500])
    func again(count: Int) throws {
        let many = (0..<count).map { "n\($0)" }
        #expect(try names(object(many)) == count)
        for place in [0, count / 2, count - 1] {
            #expect(throws: JSONError.self) { try names(object(many + [many[place]])) }
            let escaped = #"\u006e"# + many[place].dropFirst()
            #expect(throws: JSONError.self) { try names(object(many + [escaped])) }
            #expect(throws: JSONError.self) { try names(object([escaped] + many)) }
            let upper = many[place].uppercased()
            #expect(try names(object(many + [upper])) == count + 1)
            #expect(throws: JSONError.self) { try names(object(many + [upper]), ignoringCase: true) }
        }
    }

    @Test("An object has a bound of names")
    func tooMany() throws {
        #expect(try names(object((0..<Limits.names).map { "n\($0)" })) == Limits.names)
        #expect(throws: JSONError.self) { try names(object((0...Limits.names).map { "n\($0)" })) }
    }

    @Test("Bases are found by their names, and written in the names' order")
    func bases() throws {
        var bases = FieldBases()
        for (name, version) in [("b", 2), ("a", 1), ("ab", 3), ("", 4)] {
            bases[Array(name.utf8)[...]] = Version(version)
        }
        #expect(bases.all.map { String(decoding: $0.name, as: UTF8.self) } == ["", "a", "ab", "b"])
        #expect(bases[Array("ab".utf8)[...]] == 3 && bases[Array("b".utf8)[...]] == 2)
        #expect(bases[Array("c".utf8)[...]] == nil && bases.newest == 4)
        bases[Array("a".utf8)[...]] = 9
        bases[[]] = nil
        bases[Array("z".utf8)[...]] = nil
        #expect(bases.all.map(\.version) == [9, 3, 2])
        // The same, put together in another order, over another buffer.
        let same: FieldBases = [Array("b".utf8)[...]: 2, Array("ab".utf8)[...]: 3, Array("a".utf8)[...]: 9]
        #expect(bases == same && bases.hashValue == same.hashValue)
    }

    private func scope(_ body: String) -> Scope? {
        Array(body.utf8).withUnsafeBytes { try? ExchangeRequest.scope(in: $0) }
    }

    @Test("A body's scope is found wherever it stands, and nothing else of it is asked")
    func scopeFirst() {
        #expect(scope(#"{"scope":"a:1","operations":[{"#) == "a:1")
        #expect(scope(#"{"operations":[{"x":{"scope":"b"}}],"sc\u006fpe":"a:1"}"#) == "a:1")
        #expect(scope(#"{"operations":[]}"#) == nil)
        #expect(scope(#"{"operations":[{],"scope":"a"}"#) == nil)
        #expect(scope(#"{"scope":"a b"}"#) == nil)
        #expect(scope(#"{"scope":7}"#) == nil)
        #expect(scope("[]") == nil)
    }
}
