import GRDB
import Testing
import TidemarkServer

@testable import Tidemark

@Suite("Edits that gave way in one recovery do not come first in the next, nor do rows that nobody wrote (I5, I11)")
struct RepeatedLossTests {
    private static let rows = "SELECT id, title, body FROM note ORDER BY id"
    /// An app that comes with rows.
    private static let seeds =
        RestorableServer.schema + "INSERT INTO note(id, title, body) VALUES ('n1', 'first', 'first'), ('n2', 'x', 'x')"

    @Test("a row that was made anew over a lost edit is sent whole, its empty fields too")
    func madeAnew() async throws {
        let (server, a, b) = try await RestorableServer.pair(
            sharing: "INSERT INTO note(id, title, body) VALUES ('n1', 'old', 'old')")
        try await server.backUp()
        try await a.sql("UPDATE note SET title = 'edited'")
        try await Device.sync(a, b)
        try await b.sql("DELETE FROM note")
        try await Device.sync(b, a)
        try await server.restore()
        // It is written while the answer that tells of the loss is on its way.
        await a.wire.next { request, inner in
            let answer = try await inner.send(request)
            try await a.sql("INSERT INTO note(id, title) VALUES ('n1', 'anew')")
            return answer
        }
        try await Device.sync(a, a)
        #expect(try await a.rows(Self.rows) == [#""n1"|"anew"|NULL"#])
        #expect(try await a.engine().verify().isClean)
    }

    @Test("the later edit wins after a second loss too, whoever was back first", arguments: [true, false])
    func twice(aFirst: Bool) async throws {
        let (server, a, b) = try await RestorableServer.pairWithLaterEdit()
        for _ in 0..<2 {
            try await server.restore()
            for device in aFirst ? [a, b, a] : [b, a, b] { try await device.sync() }
            for device in [a, b] { #expect(try await device.rows(Self.rows) == [#""n1"|"later"|"a""#]) }
        }
        guard !aFirst else { return }
        // The other one is gone for good: what had won over its own edit is what this one knows.
        try await server.restore()
        try await Device.sync(a, a)
        #expect(try await a.rows(Self.rows) == [#""n1"|"later"|"a""#])
    }

    @Test("a row of the first capture comes back to a server that had it, lost it, and has lost it again (I11)")
    func firstRowTwice() async throws {
        let server = try RestorableServer()
        let a = try await server.device("a", schema: Self.seeds)
        try await server.backUp("empty")
        try await a.sync()
        try await server.backUp("full")
        for name in ["empty", "full", "empty"] {
            try await server.restore(name)
            try await Device.sync(a, a)
            #expect(try await a.rows(Self.rows) == [#""n1"|"first"|"first""#, #""n2"|"x"|"x""#])
            #expect(try await server.head() >= 2)
        }
        let fresh = try await server.device("fresh")
        try await fresh.sync()
        #expect(try await fresh.count("note") == 2)
    }

    @Test("rows that a new device brings to a store that was lost keep nobody's edits and deletes out (I6, I11)")
    func newDevice() async throws {
        let server = try RestorableServer()
        let a = try await server.device("a", schema: Self.seeds)
        try await a.sync()
        try await a.sql("UPDATE note SET title = 'edited' WHERE id = 'n1'; DELETE FROM note WHERE id = 'n2'")
        try await a.sync()
        try await server.lose()
        let fresh = try await server.device(
            "fresh", schema: Self.seeds.replacing("'first', 'first'", with: "'fresh', 'fresh'"))
        try await Device.sync(fresh, a, fresh)
        for device in [a, fresh] { #expect(try await device.rows(Self.rows) == [#""n1"|"edited"|"first""#]) }
        #expect(try await a.engine().conflicts().isEmpty)
    }
}
