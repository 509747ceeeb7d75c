import GRDB
import Testing
import TidemarkServer

@testable import Tidemark

@Suite("A record comes under an id that another row has here")
struct IDCollisionTests {
    /// The app's schema refuses what was edited under the old id; the edit was on its way to another scope.
    @Test("an edit that the schema refuses waits in the scope that it leaves, and is sent as the move that it is")
    func refused() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        try await world.server.commit(to: "w:a") { changes in
            for id in ["old", "new"] as [RecordID] { changes.upsert("item", id: id, ["w": "a", "title": "theirs"]) }
        }
        try await device.sync()
        try await device.sql(
            """
            CREATE TRIGGER strict BEFORE INSERT ON item WHEN NEW.id = 'new' AND NEW.title = 'mine'
            BEGIN SELECT RAISE(ABORT, 'not now'); END
            """)
        try await device.sql("UPDATE item SET w = 'b', title = 'mine' WHERE id = 'old'")
        try await device.writer.write { db in
            let shape = try TableSchema(db, table: "item", rule: MultiScopeWorld.rule)
            try CaptureSuppression.raise(db)
            try Renaming(db: db, scope: "w:a", table: RecordTable(shape)).move(
                "old", [.text([UInt8]("old".utf8))], to: "new", [.text([UInt8]("new".utf8))])
            try CaptureSuppression.lower(db)
        }
        let quarantined = "tidemark_quarantine WHERE record = 'new' AND scope = 'w:a' AND reason = 'not now'"
        #expect(try await device.count(quarantined) == 1)
        for _ in 0..<3 { try await device.sync() }
        #expect(try await world.held("w:b")["new"]?["title"] == "mine")
        #expect(try await world.held("w:a")["new"] == nil)
    }
}
