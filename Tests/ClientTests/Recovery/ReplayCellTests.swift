import Testing
import TidemarkTesting

@testable import Tidemark

/// A server that has lost history takes what is replayed as a rule. What else it may say of it is tried here.
@Suite("Every verdict on an operation that is replayed")
struct ReplayCellTests {
    private static let refusal = #""status":"rejected","error":{"code":"validation_failed","detail":"d","hint":"h"}"#
    private static let conflict = #""status":"conflict""#
    private static let row = #"{"title":"theirs","body":"text","rank":1}"#
    private static let rows = [
        "", #","record":{"version":1000,"data":\#(row)}"#, #","record":{"version":1000,"deleted":true}"#,
    ]

    /// Answers the first push that holds an operation of this number.
    private static func answer(_ members: String) -> Wire.Step {
        { request, inner in
            let body = String(decoding: request.body, as: UTF8.self)
            guard request.path == "/sync/push", let key = body.firstMatch(of: /"lane":"(\w+)","number":(\d+)/) else {
                return try await inner.send(request)
            }
            let results = #"{"results":[{"lane":"\#(key.1)","number":\#(key.2),\#(members)}]}"#
            return TransportResponse(
                status: 200, headers: ["Content-Type": "application/json"], body: Array(results.utf8))
        }
    }

    /// A device whose last operation the server has lost.
    private static func device(_ edit: String) async throws -> Device {
        let (server, a, _) = try await RestorableServer.pair(
            sharing: "INSERT INTO note(id, title) VALUES ('n1', 'old'), ('n2', 'old')")
        try await server.backUp()
        try await a.sql(edit)
        try await a.sync()
        try await server.restore()
        return a
    }

    @Test(
        "a replayed write that is refused, or has met another, ends as its verdict says",
        .records(
            "in flight replayedWrite, verdict conflict, gone", "in flight replayedWrite, verdict rejected, present"))
    func write() async throws {
        for answer in Self.rows.flatMap({ [Self.refusal + $0, Self.conflict + $0] }) {
            let device = try await Self.device("UPDATE note SET title = 'mine' WHERE id = 'n1'")
            for _ in 0..<3 { await device.wire.next(Self.answer(answer)) }
            try? await device.sync()
            #expect(try await device.count("tidemark_operation WHERE state IN ('rejected', 'conflict')") == 1)
        }
    }

    @Test(
        "a replayed delete that is refused ends as its verdict says",
        .records(
            "in flight replayedDelete, verdict rejected, gone", "in flight replayedDelete, verdict rejected, present",
            "in flight replayedDelete, verdict rejected, same"))
    func delete() async throws {
        for row in Self.rows {
            let device = try await Self.device("DELETE FROM note WHERE id = 'n1'")
            for _ in 0..<3 { await device.wire.next(Self.answer(Self.refusal + row)) }
            try? await device.sync()
            #expect(try await device.count("tidemark_operation WHERE state = 'rejected'") == 1)
        }
    }

    @Test(
        "a replayed delete that had no verdict before the loss, and is put off, is an edit again",
        .records(
            "in flight replayedDelete, verdict deferredDelete, same"))
    func putOff() async throws {
        let device = try await HandServer(noteSchema, tables: [.table("note")])
        try await device.page(VerdictCellTests.note("n1"))
        try await device.sql("DELETE FROM note")
        try await device.seal()
        let replayed = try await device.loseHistory()
        #expect(try await device.count("tidemark_operation WHERE state = 'replayed'") == 1)
        try await device.answer(replayed, #""status":"deferred","after":1"#)
        #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 0)
        #expect(try await device.count("tidemark_shadow_note WHERE tidemark_mark > 0") == 1)
    }

    @Test(
        "a replayed edit without a verdict is orphaned with its scope",
        .records("in flight replayedDelete, orphaned"))
    func removed() async throws {
        for edit in ["UPDATE note SET title = 'mine' WHERE id = 'n1'", "DELETE FROM note WHERE id = 'n1'"] {
            let device = try await Self.device(edit)
            await device.wire.next { request, inner in try await inner.send(request) }
            await device.wire.loseRequest()
            try? await device.sync()
            #expect(try await device.count("tidemark_operation WHERE state = 'replayed'") == 1)
            try await HandServer.remove(Device.scope, from: device.writer, try await device.installed())
            #expect(try await device.count("tidemark_orphan") == 1)
        }
    }
}
