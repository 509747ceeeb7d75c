import GRDB
import Testing
import TidemarkCore
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// A process that has a device's file open: its own connections to the file, its own way to the server.
struct FileProcess {
    let clock: ProcessClock
    let database: DatabasePool
    let wire: Wire
    let engine: SyncEngine

    init(_ name: String, _ device: Device, _ server: SyncServer, _ configuration: SyncConfiguration) throws {
        clock = ProcessClock(name)
        var settings = Configuration()
        settings.busyMode = .timeout(10)
        database = try DatabasePool(path: device.path, configuration: settings)
        wire = Wire(to: InProcessTransport(to: server) { _ in .readWrite(as: "ada") })
        engine = try SyncEngine(
            for: database, tables: device.tables, scopes: [Device.scope], transport: wire,
            configuration: configuration)
    }

    func run() -> Task<Void, any Error> {
        Dependencies.$current.withValue(clock) { Task { [engine] in try await engine.run() } }
    }

    func insert(_ id: String) async throws {
        try await database.write { db in try db.execute(sql: "INSERT INTO note (id) VALUES (?)", arguments: [id]) }
    }

    func lease() async throws -> EngineLease.Entry? { try await database.read { db in try EngineLease.read(db) } }

    func activity() async throws -> SyncStatus.Activity { try await engine.status().activity }

    func waitUntilWaiting() async throws { try await poll { try await activity() == .waitingForOtherProcess } }

    func count(_ sql: String) async throws -> Int {
        try await database.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM \(sql)") ?? 0 }
    }
}
