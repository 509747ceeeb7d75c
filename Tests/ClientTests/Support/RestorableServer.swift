import Foundation
import GRDB
import TidemarkSQLite
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// A server whose file can be copied and put back, as operators do, and the devices that speak to it.
actor RestorableServer {
    let directory: TestDirectory
    private let path: URL
    private var store: SQLiteStore
    private(set) var server: SyncServer
    private var devices: [Device] = []
    private let entities: [EntityDeclaration]
    private let limits: Limits

    static let schema = """
        CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, body TEXT, rank INTEGER);
        CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT);
        """

    init(entities: [EntityDeclaration] = [], limits: Limits = Limits()) throws {
        (self.entities, self.limits) = (entities, limits)
        directory = try TestDirectory()
        path = directory.url.appending(path: "store.sqlite")
        store = try SQLiteStore(path: path.path)
        server = SyncServer(store: store, entities: entities, limits: limits)
    }

    func device(
        _ name: String, schema: String = RestorableServer.schema,
        synced: [SyncedTable] = [.table("note"), .table("tag")]
    ) async throws -> Device {
        let device = try await Device(
            schema, tables: [], server: server, in: directory, name: name, synced: synced)
        devices.append(device)
        return device
    }

    /// A server with two devices.
    ///
    /// - Parameter sql: what the first one writes and both hold; `nil`: nothing, and neither has synced.
    static func pair(
        sharing sql: String? = nil, limits: Limits = Limits()
    ) async throws -> (server: RestorableServer, a: Device, b: Device) {
        let server = try RestorableServer(limits: limits)
        let (a, b) = (try await server.device("a"), try await server.device("b"))
        guard let sql else { return (server, a, b) }
        try await a.sql(sql)
        try await Device.sync(a, b)
        return (server, a, b)
    }

    /// A pair, a backup, and since then two edits of one record: the first device's, and over its title the second's.
    static func pairWithLaterEdit() async throws -> (server: RestorableServer, a: Device, b: Device) {
        let (server, a, b) = try await pair(
            sharing: "INSERT INTO note(id, title, body) VALUES ('n1', 'old', 'old')")
        try await server.backUp()
        try await a.sql("UPDATE note SET title = 'earlier', body = 'a'")
        try await Device.sync(a, b)
        try await b.sql("UPDATE note SET title = 'later'")
        try await Device.sync(b, a)
        return (server, a, b)
    }

    private func reopen(_ work: () throws -> Void) async throws {
        try store.close()
        try work()
        store = try SQLiteStore(path: path.path)
        server = SyncServer(store: store, entities: entities, limits: limits)
        for device in devices {
            await device.wire.connect(to: InProcessTransport(to: server) { _ in .readWrite(as: "ada") })
        }
    }

    private func copy(_ from: URL, _ to: URL) throws {
        for suffix in ["", "-wal", "-shm"] {
            try? FileManager.default.removeItem(atPath: to.path + suffix)
        }
        try FileManager.default.copyItem(at: from, to: to)
    }

    private func backup(_ name: String) -> URL { directory.url.appending(path: "backup-\(name).sqlite") }

    /// Makes a copy of the store.
    func backUp(_ name: String = "1") async throws { try await reopen { try copy(path, backup(name)) } }

    /// The store is what it was then.
    func restore(_ name: String = "1") async throws { try await reopen { try copy(backup(name), path) } }

    /// The store is gone, and a new one is begun.
    func lose() async throws {
        try await reopen {
            for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path.path + suffix) }
        }
    }

    /// The key that marks checkpoints is another one; the log is as it was.
    func changeKey() async throws {
        try await reopen {
            let queue = try DatabaseQueue(path: path.path)
            try queue.write { db in
                try db.execute(
                    sql: "UPDATE meta SET value = ? WHERE key = 'token_key'",
                    arguments: [Data((0..<32).map { _ in UInt8.random(in: .min ... .max) })])
            }
            try queue.close()
        }
    }

    /// The newest version.
    func head() async throws -> Int64 { try await server.head() }

    /// Rows of all devices, and of one that has nothing yet.
    func contents() async throws -> [[String]] {
        let fresh = try await device("fresh-\(devices.count)")
        try await fresh.sync()
        var contents: [[String]] = []
        for device in devices {
            contents.append(
                try await device.rows("SELECT 'n', id, title, body, rank FROM note ORDER BY id")
                    + device.rows("SELECT 't', id, name FROM tag ORDER BY id"))
        }
        return contents
    }

    /// What is left to do on the devices.
    func leftovers() async throws -> Int {
        var count = 0
        for device in devices {
            count += try await device.sealed().count
            for table in ["tidemark_shadow_note", "tidemark_shadow_tag", "tidemark_bootstrap", "tidemark_staged"] {
                count += try await device.count(table)
            }
        }
        return count
    }
}
