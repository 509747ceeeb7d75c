import Foundation
import GRDB
import Testing
import TidemarkCore
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Progress has totals", .hangLimit)
struct ProgressTests {
    @Test("edits are counted once in a while, and by what was answered in between")
    func meter() {
        var meter = ProgressMeter()
        var counts = SyncReport.Counts()
        #expect(meter.isDue(counts, now: Instant(milliseconds: 5), isBusy: true))
        meter.counted(1000, answered: 0, now: Instant(milliseconds: 5))
        #expect(
            !meter.isDue(counts, now: Instant(milliseconds: 900), isBusy: true)
                && meter.isDue(counts, now: Instant(milliseconds: 1005), isBusy: true))
        #expect(meter.isDue(counts, now: Instant(milliseconds: 6), isBusy: false))
        // Rows of a first capture were not counted before it.
        counts.pushed = 1001
        #expect(meter.isDue(counts, now: Instant(milliseconds: 6), isBusy: true))
        counts.pushed = 300
        #expect(meter.progress(counts, [], isBusy: true).sent == .init(done: 300, total: 1000))
        meter.counted(800, answered: 300, now: Instant(milliseconds: 1005))
        #expect(meter.progress(counts, [], isBusy: true).sent == .init(done: 300, total: 1100))
        // A report that begins anew counts from nothing.
        #expect(meter.progress(SyncReport.Counts(), [], isBusy: true).sent == .init(done: 0, total: 800))
    }

    @Test("work that begins after a rest counts from nothing, and what is done stays on show until then")
    func rest() {
        var meter = ProgressMeter()
        var counts = SyncReport.Counts()
        (counts.pushed, counts.received) = (10, 40)
        meter.counted(0, answered: 10, now: Instant(milliseconds: 5))
        for _ in 0..<2 {
            let done = meter.progress(counts, [], isBusy: false)
            #expect(done.sent == .init(done: 10, total: 10) && done.received.done == 40)
        }
        meter.counted(3, answered: 10, now: Instant(milliseconds: 6))
        counts.pushed = 11
        let begun = meter.progress(counts, [], isBusy: true)
        #expect(begun.sent == .init(done: 1, total: 3) && begun.received.done == 0)
    }

    @Test("rows have a total where every scope that is being filled has one")
    func fillings() {
        var meter = ProgressMeter()
        var counts = SyncReport.Counts()
        counts.received = 40
        let known = SyncStatus.Bootstrap(rows: 30, total: 100, entity: "note")
        let part = meter.progress(counts, [known], isBusy: true)
        #expect(part.received == .init(done: 40, total: 110) && part.entity == "note")
        #expect(meter.progress(counts, [known, .init(rows: 1)], isBusy: true).received.total == nil)
        #expect(meter.progress(counts, [], isBusy: false).received == .init(done: 40, total: nil))
        #expect(SyncProgress.Part(done: 5, total: 20).fraction == 0.25)
        #expect(SyncProgress.Part(done: 5).fraction == nil && SyncProgress.Part(done: 0, total: 0).fraction == 1)
        #expect(part.description == "sent 0 of 0, received 40 of 110")
    }

    @Test("a server's number of records has a bound, and one that a file keeps adds up with others all the same")
    func bounded() async throws {
        func answer(_ records: Int64) throws -> SnapshotAnswer {
            let text = #"""
                {"scope":"w:1","changes":[],"snapshotToken":"t","head":1,"hasMore":false,"records":\#(records)}
                """#
            return try SnapshotAnswer(body: Array(text.utf8))
        }
        #expect(try answer(1 << 40).records == 1 << 40)
        #expect(throws: JSONError.self) { try answer(1 << 40 + 1) }
        #expect(throws: JSONError.self) { try answer(.max) }
        let device = try await Device(noteSchema, tables: ["note"])
        let fillings = try await device.writer.write { db in
            for scope in ["w:1", "w:2"] as [Scope] { try Bootstrap(scope: scope, total: .max).write(db) }
            return try ProgressMeter.fillings(db, ["w:1", "w:2"])
        }
        var meter = ProgressMeter()
        #expect(meter.progress(SyncReport.Counts(), fillings, isBusy: true).received.total == 2 << 40)
    }

    @Test("a filling knows how many rows there are, also when it is resumed by another engine")
    func resumed() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "a")
        let values = (0..<2500).map { "('k\($0)')" }.joined(separator: ",")
        try await first.sql("INSERT INTO note (id) VALUES \(values)")
        try await first.sync()
        let second = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "b")
        await second.wire.nextPage { request, inner in try await inner.send(request) }
        await second.wire.nextPage { _, _ in throw Wire.Lost() }
        await #expect(throws: SyncError.self) { try await second.sync() }

        let engine = try second.engine()
        let filling = try #require(try await engine.status().scopes["w:1"]?.bootstrap)
        #expect(filling.total == 2500 && filling.rows == 1000)
        var updates = engine.progressUpdates.makeAsyncIterator()
        #expect(await updates.next()?.received == .init(done: 1000, total: 2500))
        let syncing = Task { try await engine.syncNow() }
        var (seen, last): (SyncProgress?, SyncProgress?)
        while let progress = await updates.next() {
            seen = progress.received.total == nil ? seen : progress
            last = progress
            if !progress.isBusy, progress.received.done > 0 { break }
        }
        #expect(try await syncing.value.received == 1500)
        #expect(seen?.received.total == 2500)
        #expect(last?.received.done == 2500)
        #expect(try await engine.status().scopes["w:1"]?.bootstrap == nil)
    }
}
