import Testing

@testable import TidemarkWire

@Suite("A record's fields")
struct DataObjectTests {
    private func parse(_ text: String) throws -> DataObject {
        try Array(text.utf8).withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            return try DataObject(from: &reader)
        }
    }

    @Test("Fields are respelled canonically")
    func canonical() throws {
        let object = try parse(#" { "t\u0069tle" : "a\/b" , "n" : 1.50 , "b": {"$int":"5"} } "#)
        #expect(String(decoding: object.bytes, as: UTF8.self) == #"{"title":"a/b","n":1.5,"b":5}"#)
        #expect(object.value("title") == "a/b")
        #expect(object.value("none") == nil)
    }

    @Test("Fields are spelled as the canonical writer spells their decoded values, whichever way they were read")
    func sameAsDecoded() throws {
        let texts = [
            "", "plain", "tab\tquote\"slash\\", "a/b", "née", "e\u{301}", "\u{1f600}", "\u{7f}", "\u{2028}", "\0",
        ]
        let escape: (String) -> String = {
            $0.utf16.map { "\\u" + String(0x1_0000 + Int($0), radix: 16).dropFirst() }.joined()
        }
        for text in texts {
            for name in texts {
                var writer = JSONWriter()
                writer.raw("{")
                writer.string(name)
                writer.raw(":")
                writer.string(text)
                writer.raw("}")
                let expected = writer.bytes
                #expect(try parse(String(decoding: expected, as: UTF8.self)).bytes == expected)
                #expect(try parse(#"{"\#(escape(name))":"\#(escape(text))"}"#).bytes == expected)
            }
        }
        let numbers = #"{"a":-0,"b":9007199254740993,"c":1e2,"d":{"$int":"7"},"e":null,"f":{"$blob":"AQ=="}}"#
        let canonical = #"{"a":0,"b":{"$int":"9007199254740993"},"c":100.0,"d":7,"e":null,"f":{"$blob":"AQ=="}}"#
        #expect(String(decoding: try parse(numbers).bytes, as: UTF8.self) == canonical)
    }

    @Test("Fields come back from the bytes that were stored")
    func stored() throws {
        let object: DataObject = DataObject(["a": 1, "quote\"d": "x", "c": nil])
        let again = try DataObject(stored: object.bytes)
        #expect(again == object)
        #expect(again.fields == object.fields)
        #expect(again.value("quote\"d") == "x")
        #expect(again.fields.map { again.nameString($0) } == ["a", "quote\"d", "c"])
    }

    @Test("Rows are overlaid field by field; missing is unchanged, null is null")
    func overlaid() {
        let base: DataObject = DataObject(["a": 1, "b": 2])
        let result = base.overlaid(with: DataObject(["b": nil, "c": 3]))
        #expect(result == DataObject(["a": 1, "b": nil, "c": 3]))
    }

    @Test("Fields given twice are refused, however they are spelled")
    func duplicate() {
        #expect(throws: JSONError.self) { try parse(#"{"a":1,"a":2}"#) }
        #expect(throws: JSONError.self) { try parse(#"{"a":1,"\u0061":2}"#) }
        #expect(throws: Never.self) { try parse("{\"\u{e9}\":1,\"e\u{301}\":2}") }
    }

    @Test("Fields may not begin with a dollar sign")
    func reserved() {
        #expect(throws: JSONError.self) { try parse(#"{"$a":1}"#) }
        #expect(throws: JSONError.self) { try parse(#"{"\u0024a":1}"#) }
        #expect(throws: Never.self) { try parse(#"{"a$":1,"":2}"#) }
    }
}

@Suite("Objects have a bounded number of names")
struct NameLimitTests {
    private func names(_ count: Int) -> String { (0..<count).map { #""f\#($0)":1"# }.joined(separator: ",") }

    private func reason(of operation: String) -> JSONError.Reason? {
        let body = #"{"scope":"s","clientId":"device-aaaa","operations":[\#(operation)]}"#
        do {
            _ = try Array(body.utf8).withUnsafeBytes { try ExchangeRequest(from: $0, operationLimit: 10) }
            return nil
        } catch {
            #expect(Problem(error as? JSONError ?? JSONError(.wrongType, at: 0)).code == .malformedRequest)
            return (error as? JSONError)?.reason
        }
    }

    private func operation(_ members: String) -> String {
        #"{"lane":"lane-aaaa","number":1,"type":"patch","entity":"task","id":"a","baseVersion":1,\#(members)}"#
    }

    @Test("fields and bases: 2,000, the columns of a table")
    func fields() {
        #expect(reason(of: operation(#""fields":{\#(names(2000))},"bases":{\#(names(2000))}"#)) == nil)
        #expect(reason(of: operation(#""fields":{\#(names(2001))}"#)) == .tooManyMembers)
        #expect(reason(of: operation(#""bases":{\#(names(2001))}"#)) == .tooManyMembers)
    }

    @Test("patches, each field once, by the bytes of its name")
    func patches() {
        func patches(_ names: [String]) -> String {
            let all = names.map { #"{"field":"\#($0)","splices":[],"hash":""}"# }
            return operation(#""patch":[\#(all.joined(separator: ","))],"fields":{"whole":1}"#)
        }
        #expect(reason(of: patches((0..<2000).map { "f\($0)" })) == nil)
        #expect(reason(of: patches((0..<2001).map { "f\($0)" })) == .tooManyMembers)
        #expect(reason(of: patches(["a", "b", "a"])) == .duplicateMember)
        #expect(reason(of: patches(["a", "whole"])) == .duplicateMember)
        #expect(reason(of: patches(["\u{e9}", "e\u{301}"])) == nil)
    }

    @Test("places in documents: 64 of one operation")
    func documents() {
        func references(_ count: Int) -> String {
            let places = (0..<count).map { #"{"field":"doc","path":"$.a[\#($0)]","entity":"order"}"# }
            let others = (0..<100).map { #"{"field":"f\#($0)","entity":"order"}"# }
            return operation(#""refs":[\#((places + others).joined(separator: ","))],"fields":{}"#)
        }
        #expect(reason(of: references(64)) == nil)
        #expect(reason(of: references(65)) == .tooManyMembers)
    }
}

@Suite("Fields found by name, few and many")
struct FieldLookupTests {
    @Test("answer as the record itself does", arguments: [0, 1, 15, 16, 17, 18, 500])
    func lookup(count: Int) {
        var builder = DataObject.Builder()
        for index in 0..<count { builder.append("f\(index)", .integer(Int64(index))) }
        let object = builder.finish()
        let lookup = object.lookup
        for index in 0...count {
            let name = DataObject.canonical("f\(index)")[...]
            #expect(lookup[name] == object.value(named: name))
        }
        let other = DataObject(["f3": "new", "g": 1])
        let overlaid = object.overlaid(with: other)
        #expect(overlaid.value("f3") == "new" && overlaid.value("g") == 1)
        #expect(overlaid.fields.count == count + (count > 3 ? 1 : 2))
    }
}
