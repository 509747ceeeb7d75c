import Testing
import TidemarkCore
import TidemarkWire

@testable import Tidemark

/// Scopes seldom go, or come back, in the moment in which one of their records waits for something.
@Suite("A scope goes or comes back, whatever its records wait for")
struct ScopeCellTests {
    private static let seeds = "INSERT INTO note(id, title) VALUES ('n1', 'mine')"

    private static func device(seeds: String = "") async throws -> HandServer {
        try await HandServer(noteSchema, tables: [.table("note")], seeds: seeds)
    }

    @Test(
        "it goes with operations in flight",
        .records(
            "in flight delete, orphaned"))
    func flights() async throws {
        for isLoss in [true, false] {
            for base in VerdictCellTests.Base.allCases {
                let device = try await VerdictCellTests.write(over: base).device
                try await device.remove(isLoss: isLoss)
                #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 0)
            }
            let device = try await Self.device()
            try await device.page(VerdictCellTests.note("n1"))
            try await device.sql("DELETE FROM note")
            try await device.seal()
            try await device.remove(isLoss: isLoss)
            #expect(try await device.count("tidemark_orphan WHERE kind = 'delete'") == 1)
        }
    }

    @Test(
        "it goes with edits that were not sent",
        .records(
            "base deleted, orphaned"))
    func edits() async throws {
        for isLoss in [true, false] {
            for isDeleted in [false, true] {
                let device = try await Self.device()
                try await device.page(VerdictCellTests.note("n1"))
                try await device.sql("UPDATE note SET title = 'mine'")
                if isDeleted { try await device.page(VerdictCellTests.gone("n1")) }
                try await device.remove(isLoss: isLoss)
                #expect(try await device.count("tidemark_orphan") == 1)
            }
        }
    }

    @Test(
        "it goes with an edit for which there was no room",
        .records(
            "queue deferred, orphaned"))
    func full() async throws {
        for isLoss in [true, false] {
            let (device, entry) = try await VerdictCellTests.write(over: .absent)
            try await device.answer(
                entry, #""status":"deferred","error":{"code":"quota_exceeded","detail":"d","hint":"h"}"#)
            #expect(try await device.count("tidemark_shadow_note WHERE tidemark_mark < 0") == 1)
            try await device.remove(isLoss: isLoss)
            #expect(try await device.count("tidemark_orphan") == 1)
        }
    }

    @Test(
        "it goes with a record that the server is to be asked for",
        .records(
            "knowledge refetch, accessLost", "knowledge refetch, scopeLeft"))
    func refetch() async throws {
        for isLoss in [true, false] {
            let (device, entry) = try await VerdictCellTests.write(over: .present)
            try await device.answer(entry, #""status":"settled""#)
            #expect(try await device.count("tidemark_refetch") == 1)
            try await device.remove(isLoss: isLoss)
            #expect(try await device.count("tidemark_refetch") == 0)
        }
    }

    @Test(
        "it goes with a row of the first capture, and comes back",
        .records(
            "base absent, seedBack", "base seeded, orphaned", "queue idle, seedBack"))
    func seed() async throws {
        for isCompared in [true, false] {
            let device = try await Self.device(seeds: Self.seeds)
            try await device.page(VerdictCellTests.note("n2"))
            if isCompared { try await device.compare() }
            try await device.remove()
            #expect(try await device.count("tidemark_orphan WHERE kind = 'seed'") == 1)
            try await device.page(VerdictCellTests.note("n2"))
            #expect(try await device.count("note") == 2)
            #expect(try await device.seal() != nil)
        }
    }

    @Test(
        "a row of the first capture comes back where another one was made and taken back",
        .records(
            "queue queued, seedBack"))
    func seedOverMark() async throws {
        let device = try await Self.device(seeds: Self.seeds)
        try await device.page(VerdictCellTests.note("n2"))
        try await device.remove()
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'other'); DELETE FROM note WHERE id = 'n1'")
        try await device.page(VerdictCellTests.note("n2"))
        #expect(try await device.seal() != nil)
    }

    @Test(
        "a row of the first capture comes back over one for which there was no room",
        .records(
            "queue deferred, seedBack"))
    func seedOverFull() async throws {
        let device = try await Self.device(seeds: Self.seeds)
        try await device.page(VerdictCellTests.note("n2"))
        try await device.remove()
        try await device.page(isLast: false, VerdictCellTests.note("n2"))
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'other')")
        let entry = try await device.seal()
        try await device.answer(
            entry, #""status":"deferred","error":{"code":"quota_exceeded","detail":"d","hint":"h"}"#)
        try await device.sql("DELETE FROM note WHERE id = 'n1'")
        try await device.page(VerdictCellTests.note("n2"))
        #expect(try await device.count("tidemark_shadow_note WHERE tidemark_mark > 0") == 1)
    }

    @Test(
        "a row of the first capture that no server takes is given up",
        .records(
            "C6 seedIsPending"))
    func seedGivenUp() async throws {
        let device = try await Self.device(seeds: "INSERT INTO note(id, title) VALUES ('n1', CAST(X'FF' AS TEXT))")
        try await device.page()
        try await device.compare()
        #expect(try await device.seal() == nil)
        try await device.decide { db, schema in
            for refused in try RejectedOperation.all(db) { try refused.discard(db, schema) }
        }
        #expect(try await device.count("note") == 0)
    }

    @Test(
        "a row of the first capture in a table that only comes down",
        .records(
            "base seeded, forbidden", "base seeded, pruned"))
    func pulled() async throws {
        for isFilled in [true, false] {
            let device = try await Self.device(seeds: Self.seeds)
            if isFilled { try await device.page(VerdictCellTests.note("n2")) }
            try await device.compare()
            var note = EntityDeclaration("note")
            note.direction = .pull
            #expect(try await device.seal(declarations: Declarations(entities: [note])) == nil)
            #expect(try await device.count("tidemark_shadow_note") == 0)
            #expect(try await device.count("note WHERE id = 'n1'") == (isFilled ? 0 : 1))
        }
        let device = try await Self.device(seeds: Self.seeds)
        try await device.compare()
        try await device.sql("DELETE FROM note")
        var note = EntityDeclaration("note")
        note.direction = .pull
        #expect(try await device.seal(declarations: Declarations(entities: [note])) == nil)
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }
}
