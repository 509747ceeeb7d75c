import Foundation
import GRDB
import Synchronization
import Testing
import TidemarkCore
import TidemarkServer
import TidemarkWire

@testable import Tidemark

extension ConflictTests {
    @Test("Manual: the row is the server's, the edit waits, and each decision travels")
    func manual() async throws {
        let decisions: [(Conflict.Resolution, String, String)] = [
            (.keepMine, "mine", "7"), (.takeTheirs, "theirs", "1"), (.merge(["title": "both"]), "both", "1"),
        ]
        for (resolution, title, rank) in decisions {
            let pair = try await Pair(.state("note", conflict: .manual))
            try await clash(pair)
            let engine = try pair.here.engine()
            let report = try await engine.syncNow()
            #expect(report.conflicts == 1 && report.rejected == 0)
            #expect(try await pair.here.rows("SELECT title, rank FROM note") == ["\"theirs\"|1"])
            #expect(try await engine.state(of: "note", id: "n1") == .undecided)
            #expect(try await engine.status().undecided == 1)
            #expect(try await engine.rejectedOperations().isEmpty)
            let conflict = try #require(try await engine.conflicts().first)
            #expect(conflict.isOpen && conflict.rule == .manual)
            #expect(
                conflict["title"] == .init(name: "title", base: "base", mine: "mine", theirs: "theirs", result: nil))
            #expect(conflict["rank"] == .init(name: "rank", base: 1, mine: 7, theirs: 1, result: nil))
            // It is not sent again by itself, and not swept off the list.
            try await engine.dismiss(conflict)
            #expect(try await engine.syncNow().pushed == 0)
            try await engine.resolve(conflict, with: resolution)
            #expect(try await pair.titles() == [title])
            #expect(try await pair.there.rows("SELECT rank FROM note") == [rank])
            #expect(try await engine.status().undecided == 0)
            #expect(try await engine.state(of: "note", id: "n1") == .confirmed)
            #expect(try await pair.here.count("tidemark_operation WHERE state = 'conflict'") == 0)
        }
    }

    @Test("Manual: a conflict of a record that is quarantined with a later edit waits for its decision")
    func quarantined() async throws {
        let pair = try await Pair.beforeConflict()
        let engine = try pair.there.engine()
        try await engine.syncNow()
        let conflict = try #require(try await engine.conflicts().first)
        // It cannot be sent, so that it is still there when another record takes the slug.
        try await pair.there.sql("UPDATE note SET slug = 's', body = CAST(x'ff' AS TEXT)")
        try await engine.syncNow()
        _ = try await pair.server.commit(to: Device.scope) { $0.upsert("note", id: "a", ["slug": "s"]) }
        try await engine.syncNow()
        #expect(try await pair.there.rows("SELECT id FROM note") == [#""a""#])
        let error = await #expect(throws: SyncError.self) { try await engine.resolve(conflict, with: .keepMine) }
        #expect(error?.code == .recordGone)
        #expect(try await engine.conflicts().contains { $0.isOpen })
        try await pair.there.sql("UPDATE note SET slug = NULL WHERE id = 'a'")
        try await engine.syncNow()
        try await engine.resolve(conflict, with: .keepMine)
        #expect(try await pair.there.rows("SELECT title, slug FROM note WHERE id = 'n'") == [#""b"|"s""#])
    }

    @Test("Manual: a handler decides in the same sync; one that answers nothing or throws leaves it in the list")
    func handler() async throws {
        struct NotNow: Error {}
        for answer in ["keep", "nothing", "throw"] {
            let pair = try await Pair(.state("note", conflict: .manual))
            try await clash(pair)
            let asked = Mutex(0)
            let engine = try pair.here.engine { conflict in
                asked.withLock { $0 += 1 }
                #expect(conflict["title"]?.mine == "mine")
                if answer == "throw" { throw NotNow() }
                return answer == "keep" ? .keepMine : nil
            }
            try await engine.syncNow()
            try await engine.syncNow()
            #expect(asked.withLock { $0 } == 1)
            #expect(try await engine.status().undecided == (answer == "keep" ? 0 : 1))
            #expect(try await pair.titles() == [answer == "keep" ? "mine" : "theirs"])
            guard answer != "keep" else { continue }
            // The next start of the app asks again.
            let next = try pair.here.engine { _ in .keepMine }
            try await next.syncNow()
            #expect(try await pair.titles() == ["mine"])
        }
    }

    @Test("Manual: what a trigger of the app's forbids or skips stays in the list, and the sync goes on")
    func skipped() async throws {
        for raise in ["RAISE(ABORT, 'no')", "RAISE(IGNORE)"] {
            let pair = try await Pair(.state("note", conflict: .manual))
            try await clash(pair)
            try await pair.here.sql(
                "CREATE TRIGGER keep BEFORE UPDATE ON note WHEN NEW.title = 'no' BEGIN SELECT \(raise); END")
            let engine = try pair.here.engine { _ in .merge(["title": "no"]) }
            for _ in 0..<2 { try await engine.syncNow() }
            #expect(try await engine.status().undecided == 1)
            #expect(try await pair.titles() == ["theirs"])
        }
    }

    @Test(
        "Manual: a decision for this device leaves alone what was edited or deleted here since",
        arguments: [("UPDATE note SET title = 'later'", "later" as Value?), ("DELETE FROM note", nil)])
    func decidedLate(since: String, stands: Value?) async throws {
        let pair = try await Pair(.state("note", conflict: .manual))
        try await clash(pair)
        let engine = try pair.here.engine()
        try await engine.syncNow()
        let conflict = try #require(try await engine.conflicts().first { $0.isOpen })
        try await pair.here.sql(since)
        try await engine.resolve(conflict, with: .keepMine)
        #expect(try await pair.here.count("note") == (stands == nil ? 0 : 1))
        #expect(try await engine.conflicts().first { $0.id == conflict.id }?["title"]?.result == stands)
        try await engine.syncNow()
        #expect(try await pair.titles() == (stands == nil ? [] : ["later"]))
    }

    @Test("Manual: what was typed on top of an edit that waits is judged as made on the same row")
    func editedOnTop() async throws {
        let pair = try await Pair(.state("note", conflict: .manual))
        try await clash(pair)
        await pair.here.wire.next { request, inner in
            let answer = try await inner.send(request)
            try await pair.here.sql("UPDATE note SET title = 'mine too', body = 'more'")
            return answer
        }
        let engine = try pair.here.engine()
        try await engine.syncNow()
        // The second edit has not seen theirs either: it does not slip through.
        let open = try await engine.conflicts()
        #expect(open.map(\.isOpen) == [true, true])
        #expect(try await pair.titles() == ["theirs"])
        try await engine.resolve(try #require(open.last), with: .keepMine)
        #expect(try await pair.titles() == ["mine too"])
        #expect(try await pair.there.rows("SELECT body FROM note") == ["\"more\""])
    }

    @Test("Manual: a decision about a record that was deleted meanwhile makes it anew")
    func deletedMeanwhile() async throws {
        let pair = try await Pair(.state("note", conflict: .manual))
        try await clash(pair)
        let engine = try pair.here.engine()
        try await engine.syncNow()
        let conflict = try #require(try await engine.conflicts().first)
        try await pair.there.sql("DELETE FROM note")
        #expect(try await pair.titles() == [])
        try await engine.resolve(conflict, with: .keepMine)
        #expect(try await pair.titles() == ["mine"])
        #expect(try await pair.there.rows("SELECT body, rank FROM note") == ["\"text\"|7"])
    }

    // MARK: Deletes and edits
}
