import GRDB
import Testing
import TidemarkWire

@testable import Tidemark

/// Rows that stood in the table before it was captured, in a scope that is followed later than another one.
@Suite("Uncaptured: what was written unseen keeps its place until it is compared (I13)")
struct UncapturedContentionTests {
    private func sync(seeds: String, theirs: String) async throws -> (world: MultiScopeWorld, device: Device) {
        let world = try MultiScopeWorld()
        let other = try await world.device("other", scopes: ["w:a"])
        try await other.sql(theirs)
        try await other.sync()
        let device = try await world.device("device", scopes: ["w:a"], seeds: seeds)
        try await device.sync()
        return (world, device)
    }

    @Test("a row whose id another scope's record has is sent once its scope is followed")
    func sameRecord() async throws {
        let (world, device) = try await sync(
            seeds: "INSERT INTO item(id, w, title) VALUES ('i1', 'b', 'mine');",
            theirs: "INSERT INTO item(id, w, title) VALUES ('i1', 'a', 'theirs')")
        #expect(try await device.items() == ["i1 b mine"])
        try await device.sync(["w:a", "w:b"])
        #expect(try await world.held("w:b")["i1"]?["title"] == "mine")
    }

    @Test("a row whose unique value another scope's record has is sent once its scope is followed")
    func sameValue() async throws {
        let (world, device) = try await sync(
            seeds: "INSERT INTO item(id, w, title, slug) VALUES ('i9', 'b', 'mine', 's');",
            theirs: "INSERT INTO item(id, w, title, slug) VALUES ('i1', 'a', 'theirs', 's')")
        #expect(try await device.items() == ["i9 b mine"])
        try await device.sync(["w:a", "w:b"])
        #expect(try await world.held("w:b")["i9"]?["title"] == "mine")
        try await device.sync(["w:a", "w:b"])
        #expect(try await device.items() == ["i1 a theirs"])
    }

    @Test(
        "a row from which a trigger of the app's takes the unique value is sent once its scope is followed",
        arguments: ["note", "lower(note)", "title, lower(note)"], ["", "edited", "captured again"])
    func triggerMakesRoom(values: String, meanwhile: String) async throws {
        let world = try MultiScopeWorld()
        let other = try await world.device("other", scopes: ["w:a"])
        let device = try await world.device(
            "device", scopes: ["w:a"],
            seeds: """
                CREATE UNIQUE INDEX only ON item(\(values));
                CREATE TRIGGER room BEFORE INSERT ON item
                BEGIN UPDATE item SET note = NULL WHERE lower(note) = lower(NEW.note) AND id <> NEW.id; END;
                INSERT INTO item(id, w, title, note) VALUES ('i8', 'b', 't', 'q'), ('i9', 'b', 't', 's');
                """)
        try await device.engine(scopes: ["w:a"]).install()
        if meanwhile == "edited" { try await device.sql("UPDATE item SET slug = 'edited' WHERE id = 'i9'") }
        for (id, note) in [("i1", "s"), ("i2", "x")] {
            try await other.sql("INSERT INTO item(id, w, title, note) VALUES ('\(id)', 'a', 't', '\(note)')")
            try await other.sync()
            try await device.sync()
            let rows = try #require(try await device.engine(scopes: ["w:a"]).status().tables["item"])
            #expect(try await device.count("item") == rows.total)
        }
        #expect(try await device.items() == ["i2 a t", "i8 b t", "i9 b t"])
        if meanwhile == "captured again" {
            let names = try await device.rows(
                "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'tidemark_capture_*'")
            for name in names { try await device.sql("DROP TRIGGER \(name)") }
        }
        try await device.sync(["w:a", "w:b"])
        let held = try await world.held("w:b")
        #expect(held["i8"]?["note"] == "q")
        #expect(held["i9"]?["note"] == "s")
        #expect(held["i9"]?["slug"] == (meanwhile == "edited" ? "edited" : nil))
        try await device.sync(["w:a", "w:b"])
        #expect(try await device.items() == ["i1 a t", "i2 a t", "i8 b t"])
    }

    @Test("a row that was written unseen, edited in sight and then quarantined is not taken for deleted")
    func quarantinedEdit() async throws {
        let world = try MultiScopeWorld()
        let (device, other) = (
            try await world.device("device", scopes: ["w:a"]), try await world.device("other", scopes: ["w:a"])
        )
        try await other.sql("INSERT INTO item(id, w, title) VALUES ('i9', 'a', 't')")
        try await Device.sync(other, device)
        try await device.writer.write { db in
            try ConnectionSwitch.triggers.off(db) { try db.execute(sql: "UPDATE item SET title = 'unseen'") }
            // It cannot be sent, so that it waits here, with the unseen title as its base.
            try db.execute(sql: "UPDATE item SET slug = 's', note = CAST(x'ff' AS TEXT)")
        }
        try await other.sql("INSERT INTO item(id, w, title, slug) VALUES ('i1', 'a', 'theirs', 's')")
        try await Device.sync(other, device)
        #expect(try await device.items() == ["i1 a theirs"])
        let names = try await device.rows(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'tidemark_capture_*'")
        for name in names { try await device.sql("DROP TRIGGER \(name)") }
        try await device.sync()
        #expect(try await world.held("w:a")["i9"]?["title"] == "t")
        try await other.sql("UPDATE item SET slug = NULL WHERE id = 'i1'")
        try await Device.sync(other, device)
        #expect(try await device.items() == ["i1 a theirs", "i9 a unseen"])
    }

    @Test("an unseen write in a scope that the row is not in keeps nothing out")
    func elsewhere() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("device", scopes: ["w:a", "w:b"])
        try await device.sql("INSERT INTO item(id, w, title, slug) VALUES ('i9', 'b', 'mine', 's')")
        try await device.sync()
        // The same record was deleted unseen in a scope that the device does not follow any more.
        try await device.sql(
            "INSERT INTO tidemark_inferred(entity, record, scope, kind, held) VALUES ('item', 'i9', 'w:c', 3, 0)")
        let other = try await world.device("other", scopes: ["w:a"])
        try await other.sql("INSERT INTO item(id, w, title, slug) VALUES ('i1', 'a', 'theirs', 's')")
        try await other.sync()
        try await device.sync()
        #expect(try await device.items() == ["i1 a theirs"])
    }
}
