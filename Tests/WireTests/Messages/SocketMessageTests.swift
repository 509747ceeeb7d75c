import Testing
import TidemarkWire

@Suite("Messages of a socket")
struct SocketMessageTests {
    private func read(_ text: String, limit: Int = 3) throws -> SocketRequest {
        try Array(text.utf8).withUnsafeBytes { try SocketRequest(from: $0, limit: limit) }
    }

    @Test("Members come in any order, and unknown ones are passed over")
    func read() throws {
        #expect(try read(#"{"scopes":["a","é\u0000"],"x":{},"type":"subscribe"}"#) == .subscribe(["a", "é\u{0}"]))
        #expect(try read(#"{"type":"unsubscribe","scopes":[],"token":"t"}"#) == .unsubscribe([]))
        #expect(try read(#"{"type":"authorize","token":"a.b.c"}"#) == .authorize(token: "a.b.c"))
    }

    @Test(
        "The refusal of a text that is no message says which member is wrong",
        arguments: [
            (#"{"scopes":["a"]}"#, "type"), (#"{"type":"subscribe"}"#, "scopes"), (#"{"type":"authorize"}"#, "token"),
            (#"{"type":"leave","scopes":[]}"#, "type"), (#"{"type":"subscribe","scopes":"a"}"#, "scopes"),
            (#"{"type":"subscribe","scopes":["a","b","c","d"]}"#, "scopes"),
            (#"{"type":"authorize","token":"t","token":"t"}"#, "token"), ("[]", ""), ("", ""),
            (#"{"type":"unsubscribe","scopes":[]} x"#, ""),
        ])
    func refused(text: String, member: String) throws {
        let error = try #require(throws: JSONError.self) { try read(text) }
        #expect(error.path.hasPrefix(member))
    }

    @Test("Each event is one object")
    func written() {
        func text(_ event: SocketEvent) -> String { String(decoding: event.json, as: UTF8.self) }
        #expect(
            text(.changes(Nudge(scope: "a", head: 1054))) == #"{"event":"changes","scope":"a","head":1054}"#)
        #expect(text(.subscribed("a~b")) == #"{"event":"subscribed","scope":"a~b"}"#)
        #expect(text(.unsubscribed("a")) == #"{"event":"unsubscribed","scope":"a"}"#)
        #expect(
            text(.unsubscribed("a", .scopeErased)) == #"{"event":"unsubscribed","scope":"a","code":"scope_erased"}"#)
        #expect(text(.authorized) == #"{"event":"authorized"}"#)
        var problem = Problem(.tooManyRequests, "Too \"many\".")
        problem.retryAfter = 2
        let members = #""code":"too_many_requests","detail":"Too \"many\".","retryAfter":2"#
        #expect(text(.refused(scope: "\"\n", problem)) == #"{"event":"refused","scope":"\"\n",\#(members)}"#)
    }
}
