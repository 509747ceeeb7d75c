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

    @Test("are respelled canonically")
    func canonical() throws {
        let object = try parse(#" { "t\u0069tle" : "a\/b" , "n" : 1.50 , "b": {"$int":"5"} } "#)
        #expect(String(decoding: object.bytes, as: UTF8.self) == #"{"title":"a/b","n":1.5,"b":5}"#)
        #expect(object.value("title") == "a/b")
        #expect(object.value("none") == nil)
    }

    @Test("come back from the bytes that were stored")
    func stored() throws {
        let object: DataObject = DataObject(["a": 1, "quote\"d": "x", "c": nil])
        let again = try DataObject(stored: object.bytes)
        #expect(again == object)
        #expect(again.fields == object.fields)
        #expect(again.value("quote\"d") == "x")
        #expect(again.fields.map { again.nameString($0) } == ["a", "quote\"d", "c"])
    }

    @Test("are overlaid field by field; missing is unchanged, null is null")
    func overlaid() {
        let base: DataObject = DataObject(["a": 1, "b": 2])
        let result = base.overlaid(with: DataObject(["b": nil, "c": 3]))
        #expect(result == DataObject(["a": 1, "b": nil, "c": 3]))
    }

    @Test("given twice are refused, however they are spelled")
    func duplicate() {
        #expect(throws: JSONError.self) { try parse(#"{"a":1,"a":2}"#) }
        #expect(throws: JSONError.self) { try parse(#"{"a":1,"\u0061":2}"#) }
        #expect(throws: Never.self) { try parse("{\"\u{e9}\":1,\"e\u{301}\":2}") }
    }

    @Test("may not begin with a dollar sign")
    func reserved() { #expect(throws: JSONError.self) { try parse(#"{"$a":1}"#) } }
}
