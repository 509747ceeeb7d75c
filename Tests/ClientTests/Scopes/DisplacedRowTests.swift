import Testing

@testable import Tidemark

/// A device has made a record for a scope that it does not follow. Another record took its unique value, so that the
/// row is kept off the table. Then the app makes the record anew, in the scope that the device follows.
@Suite("A row of a scope that nobody follows, once the app has made its record anew elsewhere")
struct DisplacedRowTests {
    private enum End: CaseIterable { case movedBack, sealed, deleted, left, lost }

    private static let namesake: @Sendable (Int) -> String = {
        Device.upsert("item", "i1", $0, #"{"w":"1","title":"theirs","note":null,"slug":"s"}"#)
    }

    private static func device() async throws -> HandServer {
        let device = try await HandServer(
            MultiScopeWorld.schema, tables: [.table("item", scope: MultiScopeWorld.rule)])
        try await device.page()
        try await device.sql("INSERT INTO item(id, w, title, slug) VALUES ('i2', '2', 'first', 's')")
        try await device.page(namesake)
        #expect(try await quarantined(device) == 1)
        try await device.sql("INSERT INTO item(id, w, title) VALUES ('i2', '1', 'second')")
        // The records are looked at before and after each of the device's transactions.
        _ = try await device.schema()
        #expect(try await quarantined(device) == 1)
        return device
    }

    private static func quarantined(_ device: HandServer) async throws -> Int {
        try await device.count("tidemark_quarantine WHERE record = 'i2' AND scope = 'w:2'")
    }

    @Test(
        "what the app made last counts, wherever it goes",
        .records(
            "block displaced, released", "block none, blocked displaced", "queue queued, blocked displaced"))
    func last() async throws {
        for end in End.allCases {
            let device = try await Self.device()
            switch end {
            case .movedBack:
                try await device.sql("UPDATE item SET w = '2' WHERE id = 'i2'")
                try await device.page()
                #expect(try await device.count("item WHERE w = '2' AND title = 'second'") == 1)
            case .sealed: #expect(try await device.seal() != nil)
            case .deleted:
                try await device.sql("DELETE FROM item WHERE id = 'i2'")
                try await device.page()
                #expect(try await device.count("item") == 1)
            case .left, .lost:
                try await device.remove(isLoss: end == .lost)
                // The first row is not in the table again, where no mark would tell of it.
                #expect(try await device.count("item") == 0)
                #expect(try await device.count("tidemark_orphan WHERE record = 'i2'") == 1)
            }
            #expect(try await Self.quarantined(device) == 0)
        }
    }
}
