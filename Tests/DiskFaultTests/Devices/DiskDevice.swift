import GRDB
import Tidemark
import TidemarkWire

/// One device: the app's file on a disk that fails, its engine and its wire.
final class DiskDevice {
    /// How the app opens its file.
    enum Opening: String, CaseIterable, Sendable {
        /// One connection and a journal that is deleted, as GRDB's `DatabaseQueue` does.
        case queue
        /// A WAL and several connections, each commit synced.
        case pool
        /// The same as GRDB's `DatabasePool` does: commits are not synced one by one.
        case ordinaryPool

        /// A deleted journal that comes back would undo a commit of a queue's; that is played apart.
        var traits: FaultDisk.Traits { self == .queue ? .keepsNames : [] }
    }

    let name: String
    let cast: Cast
    let opening: Opening
    let wire: Wire
    var disk: FaultDisk
    var scopes: [Scope]
    private(set) var writer: (any DatabaseWriter)?
    private(set) var engine: SyncEngine?

    struct Closed: Error {}

    let traits: FaultDisk.Traits

    init(
        _ name: String, _ cast: Cast, on disk: FaultDisk, _ opening: Opening, _ board: Switchboard,
        _ traits: FaultDisk.Traits = []
    ) {
        self.traits = traits
        (self.name, self.cast, self.disk, self.opening, scopes) = (name, cast, disk, opening, cast.scopes)
        wire = Wire(to: board)
    }

    private var configuration: Configuration {
        var configuration = Configuration()
        configuration.maximumReaderCount = 2
        configuration.prepareDatabase { db in
            // So short that pages move from the WAL into the file within a scenario.
            try db.execute(sql: "PRAGMA wal_autocheckpoint = 30")
        }
        return configuration
    }

    /// A start of the app: its own schema first, then capture.
    func open() async throws {
        close()
        let path = disk.path("app.sqlite")
        let writer: any DatabaseWriter =
            opening == .queue
            ? try DatabaseQueue(path: path, configuration: configuration)
            : try DatabasePool(path: path, configuration: configuration)
        self.writer = writer
        if opening == .pool {
            // Not while connections are prepared: then the pool puts it back.
            try await writer.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA synchronous = FULL") }
        }
        try await migrate(to: 1, cast.schema)
        try await makeEngine()
    }

    func makeEngine() async throws {
        guard let writer else { throw Closed() }
        let engine = try SyncEngine(
            for: writer, tables: cast.tables, scopes: scopes, transport: wire, configuration: cast.configuration)
        self.engine = engine
        try await engine.install()
    }

    /// Takes the app's schema to a version; one that is there already stays.
    func migrate(to version: Int, _ sql: String) async throws {
        try await write { db in
            guard try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0 < version else { return }
            try db.execute(sql: sql)
            try db.execute(sql: "PRAGMA user_version = \(version)")
        }
    }

    func close() {
        engine = nil
        // A disk without power answers with errors here too.
        try? writer?.close()
        writer = nil
    }

    func write(_ body: @Sendable @escaping (Database) throws -> Void) async throws {
        guard let writer else { throw Closed() }
        try await writer.write(body)
    }

    /// An edit of the app's.
    func sql(_ sql: String) async throws { try await write { db in try db.execute(sql: sql) } }

    func sync() async throws {
        guard let engine else { throw Closed() }
        try await engine.syncNow()
    }

    func rows(_ sql: String) async throws -> [String] {
        guard let writer else { throw Closed() }
        return try await writer.read { db in
            try Row.fetchAll(db, sql: sql).map { row in
                row.databaseValues.map { $0.isNull ? "NULL" : $0.description }.joined(separator: "|")
            }.sorted()
        }
    }
}
