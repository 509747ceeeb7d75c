import GRDB
import TidemarkTesting

/// SQLite alone on a disk whose power goes off: random transactions, and what is left of them.
struct PlainDatabase {
    var journal = "wal"
    var synchronous = "FULL"
    var traits: FaultDisk.Traits = []
    /// Readers hold the WAL back from being begun anew.
    var hasReaders = false

    /// What may be wrong with an image.
    enum Finding: String {
        /// The state after the last commit that was told, or after the one that was under way.
        case whole
        /// An earlier state: the last commits are gone, and nothing else is wrong.
        case earlier
        /// No state that ever was.
        case torn
        /// SQLite says so itself.
        case corrupt
    }

    private var configuration: Configuration {
        var configuration = Configuration()
        let (journal, synchronous) = (journal, synchronous)
        configuration.prepareDatabase { db in
            // Small pages, a cache of few of them and a short WAL: everything happens often.
            try db.execute(sql: "PRAGMA page_size = 1024; PRAGMA cache_size = 12")
            try db.execute(sql: "PRAGMA journal_mode = \(journal)")
            try db.execute(sql: "PRAGMA synchronous = \(synchronous); PRAGMA wal_autocheckpoint = 20")
        }
        return configuration
    }

    /// One run of transactions with the power going off at a random call, looked at in several images.
    func play(seed: UInt64, images: Int) throws -> [Finding] {
        var generator = SplitMix64(seed: seed)
        let disk = FaultDisk(traits)
        var states: [[String]] = []
        var told = 0
        do {
            let queue = try DatabaseQueue(path: disk.path("plain.sqlite"), configuration: configuration)
            let reader = hasReaders ? try DatabaseQueue(path: queue.path, configuration: configuration) : nil
            try queue.write { db in
                try db.execute(sql: "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, body BLOB)")
                try db.execute(sql: "CREATE INDEX t_n ON t (n)")
            }
            states.append([])
            disk.fail(at: .random(in: 1...1500, using: &generator), .powerCut)
            for number in 1...40 {
                try queue.inTransaction {
                    try change($0, number, &generator)
                    // Kept before the commit: it may be there although nobody is told.
                    states.append(try Self.state($0))
                    return .commit
                }
                told = number
                if generator.chance(30) { _ = try reader?.read { try Self.state($0) } }
            }
        } catch is DatabaseError {}
        guard !states.isEmpty else { return [] }
        return try (0..<images).map { index in
            try look(disk.image(seed &* 31 &+ UInt64(index), traits), states, told)
        }
    }

    private func change(_ db: Database, _ number: Int, _ generator: inout SplitMix64) throws {
        for _ in 0..<Int.random(in: 1...8, using: &generator) {
            let id = Int.random(in: 0..<40, using: &generator)
            if generator.chance(25) {
                try db.execute(sql: "DELETE FROM t WHERE id = ?", arguments: [id])
            } else {
                let size = Int.random(in: 0...3000, using: &generator)
                try db.execute(
                    sql: "INSERT OR REPLACE INTO t VALUES (?, ?, zeroblob(?) || ?)",
                    arguments: [id, number, size, "\(number)"])
            }
        }
    }

    private static func state(_ db: Database) throws -> [String] {
        try String.fetchAll(db, sql: "SELECT id || ' ' || n || ' ' || length(body) FROM t ORDER BY id")
    }

    private func look(_ disk: FaultDisk, _ states: [[String]], _ told: Int) throws -> Finding {
        do {
            let queue = try DatabaseQueue(path: disk.path("plain.sqlite"), configuration: configuration)
            return try queue.read { db in
                guard try String.fetchAll(db, sql: "PRAGMA integrity_check") == ["ok"] else { return .corrupt }
                let state = try Self.state(db)
                if states[told...].contains(state) { return .whole }
                return states[..<told].contains(state) ? .earlier : .torn
            }
        } catch let error as DatabaseError {
            // No table at all: what made it is gone too.
            return error.message?.contains("no such table") == true ? .earlier : .corrupt
        }
    }
}
