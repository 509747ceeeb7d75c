import GRDB
import TidemarkServer

@testable import TidemarkSQLite

/// The server's store on a disk that fails, and the engine above it.
final class DiskServer {
    private let cast: Cast
    private let board: Switchboard
    var disk: FaultDisk
    private(set) var store: SQLiteStore?
    private(set) var server: SyncServer?

    struct Closed: Error {}

    init(_ cast: Cast, on disk: FaultDisk, _ board: Switchboard) {
        (self.cast, self.disk, self.board) = (cast, disk, board)
    }

    /// A start of the server.
    func open() async throws {
        close()
        let store = try SQLiteStore(path: disk.path("sync.sqlite")) { db in
            // So short that pages move from the WAL into the file within a scenario.
            try db.execute(sql: "PRAGMA wal_autocheckpoint = 30")
        }
        self.store = store
        var configuration = SyncServer.Configuration()
        configuration.window = .zero
        configuration.retention = cast.retention
        configuration.deviceRetention = cast.deviceRetention
        let server = SyncServer(
            store: store, entities: cast.entities, limits: cast.limits, configuration: configuration,
            rules: cast.rules)
        self.server = server
        await board.connect(to: server)
    }

    func close() {
        server = nil
        // A disk without power answers with errors here too.
        try? store?.close()
        store = nil
    }

    func running() throws -> SyncServer {
        guard let server else { throw Closed() }
        return server
    }
}
