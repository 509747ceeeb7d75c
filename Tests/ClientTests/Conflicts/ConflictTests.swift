import Foundation
import GRDB
import Synchronization
import Testing
import TidemarkCore
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Conflicts: what each side set, what stands, and how to take it back")
struct ConflictTests {
    @Test("A field that both have set is listed where it was overwritten, with base, mine, theirs and result")
    func overwritten() async throws {
        let pair = try await Pair()
        try await pair.share()
        try await pair.changeThere()
        try await pair.here.sql("UPDATE note SET title = 'mine'")
        let engine = try pair.here.engine()
        try await engine.syncNow()
        let conflict = try #require(try await engine.conflicts().first)
        #expect(conflict.rule == .lastWriteWins && !conflict.isOpen)
        #expect(
            conflict.fields == [
                .init(name: "title", base: "base", mine: "mine", theirs: "theirs", result: "mine")
            ])
        #expect(conflict.version == 2 && conflict.editedAt != nil && conflict.theirsAt != nil)
        // The other side may have it after all.
        try await engine.resolve(conflict, with: .takeTheirs)
        #expect(try await pair.titles() == ["theirs"])
        #expect(try await engine.conflicts().first?["title"]?.result == "theirs")
        try await engine.dismiss(conflict)
        #expect(try await engine.conflicts().isEmpty)
    }

    @Test("Both have made the record: what was overwritten is listed, as made on nothing", arguments: [true, false])
    func bothMade(isHeardFirst: Bool) async throws {
        let pair = try await Pair()
        try await pair.changeThere("INSERT INTO note VALUES ('n1', 'theirs', 'text', 1, NULL)")
        var configuration = SyncConfiguration()
        if isHeardFirst {
            // The other one's row comes with the answer to this one's insert.
            configuration.operationLimit = 1
            try await pair.here.sql("INSERT INTO note VALUES ('n0', 'other', 'text', 1, NULL)")
        }
        try await pair.here.sql("INSERT INTO note VALUES ('n1', 'mine', 'text', 1, NULL)")
        let engine = try pair.here.engine(configuration)
        try await engine.syncNow()
        let conflict = try #require(try await engine.conflicts().first { $0.record == "n1" })
        #expect(
            conflict.fields == [.init(name: "title", base: nil, mine: "mine", theirs: "theirs", result: "mine")])
    }

    @Test("The base of an edit stays known when another row comes under it before it is sent")
    func baseUnderneath() async throws {
        let pair = try await Pair()
        try await pair.share()
        try await pair.changeThere()
        try await expectBase(pair)
    }

    /// Edits the title while the exchange that brings the other row is under way, and expects that what it was made on
    /// is known.
    private func expectBase(_ pair: Pair) async throws {
        let engine = try pair.here.engine()
        await pair.here.wire.next { request, inner in
            try await pair.here.sql("UPDATE note SET title = 'mine'")
            return try await inner.send(request)
        }
        for _ in 0..<2 { try await engine.syncNow() }
        let conflict = try #require(try await engine.conflicts().first)
        #expect(conflict["title"]?.base == "base")
        #expect(conflict["title"]?.theirs == "theirs")
        #expect(try await pair.here.count("tidemark_shadow_note") == 0)
    }

    @Test("The base of an edit stays known when the verdict on an earlier one brings another row under it")
    func baseUnderVerdict() async throws {
        let pair = try await Pair()
        try await pair.share()
        try await pair.changeThere()
        // The server merges this edit with their row while the other field is edited.
        try await pair.here.sql("UPDATE note SET body = 'mine'")
        try await expectBase(pair)
    }

    // MARK: The later edit

    @Test("The later edit wins whichever device syncs first, and the loser can restore its own")
    func laterEdit() async throws {
        for earlyFirst in [true, false] {
            let pair = try await Pair(.state("note", conflict: .lastEditWins))
            try await pair.share()
            let (early, late) = (pair.here, pair.there)
            try await early.sql("UPDATE note SET title = 'early'")
            try await late.sql("UPDATE note SET title = 'late'")
            for device in earlyFirst ? [early, late] : [late, early] { try await device.sync() }
            #expect(try await pair.titles() == ["late"])
            let loser = try (earlyFirst ? late : early).engine()
            let conflict = try #require(try await loser.conflicts().first)
            #expect(conflict.rule == .lastEditWins)
            #expect(conflict["title"]?.base == "base")
            #expect(conflict["title"]?.result == "late")
            #expect(conflict["title"]?.mine == (earlyFirst ? "late" : "early"))
            guard !earlyFirst else { continue }
            try await loser.resolve(conflict, with: .keepMine)
            #expect(try await pair.titles() == ["early"])
        }
    }

    @Test("A device whose clock stands in 2099 or in 1970 neither wins nor loses for ever", arguments: [2099, 1970])
    func wrongClock(year: Int) async throws {
        let pair = try await Pair(.state("note", conflict: .lastEditWins))
        try await pair.share()
        let stamp = EditStamp(milliseconds: year == 2099 ? 4_070_908_800_000 : 1000).packed
        for round in 0..<2 {
            // The wrong clock edits first and the right one second: the second stands.
            try await pair.here.sql("UPDATE note SET title = 'wrong \(round)'")
            try await pair.here.sql("UPDATE tidemark_shadow_note SET tidemark_edited = \(stamp)")
            try await pair.here.sync()
            try await pair.there.sql("UPDATE note SET title = 'right \(round)'")
            #expect(try await pair.titles() == ["right \(round)"])
        }
        // It has synced since, so its next edit is later, and stands.
        try await pair.here.sql("UPDATE note SET title = 'wrong again'")
        #expect(try await pair.titles() == ["wrong again"])
    }

    @Test(
        "Capture stamps edits as the hybrid clock does: later than all heard, whatever the wall clock says"
    )
    func stamps() async throws {
        let pair = try await Pair(.state("note", conflict: .lastEditWins))
        try await pair.share()
        let future = EditStamp(milliseconds: 4_070_908_800_000)
        try await pair.here.sql("UPDATE tidemark_counter SET clock = \(future.packed)")
        try await pair.here.sql("UPDATE note SET title = 'a'; UPDATE note SET body = 'b'")
        var clock = HybridClock(last: future)
        _ = clock.tick(at: 0)
        let expected = clock.tick(at: 0)
        #expect(try await pair.here.rows("SELECT tidemark_edited FROM tidemark_shadow_note") == ["\(expected.packed)"])
        _ = try await pair.here.seal(declarations: Declarations(entities: [.state("note", conflict: .lastEditWins)]))
        #expect(try await pair.here.sealed().first?.contains(#""editedAt":"\#(expected.text)","syncedAt":"#) == true)
        // And an answer's time is heard.
        try await pair.here.sql("UPDATE tidemark_counter SET clock = 5")
        try await pair.here.apply(#"{"results":[],"syncedAt":9000}"#)
        #expect(
            try await pair.here.rows("SELECT clock FROM tidemark_counter") == [
                "\(EditStamp(milliseconds: 9000).packed)"
            ])
    }

    @Test("An edit that is older than the last sync is not made younger by it")
    func editBeforeSync() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let declarations = Declarations(entities: [.state("note", conflict: .lastEditWins)])
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        try await device.sql("UPDATE tidemark_shadow_note SET tidemark_edited = \(EditStamp(milliseconds: 50).packed)")
        try await device.sql("UPDATE tidemark_scope SET synced_at = 60")
        _ = try await device.seal(declarations: declarations)
        let sealed = try #require(try await device.sealed().first)
        #expect(sealed.contains(#""editedAt":"0000000000320000""#))
        #expect(!sealed.contains("syncedAt"))
    }

    // MARK: The app decides

    func clash(_ pair: Pair) async throws {
        try await pair.share()
        try await pair.changeThere()
        try await pair.here.sql("UPDATE note SET title = 'mine', rank = 7")
    }

    @Test("Deletes win: an edit that was lost to one is listed with all that was known, and can be made again whole")
    func deleteWins() async throws {
        for editFirst in [true, false] {
            let pair = try await Pair()
            try await pair.share()
            let engine = try pair.here.engine()
            try await pair.here.sql("UPDATE note SET title = 'mine'")
            if editFirst { try await engine.syncNow() }
            try await pair.changeThere("DELETE FROM note")
            try await engine.syncNow()
            #expect(try await pair.titles() == [])
            let conflict = try #require(try await engine.conflicts().first)
            #expect(conflict.rule == .deleteWins && conflict.isDeletedElsewhere)
            #expect(conflict["title"]?.mine == "mine")
            #expect(conflict["title"]?.result == nil)
            #expect(editFirst || conflict["title"]?.base == "base")
            try await engine.resolve(conflict, with: .keepMine)
            #expect(try await pair.titles() == ["mine"])
            #expect(try await pair.there.rows("SELECT body, rank FROM note") == ["\"text\"|1"])
            #expect(try await engine.rejectedOperations().isEmpty)
        }
    }

    @Test("Edits win: a delete that did not see one restores the row, and says so")
    func deleteLoses() async throws {
        let pair = try await Pair(.state("note", deletes: .lose))
        try await pair.share()
        try await pair.changeThere()
        try await pair.here.sql("DELETE FROM note")
        let engine = try pair.here.engine()
        try await engine.syncNow()
        #expect(try await pair.titles() == ["theirs"])
        let conflict = try #require(try await engine.conflicts().first)
        #expect(conflict.rule == .editWins && conflict.isDelete)
        #expect(conflict.fields == [.init(name: "title", base: "base", mine: nil, theirs: "theirs", result: "theirs")])
        // Having seen it, the user deletes again.
        try await engine.resolve(conflict, with: .keepMine)
        #expect(try await pair.titles() == [])
    }

    @Test("Edits win: an edit revives a deleted record on every device, whole")
    func editRevives() async throws {
        let pair = try await Pair(.state("note", deletes: .lose))
        try await pair.share()
        try await pair.changeThere("DELETE FROM note")
        try await pair.here.sql("UPDATE note SET title = 'mine'")
        let engine = try pair.here.engine()
        try await engine.syncNow()
        #expect(try await pair.titles() == ["mine"])
        #expect(try await pair.there.rows("SELECT body, rank FROM note") == ["\"text\"|1"])
        let conflict = try #require(try await engine.conflicts().first)
        #expect(conflict.rule == .editWins && conflict.isDeletedElsewhere)
        #expect(conflict["title"] == .init(name: "title", base: "base", mine: "mine", theirs: nil, result: "mine"))
        #expect(try await engine.rejectedOperations().isEmpty)
    }

    // MARK: The list

    @Test("A rule of the operator's that changes an edit is told with both values")
    func serverRule() async throws {
        let rule = EntityRule("note") { edit in
            guard case .text(let title)? = edit.mine["title"] else { return .accept }
            return .set(["title": .text(title.uppercased())])
        }
        let pair = try await Pair(rules: [rule])
        try await pair.share()
        #expect(try await pair.titles() == ["BASE"])
        let engine = try pair.here.engine()
        let conflict = try #require(try await engine.conflicts().first)
        #expect(conflict.rule == .serverRule)
        #expect(conflict["title"]?.mine == "base" && conflict["title"]?.result == "BASE")
    }

    @Test("The list is bounded, but what is open stays")
    func bounded() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let list = try await device.writer.write { db in
            for index in 0..<5 {
                try Conflicts.add(
                    db,
                    Conflict(
                        id: 0, scope: "w:1", entity: "note", record: "n\(index)", rule: .manual,
                        fields: [
                            .init(name: "a", base: .real(.infinity), mine: .blob([1]), theirs: nil, result: .null)
                        ],
                        isOpen: index == 0, noticedAt: Date(milliseconds: 1)))
            }
            try db.execute(sql: "UPDATE tidemark_conflict SET id = id + 20000 WHERE id > 3")
            try Conflicts.add(
                db,
                Conflict(
                    id: 0, scope: "w:1", entity: "note", record: "n9", rule: .manual, fields: [],
                    noticedAt: Date(milliseconds: 1)))
            return try Conflicts.all(db)
        }
        #expect(list.map(\.record) == ["n0", "n3", "n4", "n9"])
        #expect(
            list.first?.fields == [
                .init(name: "a", base: .real(.infinity), mine: .blob([1]), theirs: nil, result: .null)
            ])
    }
}
