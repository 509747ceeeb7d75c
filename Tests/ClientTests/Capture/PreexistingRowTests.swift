import GRDB
import Testing
import TidemarkServer

@testable import Tidemark

/// Two devices whose apps bring the same rows with them, or whose migrations make them.
@Suite("Rows that are older than their table's capture give way to the server's (I4, I13)")
struct PreexistingRowTests {
    private static let seeds = """
        CREATE TABLE kind (id TEXT PRIMARY KEY, title TEXT, color TEXT);
        INSERT INTO kind VALUES ('food', 'Food', 'red'), ('rent', 'Rent', 'blue'), ('fun', 'Fun', 'green');
        """
    private static let rows = "SELECT id, title, color FROM kind ORDER BY id"

    private let server: SyncServer
    private let directory: TestDirectory

    init() throws {
        directory = try TestDirectory()
        server = try Device.server(in: directory)
    }

    private func device(_ name: String, _ schema: String = Self.seeds) async throws -> Device {
        try await Device(schema, tables: ["kind"], server: server, in: directory, name: name)
    }

    private func expectConfirmed(_ devices: Device...) async throws {
        for device in devices {
            let rows = try await device.engine().status().rows
            #expect((rows.confirmed, rows.total) == (try await device.count("kind"), try await device.count("kind")))
            #expect(try await device.engine().verify().isClean)
            #expect(try await device.count("tidemark_inferred") == 0)
            try await expectManifest(device)
        }
    }

    /// Expects the manifest to have every row as it stands.
    private func expectManifest(_ device: Device) async throws {
        try await device.writer.read { db in
            let shape = try TableSchema(db, table: "kind", rule: .constant(Device.scope))
            let manifest = Manifest(db: db, scope: Device.scope, entity: "kind")
            for id in try manifest.ids() {
                let row = try #require(try shape.key(of: id).flatMap { try RecordTable(shape).row(db, $0) })
                #expect(try manifest.hash(of: id) == RowHash(shape).hash(PackedID.encode(id), row))
            }
        }
    }

