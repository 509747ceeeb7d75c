import GRDB
import SampleApps
import Testing
import TidemarkTesting

@Suite("Apps that migrate")
struct MigratingAppTests {
    /// What a device does to its schema after a day on which another one has changed all of 10,000 rows, and what its
    /// user writes before anybody looks.
    private static let upheavals = [
        "1 edit rebuild 3", "1 edit rebuildWith 1", "1 edit rebuildWithout 1", "1 edit dropTriggers 1",
        "1 edit restoreTable 1", "1 edit renameTable 1\n1 edit renameTable 1", "1 edit renameColumn 1",
    ]

    @Test(
        "no row is lost where a table changes after a day offline, with up to 10,000 changes elsewhere",
        arguments: upheavals)
    func longOffline(upheaval: String) async throws {
        var app = try #require(SampleApps["migrating"])
        // One of them goes through all rows; the others differ in what is done, and not in how often.
        let rows = upheaval == "1 edit rebuildWith 1" ? 10_000 : 500
        app.acts.append(
            .init("all") { db, choices in
                try db.execute(
                    sql: """
                        WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
                        INSERT INTO note (id, title) SELECT n, ? || n FROM numbers WHERE true
                        ON CONFLICT (id) DO UPDATE SET title = excluded.title
                        """, arguments: [rows - 1, "all \(choices.serial) "])
            })
        let script = try #require(
            Simulation.Script(
                """
                world seed 1 devices 2 users 1 page 1000 hurried unverified
                0 edit all 1
                0 sync
                flow
                1 sync
                flow
                1 edit save 1
                wait 86400000
                0 edit all 1
                0 sync
                flow
                \(upheaval)
                1 edit titleNote 1
                1 edit deleteNote 2
                1 edit addTag 1
                """))
        try await Simulation(of: app).play(script)
    }
}
