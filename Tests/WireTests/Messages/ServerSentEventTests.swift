import Testing
import TidemarkWire

@Suite("Streams of server-sent events (WHATWG HTML, 9.2.6)")
struct ServerSentEventTests {
    private func read(_ text: String, inPiecesOf size: Int = .max) throws -> [EventReader.Event] {
        var reader = EventReader()
        var events: [EventReader.Event] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            events += try reader.read(rest.prefix(size))
            rest = rest.dropFirst(size)
        }
        return events
    }

    private func event(_ name: String, _ data: String) -> EventReader.Event {
        EventReader.Event(name: name, data: Array(data.utf8))
    }

    @Test("A nudge comes through as it was written, in pieces of any size", arguments: [1, 2, 3, 7, 1000])
    func pieces(size: Int) throws {
        let nudges = [Nudge(scope: "a", head: 7), Nudge(scope: "list:1~media", head: .max)]
        let text = ":\n\n" + nudges[0].text() + ":\n\n" + nudges[1].text()
        let events = try read(text, inPiecesOf: size)
        #expect(events.map(\.name) == [Nudge.event, Nudge.event])
        #expect(try events.map { try $0.data.withUnsafeBytes { try Nudge(from: $0) } } == nudges)
    }

    @Test("Lines end in CR, LF or both, in pieces of any size", arguments: ["\n", "\r", "\r\n"], [1, 2, 1000])
    func lineEnds(end: String, size: Int) throws {
        let text = ["event: x", "data: 1", "data: 2", "", "data:3", "", ""].joined(separator: end)
        #expect(try read(text, inPiecesOf: size) == [event("x", "1\n2"), event("message", "3")])
    }

    @Test("A byte order mark, comments, unknown fields and events without data are passed over")
    func passedOver() throws {
        let text = "\u{feff}data: 1\n\n: comment\nid: 4\nother\nevent: gone\n\ndata\n\ndata:  two\n\ndata: never ended"
        #expect(try read(text) == [event("message", "1"), event("message", ""), event("message", " two")])
    }

    @Test("The server says when to come back, and no nonsense")
    func retry() throws {
        var reader = EventReader()
        for (text, wait) in [("retry: 2500\n", 2500), ("retry: soon\n", 2500), ("retry: -4\n", 2500)]
            as [(String, Int64)]
        {
            _ = try reader.read(text.utf8)
            #expect(reader.retry == wait)
        }
    }

    @Test("An event without an end takes no more memory than one may", arguments: ["data: ", "", ": ", "data: x\n"])
    func bounded(beginning: String) throws {
        var reader = EventReader()
        let line = beginning.hasSuffix("\n") ? Array(beginning.utf8) : Array(repeating: UInt8(ascii: "x"), count: 1024)
        _ = try reader.read(beginning.utf8)
        #expect(throws: EventReader.TooLarge.self) {
            for _ in 0...EventReader.limit { _ = try reader.read(line) }
        }
    }

    @Test(
        "An event that is no nudge is refused",
        arguments: ["", "{}", "[]", #"{"scope":"a"}"#, #"{"scope":"","head":1}"#, #"{"scope":"a","head":"1"}"#])
    func noNudge(text: String) {
        #expect(throws: JSONError.self) { try Array(text.utf8).withUnsafeBytes { try Nudge(from: $0) } }
    }

    @Test("Members that a later version adds to a nudge are passed over")
    func later() throws {
        let text = #"{"head":3,"more":{"a":[1]},"scope":"a"}"#
        #expect(try Array(text.utf8).withUnsafeBytes { try Nudge(from: $0) } == Nudge(scope: "a", head: 3))
    }
}
