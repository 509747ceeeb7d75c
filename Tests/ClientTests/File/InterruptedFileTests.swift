import Foundation
import GRDB
import Synchronization
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// A file that is cut off at any instruction loses no edit, shows no failure, and leaves its connection as the app had
/// set it up.
@Suite("A file that the app interrupts or suspends in the midst of a sync", .hangLimit, .serialized)
struct InterruptedFileTests {
    private static let schema = """
        CREATE TABLE author (id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT ('nobody'));
        CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, mood TEXT NOT NULL DEFAULT ('calm'), slug TEXT UNIQUE,
            author_id TEXT REFERENCES author(id) ON DELETE CASCADE);
        CREATE UNIQUE INDEX title_in_capitals ON note (upper(title));
        """
    private static let rows = "SELECT n.*, a.name FROM note n LEFT JOIN author a ON a.id = author_id ORDER BY n.id"

    /// How the app has set up a connection of its own.
    private static func settings(_ writer: any DatabaseWriter) async throws -> [Int] {
        try await writer.writeWithoutTransaction { db in
            try ["foreign_keys", "synchronous", "recursive_triggers"].map {
                try Int.fetchOne(db, sql: "PRAGMA \($0)") ?? -1
            }
        }
    }

    private struct World {
        let directory: TestDirectory
        let server: SyncServer
        let first: Device
        let path: String
        let writer: any DatabaseWriter

        init(usesPool: Bool, observes: Bool = false) async throws {
            directory = try TestDirectory()
            server = try Device.server(in: directory)
            first = try await Device(
                InterruptedFileTests.schema, tables: ["author", "note"], server: server, in: directory, name: "first")
            path = directory.url.appending(path: "second.sqlite").path
            var configuration = Configuration()
            configuration.observesSuspensionNotifications = observes
            writer =
                usesPool
                ? try DatabasePool(path: path, configuration: configuration)
                : try DatabaseQueue(path: path, configuration: configuration)
            try await writer.write { db in try db.execute(sql: InterruptedFileTests.schema) }
        }

        func engine(_ configuration: SyncConfiguration = SyncConfiguration()) throws -> SyncEngine {
            try SyncEngine(
                for: writer, tables: first.tables, scopes: [Device.scope],
                transport: InProcessTransport(to: server) { _ in .readWrite(as: "ada") }, configuration: configuration)
        }

        func rows(_ sql: String) async throws -> [String] { try await writer.quotedRows(sql) }

        /// Both devices write, in ways that meet: new rows, edits of one row, a unique value that moves, a delete.
        func write(_ round: Int) async throws {
            try await first.sql(
                """
                INSERT INTO author (id) VALUES ('a\(round)');
                INSERT INTO note (id, title, author_id)
                WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
                SELECT 'n\(round)-' || i, 'title \(round) ' || i, 'a\(round)' FROM n;
                UPDATE note SET slug = NULL; UPDATE note SET slug = 'top' WHERE id = 'n\(round)-7';
                UPDATE note SET mood = 'merry \(round)' WHERE id LIKE 'n%-3';
                DELETE FROM author WHERE id = 'a\(round - 2)'
                """)
            try await first.sync()
            try await server.commit(to: Device.scope) {
                $0.upsert("note", id: .init(stringLiteral: "s\(round)"), ["title": .text("s\(round)")])
            }
            try await writer.write { db in
                try db.execute(
                    sql: """
                        INSERT INTO note (id, title) VALUES ('m\(round)', 'mine \(round)');
                        UPDATE note SET title = 'edited \(round) ' || id
                        WHERE id IN ('n\(round - 1)-3', 'n\(round - 1)-5')
                        """)
            }
        }
    }

    /// After how many instructions a use is cut off. Small numbers reach the beginning of a use, large ones the midst
    /// of a page.
    private final class Budgets: Sendable {
        private static let seed = ProcessInfo.processInfo.environment["TIDEMARK_SEED"].flatMap { UInt64($0) } ?? 1
        private let chance: Mutex<SplitMix64>
        private let calm = Mutex(false)

        init(_ stream: UInt64) { chance = Mutex(SplitMix64(seed: Self.seed &* 4 &+ stream)) }

        var isCalm: Bool {
            get { calm.withLock { $0 } }
            set { calm.withLock { $0 = newValue } }
        }

        func next() -> Int? {
            guard !isCalm else { return nil }
            return chance.withLock { chance in
                let scale = UInt64(1) << (chance.next() % 15)
                return Int(3 + chance.next() % (scale * 2))
            }
        }
    }

    private static let attempts = 40

