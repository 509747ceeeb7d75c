import GRDB
import Testing

/// What the disk itself is worth: SQLite alone on it survives what it promises to, and nothing more.
///
/// `TIDEMARK_DISK_RUNS` sets how many runs of each kind there are, of three images each.
@Suite("A disk that loses power keeps what SQLite was promised, and only that")
struct FaultDiskTests {
    private static let runs = Amount.named("TIDEMARK_DISK_RUNS", or: 40)

    private func findings(_ database: PlainDatabase) throws -> [PlainDatabase.Finding: Int] {
        var counts: [PlainDatabase.Finding: Int] = [:]
        for seed in 1...UInt64(Self.runs) {
            for finding in try database.play(seed: seed, images: 3) { counts[finding, default: 0] += 1 }
        }
        return counts
    }

    @Test(
        "with every commit synced, no commit that was told is lost, and none is half there",
        arguments: [
            PlainDatabase(), PlainDatabase(hasReaders: true), PlainDatabase(traits: .keepsNames),
            PlainDatabase(journal: "delete", synchronous: "EXTRA"),
            PlainDatabase(journal: "delete", traits: .keepsNames),
            PlainDatabase(journal: "truncate"), PlainDatabase(journal: "persist"),
        ])
    func durable(_ database: PlainDatabase) throws {
        let found = try findings(database)
        #expect(Set(found.keys) == [.whole], "\(found)")
    }

    @Test(
        "without, the last commits may go, and nothing else",
        arguments: [
            // SQLite does not sync the directory when a commit takes the journal away, unless it is told to.
            PlainDatabase(synchronous: "NORMAL"), PlainDatabase(journal: "delete"),
        ])
    func ordered(_ database: PlainDatabase) throws {
        let found = try findings(database)
        #expect(Set(found.keys) == [.whole, .earlier], "\(found)")
    }

    @Test(
        "syncs that do nothing are found out",
        arguments: [
            PlainDatabase(synchronous: "OFF"), PlainDatabase(traits: .syncLies),
            PlainDatabase(journal: "delete", synchronous: "OFF"), PlainDatabase(journal: "delete", traits: .syncLies),
        ])
    func lies(_ database: PlainDatabase) throws {
        let found = try findings(database)
        #expect(found[.corrupt, default: 0] + found[.torn, default: 0] > 0, "\(found)")
    }

    @Test(
        "a call that fails once leaves the others alone, and the next attempt succeeds",
        arguments: [
            FaultDisk.Fault.busy, .full, .badWrite, .badSync, .badRead,
        ])
    func failingCall(_ fault: FaultDisk.Fault) throws {
        let disk = FaultDisk()
        let queue = try DatabaseQueue(path: disk.path("a.sqlite"))
        try queue.write { db in try db.execute(sql: "CREATE TABLE t (a); PRAGMA cache_size = 0") }
        disk.fail(at: 1, fault)
        #expect(throws: DatabaseError.self) {
            try queue.write { db in try db.execute(sql: "INSERT INTO t VALUES (1)") }
        }
        #expect(disk.failures == 1)
        try queue.write { db in try db.execute(sql: "INSERT INTO t VALUES (2)") }
        #expect(try queue.read { try Int.fetchAll($0, sql: "SELECT a FROM t") } == [2])
        #expect(try queue.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok")
    }

    @Test("a process that only ends keeps all that was written; disks do not see each other")
    func processEnd() throws {
        let (disk, other) = (FaultDisk(.syncLies), FaultDisk())
        let pool = try DatabasePool(path: disk.path("a.sqlite"))
        try pool.write { db in try db.execute(sql: "CREATE TABLE t (a); INSERT INTO t VALUES (1)") }
        let image = disk.image(1, .keepsWrites)
        #expect(throws: DatabaseError.self) { try pool.write { db in try db.execute(sql: "INSERT INTO t VALUES (2)") } }
        let again = try DatabasePool(path: image.path("a.sqlite"))
        #expect(try again.read { try Int.fetchAll($0, sql: "SELECT a FROM t") } == [1])
        var configuration = Configuration()
        configuration.readonly = true
        #expect(throws: DatabaseError.self) {
            try DatabaseQueue(path: other.path("a.sqlite"), configuration: configuration)
        }
        #expect(disk.isOff && !image.isOff && image.count(.write) > 0)
    }
}
