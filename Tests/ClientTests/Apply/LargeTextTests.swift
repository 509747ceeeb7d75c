import Foundation
import GRDB
import Testing
import TidemarkCore
import TidemarkSQLite
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Large texts travel as patches both ways, and whole where a base is not known (A9)")
struct LargeTextTests {
    private let directory: TestDirectory
    private let store: SQLiteStore
    private let server: SyncServer
    private static let text = (0..<2000).map { "Line \($0): the tide — it comes, it goes. ☾\n" }.joined()

    init() throws {
        directory = try TestDirectory()
        store = try SQLiteStore(path: directory.url.appending(path: "server.sqlite").path)
        server = SyncServer(store: store, entities: [.state("note", patch: ["body"])])
    }

    private func device(_ name: String) async throws -> Device {
        try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: name)
    }

    /// Two devices that hold the same large note.
    private func pair() async throws -> (Device, Device) {
        let (here, there) = (try await device("a"), try await device("b"))
        try await here.sql("INSERT INTO note (id, title, body) VALUES ('n1', 'tides', '\(Self.text)')")
        try await here.sync()
        try await there.sync()
        return (here, there)
    }

    private func replace(_ device: Device, _ old: String, _ new: String) async throws {
        try await device.sql("UPDATE note SET body = replace(body, '\(old)', '\(new)') WHERE id = 'n1'")
    }

    private func body(_ device: Device) async throws -> String? { try await device.rows("SELECT body FROM note").first }

    /// The same text on both devices, and nothing left to do.
    private func check(_ devices: Device..., contains words: String...) async throws {
        let first = try #require(try await body(devices[0]))
        for word in words { #expect(first.contains(word)) }
        for device in devices {
            #expect(try await body(device) == first)
            #expect(try await device.count("tidemark_shadow_note") == 0)
            #expect(try await device.engine().rejectedOperations().isEmpty)
            #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 0)
        }
    }

    @Test("a small edit costs a small part of the document, up and down")
    func bothWays() async throws {
        let (here, there) = try await pair()
        try await replace(here, "Line 700: the tide", "Line 700: the *spring* tide")
        try await here.sql("UPDATE note SET title = 'spring tides'")
        let up = try await here.engine().syncNow()
        let down = try await there.engine().syncNow()
        #expect(up.bytesSent * 10 < Self.text.utf8.count)
        #expect(down.bytesReceived * 10 < Self.text.utf8.count)
        let request = try #require(await here.wire.bodies.last { $0.contains("\"patch\"") })
        #expect(request.contains(#""type":"patch","entity":"note","id":"n1","baseVersion":1,"#))
        #expect(request.contains(#""patch":[{"field":"body","splices":[["#))
        #expect(request.contains(#""fields":{"title":"spring tides"}"#))
        #expect(await there.wire.answers.last?.contains(#""base":1,"patch":[{"field":"body","#) == true)
        #expect(try await there.rows("SELECT title FROM note") == ["\"spring tides\""])
        try await check(here, there, contains: "*spring*")
        #expect(up.pushed == 1)
        #expect(down.applied == 1)
    }

    @Test("edits of both sides at once: the later text stands, the other is listed, both devices agree")
    func concurrent() async throws {
        let (here, there) = try await pair()
        try await replace(here, "Line 7:", "Line 7 (a):")
        try await replace(there, "Line 1900:", "Line 1900 (b):")
        try await here.sync()
        try await there.sync()
        try await here.sync()
        try await check(here, there, contains: "Line 1900 (b)")
        #expect(try await body(here)?.contains("(a)") == false)
        #expect(try await there.engine().conflicts().flatMap(\.fields).map(\.name) == ["body"])
    }

    @Test("an edit that waits is sent as a patch of the row that came under it meanwhile")
    func rebased() async throws {
        let (here, there) = try await pair()
        try await replace(here, "Line 7:", "Line 7 (a):")
        try await here.sync()
        // Edited while a page is on its way: the page's row goes under the edit.
        await there.wire.next { request, inner in
            try await there.sql("UPDATE note SET body = replace(body, 'Line 1900:', 'Line 1900 (b):')")
            return try await inner.send(request)
        }
        for _ in 0..<2 { try await there.sync() }
        let sent = try #require(await there.wire.bodies.last { $0.contains("\"number\"") })
        #expect(sent.contains(#""type":"patch","entity":"note","id":"n1","baseVersion":2,"bases":{"body":1}"#))
        #expect(sent.utf8.count * 10 < Self.text.utf8.count)
        try await here.sync()
        try await check(here, there, contains: "Line 1900 (b)")
        #expect(try await there.engine().conflicts().flatMap(\.fields).map(\.name) == ["body"])
    }

    @Test("a server that no longer has the text before is sent it whole, and nobody is told")
    func baseUnknownThere() async throws {
        let (here, there) = try await pair()
        try await replace(here, "Line 7:", "Line 7 (a):")
        try await replace(there, "Line 1900:", "Line 1900 (b):")
        try await here.sync()
        // The window passes: the row that the other edit was made on is gone.
        #expect(try await store.sweep(supersededBefore: .max, limit: 100) == 1)
        let report = try await there.engine().syncNow()
        #expect(report.rejected == 0)
        try await here.sync()
        try await check(here, there, contains: "Line 1900 (b)")
        let bodies = await there.wire.bodies.filter { $0.contains("\"number\"") }
        #expect(bodies.map { $0.contains(#""type":"patch""#) } == [true, false])
        #expect(await there.wire.answers.contains { $0.contains("patch_base_unknown") })
        // Once it has arrived, patches travel again.
        try await replace(there, "Line 3:", "Line 3 (c):")
        try await there.sync()
        #expect(await there.wire.bodies.last { $0.contains("\"number\"") }?.contains(#""type":"patch""#) == true)
        try await here.sync()
        try await check(here, there, contains: "(c)")
    }

    /// Two devices of which the other one's text is not what the server thinks, unnoticed, and this one has an edit.
    private func pairOfTwoTexts() async throws -> (here: Device, there: Device) {
        let (here, there) = try await pair()
        try await there.sql(
            """
            INSERT INTO tidemark_applying VALUES (1); UPDATE note SET body = 'something else';
            DELETE FROM tidemark_applying
            """)
        try await replace(here, "Line 7:", "Line 7 (a):")
        return (here, there)
    }

    @Test("a device whose text is not what the server thinks asks for the page again, whole", arguments: [1, 500])
    func baseUnknownHere(page: Int) async throws {
        let (here, there) = try await pairOfTwoTexts()
        try await here.sql("INSERT INTO note (id) VALUES ('n2'), ('n3')")
        try await here.sync()
        var configuration = SyncConfiguration()
        (configuration.pageRange, configuration.firstPage) = (page...page, page)
        let engine = try there.engine(configuration)
        try await engine.syncNow()
        try await check(here, there, contains: "(a)")
        #expect(try await there.count("note") == 3)
        let asked = await there.wire.bodies.map { $0.contains(#""patches":true"#) }
        #expect(asked.filter { !$0 }.count == (page == 1 ? 3 : 1))
        try await replace(here, "Line 8:", "Line 8 (c):")
        try await here.sync()
        try await engine.syncNow()
        #expect(await there.wire.answers.last?.contains(#""type":"patch""#) == true)
        try await check(here, there, contains: "(c)")
    }

    @Test("verdicts count although the page that came with them has to come again")
    func mismatchWithVerdicts() async throws {
        let (here, there) = try await pairOfTwoTexts()
        try await here.sync()
        try await there.sql("INSERT INTO note (id) VALUES ('mine')")
        let report = try await there.engine().syncNow()
        #expect(report.pushed == 1)
        #expect(try await there.rows("SELECT state FROM tidemark_operation") == ["\"applied\""])
        try await here.sync()
        #expect(try await there.rows("SELECT * FROM note ORDER BY id") == here.rows("SELECT * FROM note ORDER BY id"))
    }

    @Test("a patch lost on its way up is sent again as it was, and has one effect")
    func lostAnswer() async throws {
        let (here, there) = try await pair()
        try await replace(here, "Line 7:", "Line 7 (a):")
        await here.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await here.sync() }
        try await replace(here, "Line 9:", "Line 9 (c):")
        try await here.sync()
        try await there.sync()
        try await check(here, there, contains: "(a)", "(c)")
        #expect(try await here.engine().conflicts().isEmpty)
    }

    @Test("a refused patch shows the whole text, and a short text travels as it is")
    func refused() async throws {
        let (here, there) = try await pair()
        try await there.sql("DELETE FROM note")
        try await there.sync()
        try await replace(here, "Line 7:", "Line 7 (a):")
        let engine = try here.engine()
        try await engine.syncNow()
        let refused = try await engine.rejectedOperations()
        #expect(refused.map(\.code) == ["record_deleted"])
        #expect(refused.first?.fields["body"] == .text(Self.text.replacing("Line 7:", with: "Line 7 (a):")))
        try await here.sql("INSERT INTO note (id, body) VALUES ('n2', 'short')")
        try await here.sync()
        try await here.sql("UPDATE note SET body = 'shorter' WHERE id = 'n2'")
        try await here.sync()
        #expect(await here.wire.bodies.last { $0.contains("\"number\"") }?.contains(#""type":"upsert""#) == true)
    }
}
