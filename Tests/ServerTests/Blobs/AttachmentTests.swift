import Testing
import TidemarkWire

@testable import TidemarkServer

/// The values that a field may hold which names blobs (A12).
@Suite("Attachments of records")
struct AttachmentTests {
    private static let reference = "sha256:\(String(repeating: "0f", count: 32)):12"

    private func bench() throws -> Bench {
        try Bench(entities: [
            .state("task", attachments: ["photo"]), .events("scan", attachments: ["page"]), .state("note"),
        ])
    }

    @Test("null and a reference are taken, in whichever case the field is named, in records and events")
    func taken() async throws {
        let bench = try bench()
        let answer = try await bench.exchange([
            upsert(1, "t1", #"{"photo":"\#(Self.reference)"}"#), upsert(2, "t2", #"{"Photo":null,"title":"x"}"#),
            upsert(3, "n1", #"{"photo":"anything"}"#, entity: "note"),
            upsert(4, "e1", #"{"page":"\#(Self.reference)"}"#, entity: "scan"),
        ])
        #expect(answer.statuses == ["applied", "applied", "applied", "applied"])
    }

    @Test(
        "Anything else is rejected",
        arguments: [
            #""""#, "7", #"{"$blob":"AAAA"}"#, #""sha256:0f:12""#,
            #""SHA256:\#(String(repeating: "0f", count: 32)):1""#,
            #""sha256:\#(String(repeating: "0F", count: 32)):1""#,
            #""sha256:\#(String(repeating: "0f", count: 32)):-1""#,
            #""sha256:\#(String(repeating: "0f", count: 32)):01""#,
            #""sha256:\#(String(repeating: "0f", count: 32)):1 ""#,
            #""sha256:\#(String(repeating: "0f", count: 32)):9223372036854775808""#,
        ])
    func rejected(value: String) async throws {
        let bench = try bench()
        let answer = try await bench.exchange([
            upsert(1, "t1", #"{"PHOTO":\#(value)}"#), upsert(2, "e1", #"{"page":\#(value)}"#, entity: "scan"),
        ])
        #expect(answer.statuses == ["rejected", "rejected"])
        #expect((0...1).allSatisfy { answer.errorCode($0) == RejectionCode.attachmentInvalid })
        #expect(try await bench.pullAll().changes.isEmpty)
    }

    @Test("The server's own program is held to it, too")
    func commits() async throws {
        let bench = try bench()
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "t1", ["photo": .text(Self.reference)]) }
        let error = await #expect(throws: CommitError.self) {
            try await bench.server.commit(to: "s") { $0.upsert("task", id: "t1", ["photo": "x"]) }
        }
        #expect(error?.code == RejectionCode.attachmentInvalid)
    }
}
