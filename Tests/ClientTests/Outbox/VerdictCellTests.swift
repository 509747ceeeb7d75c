import GRDB
import Testing
import TidemarkWire

@testable import Tidemark

/// Random worlds seldom have a record in the one state, and its server's answer in the other: here is each of both.
@Suite("Every verdict in every state of a record")
struct VerdictCellTests {
    private static let row = #"{"title":"theirs","body":"text","rank":1,"slug":null}"#
    /// What an answer says of the row.
    private static let rows = [
        "", #","record":{"version":VERSION,"data":\#(row)}"#, #","record":{"version":VERSION,"deleted":true}"#,
    ]
    private static let refusal = #""status":"rejected","error":{"code":"validation_failed","detail":"d","hint":"h"}"#
    private static let conflict = #""status":"conflict""#
    private static let later = #""status":"deferred","after":1"#

    static func note(_ id: String, slug: String = "null") -> @Sendable (Int) -> String {
        { Device.upsert("note", id, $0, #"{"title":"base","body":"text","rank":1,"slug":\#(slug)}"#) }
    }

    static func gone(_ id: String) -> @Sendable (Int) -> String { { Device.delete("note", id, $0) } }

    /// What the server is known to have beneath an operation.
    enum Base: CaseIterable { case absent, seeded, present, deleted }

    /// A device with a write of a record in flight.
    static func write(over base: Base) async throws -> (device: HandServer, entry: OutboxEntry?) {
        let seeds = base == .seeded ? "INSERT INTO note(id, title) VALUES ('n1', 'mine')" : ""
        let device = try await HandServer(noteSchema, tables: [.table("note")], seeds: seeds)
        switch base {
        case .absent:
            try await device.page()
            try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'mine')")
        case .seeded:
            try await device.page()
            try await device.compare()
        case .present, .deleted:
            try await device.page(note("n1"))
            try await device.sql("UPDATE note SET title = 'mine'")
        }
        let entry = try await device.seal()
        if base == .deleted { try await device.page(gone("n1")) }
        return (device, entry)
    }

    @Test(
        "a write that is refused, or meets another one",
        .records(
            "base absent, verdict conflict, gone", "base absent, verdict rejected, present",
            "base deleted, verdict conflict, gone", "base deleted, verdict conflict, present",
            "base deleted, verdict rejected, present", "base seeded, verdict conflict, gone",
            "base seeded, verdict conflict, present", "base seeded, verdict conflict, same",
            "base seeded, verdict rejected, gone", "base seeded, verdict rejected, present",
            "base seeded, verdict rejected, same"))
    func refused() async throws {
        for (state, verdict) in [("rejected", Self.refusal), ("conflict", Self.conflict)] {
            for base in Base.allCases {
                for row in Self.rows {
                    let (device, entry) = try await Self.write(over: base)
                    try await device.answer(entry, verdict + row)
                    #expect(try await device.count("tidemark_operation WHERE state = '\(state)'") == 1)
                }
            }
        }
    }

    @Test(
        "a write that is taken, or of which nobody knows",
        .records(
            "base deleted, verdict outcomeUnknown, gone", "base deleted, verdict taken, gone"))
    func taken() async throws {
        for base in Base.allCases {
            for verdict in [
                #""status":"applied","version":VERSION"#, #""status":"merged","version":VERSION"# + Self.rows[1],
                #""status":"merged","version":VERSION"# + Self.rows[2], #""status":"settled""#,
                #""status":"settled","version":VERSION"#,
            ] {
                let (device, entry) = try await Self.write(over: base)
                try await device.answer(entry, verdict)
                #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 0)
            }
        }
    }

    @Test(
        "another refusal or conflict of a record that has some",
        .records(
            "decision conflict, verdict conflict, gone", "decision conflict, verdict conflict, present",
            "decision conflict, verdict conflict, same", "decision conflict, verdict rejected, gone",
            "decision conflict, verdict rejected, present", "decision conflict, verdict rejected, same",
            "decision rejected, verdict conflict, gone", "decision rejected, verdict conflict, present",
            "decision rejected, verdict conflict, same", "decision rejected, verdict rejected, gone",
            "decision rejected, verdict rejected, present", "decision rejected, verdict rejected, same",
            "decision rejectedAndConflict, verdict conflict, gone",
            "decision rejectedAndConflict, verdict conflict, present",
            "decision rejectedAndConflict, verdict conflict, same",
            "decision rejectedAndConflict, verdict rejected, gone",
            "decision rejectedAndConflict, verdict rejected, present",
            "decision rejectedAndConflict, verdict rejected, same", "decision rejectedAndConflict, refusalForgotten"))
    func again() async throws {
        for first in [[Self.refusal], [Self.conflict], [Self.refusal, Self.conflict]] {
            for second in [Self.refusal, Self.conflict] {
                for row in Self.rows {
                    let (device, entry) = try await Self.write(over: .present)
                    var open = entry
                    for verdict in first {
                        try await device.answer(open, verdict)
                        try await device.sql("UPDATE note SET title = title || '1'")
                        open = try await device.seal()
                    }
                    try await device.answer(open, second + row)
                    #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 0)
                    // What is taken makes up for what was refused.
                    try await device.sql("UPDATE note SET title = title || '2'")
                    guard let last = try await device.seal() else { continue }
                    try await device.answer(last, #""status":"applied","version":VERSION"#)
                    #expect(try await device.count("tidemark_operation WHERE state = 'rejected'") == 0)
                }
            }
        }
    }

    @Test(
        "an edit that the operator forbids, of a record that has some",
        .records(
            "decision none, forbidden", "decision conflict, forbidden", "decision rejectedAndConflict, forbidden",
            "local deleted, forbidden"))
    func forbidden() async throws {
        var pulled = EntityDeclaration("note")
        pulled.direction = .pull
        for edit in ["UPDATE note SET title = 'again'", "DELETE FROM note"] {
            for first in [[], [Self.refusal], [Self.conflict], [Self.conflict, Self.refusal]] {
                let device = try await HandServer(noteSchema, tables: [.table("note")])
                try await device.page(Self.note("n1"))
                for verdict in first {
                    try await device.sql("UPDATE note SET title = title || '1'")
                    try await device.answer(try await device.seal(), verdict)
                }
                try await device.sql(edit)
                #expect(try await device.seal(declarations: Declarations(entities: [pulled])) == nil)
                #expect(try await device.count("tidemark_operation WHERE code = 'direction_forbidden'") == 1)
            }
        }
    }

    @Test("a row that the app deleted and made again as it was", .records("local deleted, reverted"))
    func takenBack() async throws {
        let device = try await HandServer(noteSchema, tables: [.table("note")])
        try await device.page(Self.note("n1"))
        try await device.sql("DELETE FROM note")
        // Each look at the file is one of a transaction of the library.
        _ = try await device.schema()
        try await device.sql("INSERT INTO note(id, title, body, rank) VALUES ('n1', 'base', 'text', 1)")
        _ = try await device.schema()
        #expect(try await device.seal() == nil)
    }

    @Test("a record that was deleted under a write, and made anew", .records())
    func revived() async throws {
        let (device, _) = try await Self.write(over: .deleted)
        try await device.page(Self.note("n1"))
        #expect(try await device.count("tidemark_shadow_note WHERE tidemark_state = 1") == 1)
    }

    @Test(
        "a delete that is refused, put off or not known any more",
        .records(
            "in flight delete, verdict deferredDelete, same", "in flight delete, verdict rejected, gone",
            "local clean, verdict deferredDelete, same", "queue idle, verdict deferredDelete, same",
            "queue queued, verdict deferredDelete, same"))
    func deletes() async throws {
        for verdict in Self.rows.map({ Self.refusal + $0 }) + [Self.later, #""status":"settled""#] {
            for isMadeAnew in [false, true] {
                let device = try await HandServer(noteSchema, tables: [.table("note")])
                try await device.page(Self.note("n1"))
                try await device.sql("DELETE FROM note")
                let entry = try await device.seal()
                if isMadeAnew { try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'anew')") }
                try await device.answer(entry, verdict)
                #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 0)
            }
        }
    }

    @Test(
        "a row that the app made anew beside a quarantined one",
        .records(
            "base present, row", "place doubled, accepted", "place doubled, movedOut", "place doubled, orphaned",
            "place doubled, row", "place doubled, tombstone", "place doubled, verdict conflict, gone",
            "place doubled, verdict conflict, present", "place doubled, verdict conflict, same",
            "place doubled, verdict deferredWrite, same", "place doubled, verdict outcomeUnknown, gone",
            "place doubled, verdict outcomeUnknown, present", "place doubled, verdict outcomeUnknown, same",
            "place doubled, verdict rejected, gone", "place doubled, verdict rejected, present",
            "place doubled, verdict rejected, same", "place doubled, verdict taken, gone",
            "place doubled, verdict taken, present", "place doubled, verdict taken, same"))
    func doubled() async throws {
        let taken = #""status":"merged","version":VERSION"#
        let verdicts =
            Self.rows.flatMap { [taken + $0, Self.refusal + $0, Self.conflict + $0] } + [
                #""status":"settled""#, Self.later,
            ]
        for verdict in verdicts {
            let device = try await Self.doubled()
            let entry = try await device.seal()
            try await device.answer(entry, verdict)
            #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 0)
        }
        for change in [Self.note("n2", slug: "\"u\""), Self.gone("n2")] {
            try await Self.doubled().page(change)
        }
        try await Self.doubled().remove()
    }

    @Test("a delete of a row that the app made anew beside a quarantined one, and made once more", .records())
    func doubledDelete() async throws {
        for verdict in [Self.later, #""status":"settled""#] {
            let device = try await Self.doubled()
            let insert = try await device.seal()
            try await device.sql("DELETE FROM note WHERE title = 'anew'")
            try await device.answer(insert, #""status":"applied","version":VERSION"#)
            let delete = try await device.seal()
            try await device.sql(
                "INSERT INTO note(id, title, slug) VALUES ('\(delete?.record ?? "")', 'once more', 'u')")
            try await device.answer(delete, verdict)
            #expect(try await device.count("note WHERE title = 'once more'") == 1)
        }
    }

    private static func doubled() async throws -> HandServer {
        let device = try await HandServer(noteSchema, tables: [.table("note")])
        try await device.page(note("n1", slug: "\"s\""), note("n2", slug: "\"s\""))
        #expect(try await device.count("tidemark_quarantine") == 1)
        let missing = try await device.queue.read { db in
            try String.fetchOne(db, sql: "SELECT record FROM tidemark_quarantine") ?? ""
        }
        try await device.sql("INSERT INTO note(id, title, slug) VALUES ('\(missing)', 'anew', 't')")
        return device
    }
}
