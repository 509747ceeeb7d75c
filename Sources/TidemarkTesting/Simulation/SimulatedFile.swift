import Foundation
import GRDB
import Tidemark

/// The database file of a simulated device. It stays open from world to world, and what is in it is replaced below the
/// connection: to open a file and to prepare all statements again takes longer than a whole world.
///
/// Unchecked because everything of a world happens on one thread.
final class SimulatedFile: @unchecked Sendable {
    let queue: DatabaseQueue
    private let url: URL
    /// What SQLite takes for the time, in milliseconds since 1970: edits are stamped by it.
    var clock: () -> Int64 = { 0 }
    private var editWatcher: (number: Int, notify: @Sendable () -> Void)?
    private var watcherCount = 0
    /// Whether another process writes just now: the watcher hears of it at its next poll.
    var isForeign = false
    private var editObservation: AnyDatabaseCancellable?
    /// Tells SQLite that what it remembers of the file is outdated. Far from all numbers that its own transactions may
    /// have come to since.
    private var changes: UInt32 = 0

    init(at url: URL, hasForeignKeys: Bool = true) throws {
        self.url = url
        var configuration = Configuration()
        configuration.foreignKeysEnabled = hasForeignKeys
        configuration.prepareDatabase { db in
            for setting in ["synchronous = OFF", "journal_mode = MEMORY", "locking_mode = EXCLUSIVE"] {
                try db.execute(sql: "PRAGMA \(setting)")
            }
        }
        queue = try DatabaseQueue(path: url.path, configuration: configuration)
        try queue.write { [unowned self] db in
            db.add(
                function: DatabaseFunction("julianday", argumentCount: 1) { [unowned self] _ in
                    Double(clock()) / 86_400_000 + 2_440_587.5
                })
        }
    }

    /// Calls the last one that came, after each commit of edits. The observation behind it stays: with each that comes
    /// or goes GRDB forgets all statements that delete.
    func watchEdits(_ notify: @escaping @Sendable () -> Void) -> AnyDatabaseCancellable {
        watcherCount += 1
        let number = watcherCount
        editWatcher = (number, notify)
        if editObservation == nil {
            editObservation = queue.onEdits { [unowned self] in
                if !isForeign { editWatcher?.notify() }
            }
        }
        return AnyDatabaseCancellable { [self] in
            if editWatcher?.number == number { editWatcher = nil }
        }
    }

    /// The whole file, as a copy of it would be. Nobody may be writing.
    func contents() throws -> Data { try Data(contentsOf: url) }

    /// The file is a copy of another one from now on. Nobody may be using it.
    func replace(with contents: Data) throws {
        var contents = contents
        changes &+= 1 << 16
        // The file change counter, and the place that says which change the size was noted at (SQLite's file format,
        // 1.3).
        for place in [24, 92] where contents.count >= 100 {
            withUnsafeBytes(of: changes.bigEndian) { contents.replaceSubrange(place..<place + 4, with: $0) }
        }
        let former = try queue.unsafeRead { db in try Int64.fetchOne(db, sql: "PRAGMA schema_version") } ?? 0
        try lock("NORMAL")
        let handle = try FileHandle(forWritingTo: url)
        defer { try? handle.close() }
        try handle.write(contentsOf: contents)
        try handle.truncate(atOffset: UInt64(contents.count))
        try lock("EXCLUSIVE")
        try forgetSchema(former, contents)
    }

    /// How often the schema had changed in the file that worlds begin with.
    var firstSchema: Int64?

    /// SQLite knows a schema by how often it has changed, and GRDB does not look: where acts have changed it, two files
    /// may have the same number and not the same tables.
    private func forgetSchema(_ former: Int64, _ contents: Data) throws {
        guard contents.count >= 44 else { return }
        let version = contents[40..<44].reduce(Int64(0)) { $0 << 8 | Int64($1) }
        guard former != firstSchema || version != firstSchema else { return }
        try queue.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA writable_schema = RESET")
            db.clearSchemaCache()
        }
    }

    /// While nobody else may use the file, SQLite asks the system for nothing that it knows.
    private func lock(_ mode: String) throws {
        try queue.writeWithoutTransaction { db in
            _ = try String.fetchOne(db.cachedStatement(sql: "PRAGMA locking_mode = \(mode)"))
            _ = try Int.fetchOne(db.cachedStatement(sql: "SELECT 1 FROM sqlite_master"))
        }
    }
}
