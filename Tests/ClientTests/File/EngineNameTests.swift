import Testing

@testable import Tidemark

@Suite("Names of engines tell which ones may still be there")
struct EngineNameTests {
    @Test("Where a program has one process, a name found at first is an earlier one's on any host, a later one is not")
    func phones() {
        let app = EngineName(host: "phone", process: 7, program: "app", token: "a", number: 0)
        func mayMeet(_ name: String, isFirst: Bool = true, hasOneProcess: Bool = true) -> Bool {
            app.mayMeet(name, isFirst: isFirst, hasOneProcess: hasOneProcess)
        }
        #expect(!mayMeet("phone 8 app b 1") && !mayMeet("former 8 app b 1"))
        #expect(mayMeet("former 8 extension b 1"))
        #expect(mayMeet("phone 1 app b 1", isFirst: false) && mayMeet("phone 1 app b 1", hasOneProcess: false))
    }

    @Test("A process is known to have ended by its number, its own number by what it made up, and another host's never")
    func names() throws {
        let name = EngineName.next().text
        func isThere(_ name: String) -> Bool {
            EngineName.own.mayMeet(name, isFirst: true, hasOneProcess: false)
        }
        #expect(isThere(name))
        #expect(EngineName.next().text != name)
        let own = name.split(separator: " ").map { String($0) }
        try #require(own.count == 5)
        func mayBeThere(host: String, process: String, token: String = "another") -> Bool {
            isThere([host, process, own[2], token, own[4]].joined(separator: " "))
        }
        #expect(mayBeThere(host: own[0], process: own[1], token: own[3]))
        #expect(!mayBeThere(host: own[0], process: own[1]))
        // The first process of a system is there for as long as the system, and none has so high a number.
        #expect(mayBeThere(host: own[0], process: "1"))
        #expect(!mayBeThere(host: own[0], process: "\(Int32.max)"))
        #expect(mayBeThere(host: "elsewhere.invalid", process: "\(Int32.max)"))
        for other in ["0", "-1", "", "one"] { #expect(mayBeThere(host: own[0], process: other)) }
        for other in ["", "app", "a b c d e"] { #expect(isThere(other)) }
    }
}
