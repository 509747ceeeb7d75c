/// Reads a stream of server-sent events from its bytes, in pieces as they come (WHATWG HTML, 9.2.6).
package struct EventReader {
    package struct Event: Hashable, Sendable {
        package var name: String
        package var data: [UInt8]

        package init(name: String, data: [UInt8]) {
            self.name = name
            self.data = data
        }
    }

    /// The stream is not worth reading on: one line or event of it takes too many bytes.
    package struct TooLarge: Error {}

    /// The most bytes that one event may take.
    package static let limit = 64 << 10

    /// How long the server wants a reader to wait before it comes back, in milliseconds; `nil` where it has not said.
    package private(set) var retry: Int64?
    private var line: [UInt8] = []
    private var event = Event(name: "", data: [])
    private var hasData = false
    /// Whether the last byte was a CR, with which the line has ended: a LF behind it belongs to it.
    private var isBehindCR = false
    private var isFirstLine = true

    package init() {}

    /// Takes the next bytes, and returns the events that they complete.
    package mutating func read(_ bytes: some Sequence<UInt8>) throws(TooLarge) -> [Event] {
        var events: [Event] = []
        for byte in bytes {
            let isLineFeed = byte == UInt8(ascii: "\n")
            if isLineFeed, isBehindCR {
                isBehindCR = false
                continue
            }
            isBehindCR = byte == UInt8(ascii: "\r")
            guard isLineFeed || isBehindCR else {
                guard line.count + event.data.count < Self.limit else { throw TooLarge() }
                line.append(byte)
                continue
            }
            if let event = endLine() { events.append(event) }
        }
        return events
    }

    /// Takes the line in; an empty one ends the event.
    private mutating func endLine() -> Event? {
        defer {
            line.removeAll(keepingCapacity: true)
            isFirstLine = false
        }
        if isFirstLine, line.starts(with: [0xef, 0xbb, 0xbf]) { line.removeFirst(3) }
        guard !line.isEmpty else {
            defer { (event, hasData) = (Event(name: "", data: []), false) }
            guard hasData else { return nil }
            return Event(name: event.name.isEmpty ? "message" : event.name, data: event.data)
        }
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        var value = line[min(colon + 1, line.endIndex)...]
        if value.first == UInt8(ascii: " ") { value.removeFirst() }
        switch String(decoding: line[..<colon], as: UTF8.self) {
        case "event": event.name = String(decoding: value, as: UTF8.self)
        case "data":
            if hasData { event.data.append(UInt8(ascii: "\n")) }
            hasData = true
            event.data += value
        case "retry": retry = Int64(String(decoding: value, as: UTF8.self)).flatMap { $0 < 0 ? nil : $0 } ?? retry
        // A comment, or a field that this reader does not need.
        default: break
        }
        return nil
    }
}

/// What a stream of nudges tells (W69): a scope has something to pull.
package struct Nudge: Hashable, Sendable {
    /// The event's name.
    package static let event = "changes"

    package var scope: Scope
    /// The newest version of the scope that the server has heard of.
    package var head: Version

    package init(scope: Scope, head: Version) {
        self.scope = scope
        self.head = head
    }

    /// - Throws: `JSONError` where the bytes are no nudge. Members that are not known are passed over.
    package init(from bytes: UnsafeRawBufferPointer) throws(JSONError) {
        var reader = JSONReader(bytes)
        var (scope, head): (Scope?, Version?) = (nil, nil)
        try reader.enterObject()
        while let name = try reader.nextMember() {
            switch reader.string(name) {
            case "scope": scope = Scope(try reader.readString())
            case "head": head = try reader.readInteger()
            default: try reader.skip()
            }
        }
        try reader.finish()
        guard let scope, let head else { throw JSONError(.missingMember, at: reader.index) }
        (self.scope, self.head) = (scope, head)
    }

    /// The nudge as an event of a stream, which some dialects give another name. Neither names nor number hold anything
    /// that would have to be escaped.
    package func text(named event: String = event) -> String {
        "event: \(event)\ndata: {\"scope\":\"\(scope.name)\",\"head\":\(head)}\n\n"
    }
}