    @Test("the first device sends them, and the next ones change nothing")
    func sameRows() async throws {
        let first = try await device("first")
        let waiting = try await first.engine().status().rows
        #expect((waiting.outgoing, waiting.confirmed, waiting.total) == (3, 0, 3))
        try await first.sync()
        let second = try await device("second")
        try await second.sync()
        try await expectConfirmed(first, second)
        for device in [first, second] { #expect(try await device.engine().conflicts().isEmpty) }
        #expect(try await second.rows(Self.rows).count == 3)
    }

    @Test("rows that are more than are noted together are all held against the server's, and all sent")
    func many() async throws {
        let (first, second) = (
            try await device("first"),
            try await device(
                "second",
                Self.seeds + """
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100)
                    INSERT INTO kind SELECT 'k' || i, 'Kind', NULL FROM n;
                    """)
        )
        for device in [first, second, first] { try await device.sync() }
        #expect(try await first.count("kind") == 1103)
        try await expectConfirmed(first, second)
    }

    @Test("no row comes back from the server that the first device sent it to")
    func nothingBack() async throws {
        let report = try await device("first").engine().syncNow()
        #expect((report.pushed, report.received) == (3, 0))
    }

    @Test("an edit and a delete that others have made stay, and what gave way is listed")
    func othersCameFirst() async throws {
        let first = try await device("first")
        try await first.sync()
        try await first.sql("UPDATE kind SET title = 'Meals' WHERE id = 'food'; DELETE FROM kind WHERE id = 'rent'")
        try await first.sync()
        let second = try await device("second")
        for device in [second, first] { try await device.sync() }
        let rows = [#""food"|"Meals"|"red""#, #""fun"|"Fun"|"green""#]
        for device in [first, second] { #expect(try await device.rows(Self.rows) == rows) }
        try await expectConfirmed(first, second)
        let conflicts = try await second.engine().conflicts()
        #expect(Set(conflicts.map(\.rule)) == [.firstCapture])
        #expect(conflicts.filter(\.isOpen).isEmpty)
        let food = try #require(conflicts.first { $0.record == "food" })
        #expect(food.fields.map(\.name) == ["title"])
        #expect(food["title"]?.mine == .text("Food"))
        #expect(conflicts.first { $0.record == "rent" }?.isDeletedElsewhere == true)
        try await second.engine().resolve(food, with: .keepMine)
        for device in [second, first] { try await device.sync() }
        #expect(try await first.rows(Self.rows).first == #""food"|"Food"|"red""#)
    }

    @Test("a row that was edited before the first sync has an edit of the server's row")
    func editedSince() async throws {
        let first = try await device("first")
        try await first.sync()
        try await first.sql("UPDATE kind SET title = 'Meals', color = 'pink'")
        try await first.sync()
        let second = try await device("second")
        try await second.sql(
            "UPDATE kind SET color = 'black' WHERE id = 'food'; DELETE FROM kind WHERE id = 'fun'")
        let rows = try await second.engine().status().rows
        #expect((rows.outgoing, rows.confirmed, rows.total, rows.deletes) == (2, 0, 2, 1))
        for device in [second, first] { try await device.sync() }
        let expected = [#""food"|"Meals"|"black""#, #""rent"|"Meals"|"pink""#]
        for device in [first, second] { #expect(try await device.rows(Self.rows) == expected) }
        try await expectConfirmed(first, second)
    }

    @Test("where the server has nothing, edits, deletes and rows made anew before the first sync count")
    func touchedAlone() async throws {
        let first = try await device("first")
        try await first.sql(
            """
            UPDATE kind SET color = 'black' WHERE id = 'food'; DELETE FROM kind WHERE id IN ('fun', 'rent');
            INSERT INTO kind VALUES ('rent', 'Again', 'white'), ('new', 'New', 'new')
            """)
        try await first.sync()
        let second = try await device("second", "CREATE TABLE kind (id TEXT PRIMARY KEY, title TEXT, color TEXT)")
        try await second.sync()
        let expected = [#""food"|"Food"|"black""#, #""new"|"New"|"new""#, #""rent"|"Again"|"white""#]
        for device in [first, second] { #expect(try await device.rows(Self.rows) == expected) }
        try await expectConfirmed(first, second)
    }

    @Test("a table that each device's migration makes and fills, in a scope that is filled long since")
    func migration() async throws {
        let note = "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT);"
        var devices: [Device] = []
        for name in ["first", "second"] {
            let device = try await Device(note, tables: ["note"], server: server, in: directory, name: name)
            try await device.sql("INSERT INTO note VALUES ('\(name)', 'x')")
            try await device.sync()
            devices.append(device)
        }
        try await devices[0].sync()
        for (index, name) in ["first", "second"].enumerated() {
            devices[index] = try await Device(
                Self.seeds, tables: ["note", "kind"], server: server, in: directory, name: name)
            try await devices[index].sync()
            guard index == 0 else { continue }
            try await devices[0].sql(
                "UPDATE kind SET title = 'Meals' WHERE id = 'food'; DELETE FROM kind WHERE id = 'fun'")
            try await devices[0].sync()
        }
        for device in devices { try await device.sync() }
        let expected = [#""food"|"Meals"|"red""#, #""rent"|"Rent"|"blue""#]
        for device in devices { #expect(try await device.rows(Self.rows) == expected) }
    }

    @Test(
        "one whose scope is left before the server has it gives way to what came meanwhile",
        arguments: [false, true], [false, true])
    func left(isCompared: Bool, isThereMeanwhile: Bool) async throws {
        let note = "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT);"
        try await Device(note, tables: ["note"], server: server, in: directory, name: "late").sync()
        let device = try await Device(
            Self.seeds, tables: ["note", "kind"], server: server, in: directory, name: "late")
        if isCompared {
            await device.wire.loseRequest()
            await #expect(throws: (any Error).self) { try await device.sync() }
        }
        #expect(try await device.count("tidemark_table WHERE uncompared = 'w:1'") == (isCompared ? 0 : 1))
        try await device.sql("UPDATE kind SET color = 'black' WHERE id = 'fun'")
        try await SyncEngine(for: device.writer, tables: device.tables, scopes: ["w:2"], transport: device.wire)
            .leave(Device.scope)
        #expect(try await device.count("kind") == 0)
        if isThereMeanwhile {
            let other = try await self.device("other")
            try await other.sync()
            try await other.sql("UPDATE kind SET title = 'New', color = 'new'; DELETE FROM kind WHERE id = 'rent'")
            try await other.sync()
        }
        try await device.sync()
        let expected =
            isThereMeanwhile
            ? [#""food"|"New"|"new""#, #""fun"|"New"|"black""#]
            : [#""food"|"Food"|"red""#, #""fun"|"Fun"|"black""#, #""rent"|"Rent"|"blue""#]
        #expect(try await device.rows(Self.rows) == expected)
        let conflicts = try await device.engine().conflicts()
        #expect(conflicts.allSatisfy { !$0.isOpen && $0.rule == .firstCapture })
        #expect(conflicts.isEmpty != isThereMeanwhile)
        try await expectConfirmed(device)
    }

    @Test("a column that the server's record lacks keeps what the row says, and it is sent")
    func lackingColumn() async throws {
        let old = try await Device(
            "CREATE TABLE kind (id TEXT PRIMARY KEY, title TEXT); INSERT INTO kind VALUES ('food', 'Meals')",
            tables: ["kind"], server: server, in: directory, name: "old")
        try await old.sync()
        let newer = try await device("newer")
        let newest = try await device("newest", "CREATE TABLE kind (id TEXT PRIMARY KEY, title TEXT, color TEXT)")
        for device in [newer, newest] {
            try await device.sync()
            #expect(try await device.rows(Self.rows).first == #""food"|"Meals"|"red""#)
        }
        #expect(try await newer.engine().conflicts().flatMap(\.fields).map(\.name) == ["title"])
        try await expectConfirmed(newer, newest)
    }

    @Test("a commit of others between the comparison and the sending stands, and is listed", arguments: [false, true])
    func overtaken(isEdited: Bool) async throws {
        let late = try await device("late")
        await late.wire.loseRequest()
        await #expect(throws: (any Error).self) { try await late.sync() }
        let first = try await device("first", "CREATE TABLE kind (id TEXT PRIMARY KEY, title TEXT, color TEXT)")
        try await first.sql("INSERT INTO kind VALUES ('food', 'Meals', 'pink')")
        try await first.sync()
        // Its page comes before the row is sealed.
        if isEdited { try await late.sql("UPDATE kind SET color = 'black' WHERE id = 'food'") }
        for device in [late, first, late] { try await device.sync() }
        let row = isEdited ? #""food"|"Meals"|"black""# : #""food"|"Meals"|"pink""#
        for device in [late, first] { #expect(try await device.rows(Self.rows).first == row) }
        let listed = try await late.engine().conflicts().filter { $0.rule == .firstCapture }.flatMap(\.fields)
        #expect(listed.contains { $0.name == "title" && $0.mine == .text("Food") })
        try await expectConfirmed(late, first)
    }

    @Test("one that cannot travel goes once it was edited", arguments: ["x'ff'", "hex(zeroblob(600000))"])
    func misfit(value: String) async throws {
        let device = try await device("device", Self.seeds + "UPDATE kind SET title = CAST(\(value) AS TEXT)")
        try await device.sync()
        #expect(try await device.engine().status().rows.unable == 3)
        try await device.sql("UPDATE kind SET title = 'small'")
        try await device.sync()
        let other = try await self.device("other", "CREATE TABLE kind (id TEXT PRIMARY KEY, title TEXT, color TEXT)")
        try await other.sync()
        #expect(try await other.count("kind WHERE title = 'small'") == 3)
        try await expectConfirmed(device, other)
    }

    @Test("a deletion elsewhere takes along what refers to the row, and an edit of it is refused for all to see")
    func deletedElsewhere() async throws {
        let schema =
            Self.seeds + """
                CREATE TABLE item (id TEXT PRIMARY KEY, kind TEXT REFERENCES kind(id) ON DELETE CASCADE);
                """
        func device(_ name: String) async throws -> Device {
            try await Device(schema, tables: ["kind", "item"], server: server, in: directory, name: name)
        }
        let first = try await device("first")
        try await first.sync()
        try await first.sql("DELETE FROM kind WHERE id <> 'food'")
        try await first.sync()
        let second = try await device("second")
        try await second.sql(
            "INSERT INTO item VALUES ('i', 'rent'), ('j', 'food'); UPDATE kind SET color = 'black' WHERE id = 'fun'")
        for device in [second, first, second] { try await device.sync() }
        for device in [first, second] {
            #expect(try await device.rows("SELECT id FROM item") == [#""j""#])
            #expect(try await device.rows("SELECT id FROM kind") == [#""food""#])
        }
        let rules = try await second.engine().conflicts().reduce(into: [:]) { $0[$1.record] = $1.rule }
        #expect(rules == ["rent": .firstCapture, "fun": .deleteWins, "i": .deleteWins])
        for device in [first, second] {
            let rows = try await device.engine().status().rows
            #expect((rows.confirmed, rows.total) == (2, 2))
            #expect(try await device.engine().verify().isClean)
        }
    }

    @Test("a row that a rebuild has touched before the first sync still gives way")
    func rebuiltBefore() async throws {
        let first = try await device("first")
        try await first.sync()
        try await first.sql("UPDATE kind SET title = 'Meals' WHERE id = 'food'")
        try await first.sync()
        let second = try await device("second")
        try await second.sql(
            """
            CREATE TABLE fresh (id TEXT PRIMARY KEY, title TEXT, color TEXT); INSERT INTO fresh SELECT * FROM kind;
            DROP TABLE kind; ALTER TABLE fresh RENAME TO kind
            """)
        for device in [second, first] { try await device.sync() }
        for device in [first, second] {
            #expect(try await device.rows(Self.rows).first == #""food"|"Meals"|"red""#)
            #expect(try await device.engine().conflicts().filter(\.isOpen).isEmpty)
        }
        try await expectConfirmed(first, second)
    }

    @Test(
        "one that is moved to another scope before the first sync goes there, and nowhere else",
        .records("place quarantined, movedIn"),
        arguments: ["", "w:a", "w:b", "a, deleted"], [true, false])
    func moved(elsewhere: String, isSeed: Bool) async throws {
        let world = try MultiScopeWorld()
        let other = try await world.device("other")
        let isDeleted = elsewhere.hasSuffix("deleted")
        if let scope = isDeleted ? "a" : elsewhere.last {
            try await other.sql("INSERT INTO item (id, w, title) VALUES ('i', '\(scope)', 'theirs')")
            try await other.sync()
            if isDeleted {
                try await other.sql("DELETE FROM item")
                try await other.sync()
            }
        }
        let insert = "INSERT INTO item (id, w, title) VALUES ('i', 'a', 'mine'), ('j', 'a', 'mine');"
        let device = try await world.device("device", seeds: isSeed ? insert : "")
        if !isSeed {
            try await device.sync(["w:c"])
            let table = MultiScopeWorld.schema.split(separator: ";")[0]
            try await device.sql("PRAGMA foreign_keys = OFF; DROP TABLE item; \(table); \(insert)")
            try await device.engine().install()
        }
        try await device.sql("UPDATE item SET w = 'b' WHERE id = 'i'; UPDATE item SET w = 'b' WHERE id = 'j'")
        for _ in 0..<2 {
            for device in [device, other] { try await device.sync() }
        }
        let items = try await device.items()
        if !isSeed, elsewhere == "w:a" {
            // Both have made it since: somebody has to decide.
            #expect(try await device.engine().conflicts().map(\.isOpen) == [true])
            #expect(items.map { $0.prefix(3) } == ["i a", "j b"])
            return
        }
        if isDeleted {
            // Nobody has it but this device's user, who is asked.
            #expect(items.map { $0.prefix(3) } == ["j b"])
            #expect(try await other.items() == items)
            let orphaned = try await device.engine().orphanedEdits()
            #expect(orphaned.map(\.record) == ["i"])
            #expect(orphaned.first?.fields["w"] == .text("b"))
            return
        }
        #expect(items.map { $0.prefix(3) } == ["i b", "j b"])
        #expect(try await other.items() == items)
        for device in [device, other] { #expect(try await device.isConfirmed()) }
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await Set(world.held("w:b").keys) == ["i", "j"])
    }
}
