import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("The app can follow the lists of refused edits and of conflicts", .hangLimit)
struct ObservedListTests {
    @Test("a refused edit comes up in the list, and goes when it is let go of")
    func rejected() async throws {
        let directory = try TestDirectory()
        let rule = EntityRule("note") { edit in edit.id == "bad" ? .reject(code: "not_here", detail: "No.") : .accept }
        let server = try Device.server(in: directory, rules: [rule])
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        let engine = try device.engine()
        var lists = engine.rejectedUpdates.makeAsyncIterator()
        #expect(await lists.next()?.isEmpty == true)
        try await device.sql("INSERT INTO note (id) VALUES ('bad'), ('good')")
        try await engine.syncNow()
        let refused = try #require(await lists.next())
        #expect(refused.map(\.record) == ["bad"])
        try await engine.discard(refused[0])
        #expect(await lists.next()?.isEmpty == true)
    }

    @Test("a conflict comes up in the list, and is taken off it")
    func conflicts() async throws {
        let second = try await Pair.beforeConflict().there
        let engine = try second.engine()
        var lists = engine.conflictUpdates.makeAsyncIterator()
        #expect(await lists.next()?.isEmpty == true)
        try await engine.syncNow()
        let open = try #require(await lists.next()?.first)
        #expect(open.isOpen && open.record == "n")
        try await engine.resolve(open, with: .takeTheirs)
        let decided = try #require(await lists.next())
        #expect(!decided.contains { $0.isOpen })
    }
}