    /// Writes on both devices and syncs one of them, whose file is cut off but in the last attempt, until that is done.
    private func play(_ world: World, _ file: InterruptedFile, _ budgets: Budgets) async throws {
        let before = try await Self.settings(world.writer)
        for round in 1...6 {
            try await world.write(round)
            let engine = try world.engine()
            for attempt in 1...Self.attempts {
                budgets.isCalm = attempt == Self.attempts
                var isDone = false
                do {
                    _ = try await Dependencies.$current.withValue(file) { try await engine.syncNow() }
                    isDone = true
                } catch let error as SyncError {
                    #expect(error.code.rawValue == "database_interrupted" && error.recovery == .wait, "\(error)")
                    #expect(attempt < Self.attempts, "\(error)")
                }
                file.resume()
                #expect(try await Self.settings(world.writer) == before)
                if isDone { break }
            }
            let status = try await engine.status()
            #expect(status.isConfirmed && status.lastError == nil, "\(status): \(String(describing: status.lastError))")
            try await world.first.sync()
            #expect(try await world.rows(Self.rows) == world.first.rows(Self.rows))
        }
        #expect(file.cuts > 60, "\(file.cuts)")
        #expect(try await world.engine().rejectedOperations().isEmpty)
        #expect(try await world.engine().conflicts().allSatisfy { !$0.isOpen })
        #expect(try await world.rows("SELECT DISTINCT mood FROM note WHERE id LIKE 's%'") == [#""calm""#])
        #expect(try await world.rows("SELECT count(*) FROM note WHERE id LIKE 'm%'") == ["6"])
        #expect(try await world.engine().verify().isClean)
    }

    @Test("is left off at any instruction, and goes on without a lost edit or a failure", arguments: [false, true])
    func interrupted(usesPool: Bool) async throws {
        let budgets = Budgets(usesPool ? 0 : 1)
        let file = InterruptedFile(.interrupt) { _ in budgets.next() }
        try await play(World(usesPool: usesPool), file, budgets)
    }

    @Test(
        "is free for others behind the statement that was cut off, and goes on when resumed", arguments: [false, true])
    func suspended(usesPool: Bool) async throws {
        let world = try await World(usesPool: usesPool, observes: true)
        // Another process, which waits for no lock.
        let other = try DatabaseQueue(path: world.path)
        let held = Mutex(0)
        let budgets = Budgets(usesPool ? 2 : 3)
        let file = InterruptedFile(.suspension) {
            do { try other.inDatabase { try $0.execute(sql: "BEGIN IMMEDIATE; COMMIT") } } catch {
                held.withLock { $0 += 1 }
            }
        } budget: { _ in
            budgets.next()
        }
        try await play(world, file, budgets)
        #expect(held.withLock { $0 } == 0)
    }

    @Test("puts a conflict to the handler again whose decision it could not write")
    func decided() async throws {
        let pair = try await Pair.beforeConflict()
        let (first, second) = (pair.here, pair.there)
        let asked = Mutex(0)
        let cuts = Mutex(0)
        let engine = try second.engine(onConflict: { _ in
            asked.withLock { $0 += 1 }
            return .keepMine
        })
        let file = InterruptedFile(.interrupt) { point in
            guard point == .decide else { return nil }
            return cuts.withLock { cuts in
                cuts += 1
                return cuts == 1 ? 3 : nil
            }
        }
        let error = await #expect(throws: SyncError.self) {
            try await Dependencies.$current.withValue(file) { try await engine.syncNow() }
        }
        #expect(error?.code == .databaseInterrupted && file.cuts == 1)
        try await engine.syncNow()
        #expect(asked.withLock { $0 } == 2)
        #expect(try await engine.conflicts().allSatisfy { !$0.isOpen })
        try await first.sync()
        #expect(try await first.rows("SELECT title FROM note") == [#""b""#])
    }

    @Test("shows a wait while it is suspended, and a running engine goes on when it is resumed")
    func resumed() async throws {
        let world = try await World(usesPool: true, observes: true)
        var configuration = SyncConfiguration()
        // No wait of its own ends in this test's time.
        configuration.tick = .seconds(3600)
        configuration.longestWait = .seconds(3600)
        configuration.backoff = .init(base: .seconds(3600), maximum: .seconds(3600))
        let engine = try world.engine(configuration)
        let running = Task { try await engine.run() }
        try await world.write(1)
        try await poll { try await engine.status().isConfirmed }
        try await world.first.sync()

        // It lies just before the seal of these edits.
        try await world.writer.write { db in
            try db.execute(sql: "UPDATE note SET mood = 'mine' WHERE id = 'n1-9'")
            db.afterNextTransaction { _ in
                NotificationCenter.default.post(name: Database.suspendNotification, object: nil)
            }
        }
        try await poll { try await engine.status().lastError != nil }
        let status = try await engine.status()
        #expect(status.lastError?.code.rawValue == "database_interrupted")
        guard case .waiting = status.activity else {
            Issue.record("\(status)")
            return
        }
        #expect(status.rejected + status.quarantined == 0 && status.pending == 1)

        NotificationCenter.default.post(name: Database.resumeNotification, object: nil)
        try await poll { try await engine.status().isConfirmed }
        #expect(try await engine.status().lastError == nil)
        try await world.first.sync()
        #expect(try await world.first.rows("SELECT mood FROM note WHERE id = 'n1-9'") == [#""mine""#])
        await engine.disconnect()
        try await running.value
    }
}
