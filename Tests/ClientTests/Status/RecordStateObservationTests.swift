import Foundation
import GRDB
import Observation
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Observations of how records stand, and of what needs a word", .hangLimit)
struct RecordStateObservationTests {
    private static let states = ValueObservation.tracking { db in
        try RecordState.fetchAll(
            db, sql: "SELECT s.* FROM note LEFT JOIN tidemark_state_note AS s USING (id) ORDER BY note.id")
    }.removeDuplicates()

    @Test("a badge follows an edit, its sending, its confirmation and its refusal")
    func badge() async throws {
        let directory = try TestDirectory()
        let rule = EntityRule("note") { $0.proposed["title"] == "bad" ? .reject(code: "no", detail: "No.") : .accept }
        let server = try Device.server(in: directory, rules: [rule])
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory, usesPool: true)
        var seen = Self.states.values(in: device.writer).makeAsyncIterator()
        #expect(try await seen.next() == [])
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        #expect(try await seen.next() == [.pending])
        await device.wire.loseRequest()
        _ = try? await device.sync()
        #expect(try await seen.next() == [.sent])
        try await device.sync()
        #expect(try await seen.next() == [.confirmed])
        try await device.sql("UPDATE note SET title = 'bad'")
        #expect(try await seen.next() == [.pending])
        let engine = try device.engine()
        try await engine.syncNow()
        while let next = try await seen.next(), next != [.rejected(reason: "No.")] {}
        try await engine.discard(try #require(try await engine.rejectedOperations().first))
        #expect(try await seen.next() == [.confirmed])
    }

    @Test("it follows what no trigger saw, also where only that turns out to be nothing")
    func unseen() async throws {
        let device = try await Device(noteSchema, tables: ["note"], usesPool: true)
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        try await device.sync()
        var seen = Self.states.values(in: device.writer).makeAsyncIterator()
        #expect(try await seen.next() == [.confirmed])
        try await device.writer.write { db in
            try SyncEngine.removeCapture(db)
            try db.execute(sql: "UPDATE note SET title = 'unseen'")
        }
        let engine = try device.engine()
        try await engine.install()
        #expect(try await seen.next() == [.inferred])
        try await device.writer.write { db in
            try CaptureSuppression.raise(db)
            try db.execute(sql: "UPDATE note SET title = NULL")
            try CaptureSuppression.lower(db)
        }
        try await engine.syncNow()
        #expect(try await seen.next() == [.confirmed])
    }

    @Test("the list of quarantined rows can be observed as a value")
    func quarantined() async throws {
        let device = try await Device(noteSchema, tables: ["note"], usesPool: true)
        var seen = ValueObservation.tracking(QuarantinedRecord.fetchAll).removeDuplicates()
            .values(in: device.writer).makeAsyncIterator()
        #expect(try await seen.next() == [])
        let changes = [
            Device.upsert("note", "n1", 1, #"{"slug":"x"}"#), Device.upsert("note", "n2", 2, #"{"slug":"x"}"#),
        ]
        try await device.apply(Device.page(changes))
        let row = try #require(try await seen.next()?.first)
        #expect(row.entity == "note" && row.record == "n2" && row.scope == "w:1" && row.fields["slug"] == .text("x"))
        #expect(row.reason.contains("UNIQUE"))
        try await device.apply(
            Device.page([Device.upsert("note", "n1", 3, #"{"slug":"y"}"#)], since: "T1", next: "T2"), since: "T1")
        #expect(try await seen.next() == [])
    }

    @Test("the list of refused edits can be observed as a value")
    func rejected() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(
            in: directory, rules: [EntityRule("note") { _ in .reject(code: "no", detail: "No.") }])
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory, usesPool: true)
        var seen = ValueObservation.tracking(RejectedOperation.fetchAll).map { $0.map(\.record) }.removeDuplicates()
            .values(in: device.writer).makeAsyncIterator()
        #expect(try await seen.next() == [])
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        let engine = try device.engine()
        try await engine.syncNow()
        #expect(try await seen.next() == ["n1"])
        try await engine.discard(try #require(try await engine.rejectedOperations().first))
        #expect(try await seen.next() == [])
    }

    @Test("the list of conflicts can be observed as a value")
    func conflicts() async throws {
        let second = try await Pair.beforeConflict().there
        var seen = ValueObservation.tracking(Conflict.fetchAll).map { $0.filter(\.isOpen).map(\.record) }
            .removeDuplicates().values(in: second.writer).makeAsyncIterator()
        #expect(try await seen.next() == [])
        let engine = try second.engine()
        try await engine.syncNow()
        #expect(try await seen.next() == ["n"])
        try await engine.resolve(try #require(try await engine.conflicts().first), with: .takeTheirs)
        #expect(try await seen.next() == [])
    }

    @Test("an observable status changes with the engine's, and what reads it is told")
    @MainActor func observable() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let engine = try device.engine()
        let shown = ObservableStatus()
        let following = Task { await shown.follow(engine) }
        defer { following.cancel() }
        func reading(until isThere: (SyncStatus) -> Bool) async {
            while !isThere(shown.status) {
                let (changes, change) = AsyncStream.makeStream(of: Void.self)
                let isDone = withObservationTracking {
                    isThere(shown.status)
                } onChange: {
                    change.finish()
                }
                if !isDone { for await _ in changes {} }
            }
        }
        #expect(shown.status == SyncStatus() && shown.fraction == nil)
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        try await engine.syncNow()
        await reading { $0.lastSync != nil && $0.isConfirmed }
        #expect(shown.status.rows.confirmed == 1)
        #expect(shown.status.activity == .idle)
    }

    @Test("a bar is shown for what has a total and is not done, rows that come before edits that go")
    @MainActor func fraction() {
        func fraction(_ received: SyncProgress.Part, _ sent: SyncProgress.Part) -> Double? {
            ObservableStatus(progress: SyncProgress(sent: sent, received: received)).fraction
        }
        #expect(fraction(.init(done: 1, total: 4), .init(done: 1, total: 2)) == 0.25)
        #expect(fraction(.init(done: 4, total: 4), .init(done: 1, total: 2)) == 0.5)
        #expect(fraction(.init(done: 4), .init(done: 2, total: 2)) == nil)
    }
}
