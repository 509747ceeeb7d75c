import Foundation
import GRDB
import Tidemark
import TidemarkServer
import TidemarkTesting
import TidemarkWire

/// The app that all devices of a world have: the schema of its tables.
protocol ConvergenceApp {
    static var schema: String { get }
}

/// One device: a real SQLite file with its app's schema, and a faulty wire. The app says what engines and edits it has.
final class ConvergenceDevice<App: ConvergenceApp>: Sendable {
    let name: String
    /// The scopes that it follows.
    let scopes: [Scope]
    let queue: DatabaseQueue
    let transport: FaultyTransport
    private let path: URL

    init(_ name: String, _ scopes: [Scope], in directory: URL, server: SyncServer, seed: UInt64) throws {
        (self.name, self.scopes) = (name, scopes)
        path = directory.appending(path: "\(name).sqlite")
        queue = try DatabaseQueue(path: path.path)
        transport = FaultyTransport(ConvergenceDevice.wire(to: server), seed: seed)
        try queue.write { db in try db.execute(sql: App.schema) }
    }

    static func wire(to server: SyncServer) -> any Transport {
        InProcessTransport(to: server) { _ in .readWrite(as: "ada") }
    }

    /// The same device, after its file was put back to what it was.
    private init(putBack device: ConvergenceDevice) throws {
        (name, scopes, path, transport) = (device.name, device.scopes, device.path, device.transport)
        try StoreFile.copy(device.backup, device.path)
        queue = try DatabaseQueue(path: path.path)
    }

    private var backup: URL { path.appendingPathExtension("backup") }

    /// Makes a copy of the file.
    func backUp() throws {
        try queue.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) }
        try StoreFile.copy(path, backup)
    }

    /// The device as it was when its file was copied; `nil` where that never happened.
    func putBack() throws -> ConvergenceDevice? {
        guard FileManager.default.fileExists(atPath: backup.path) else { return nil }
        try queue.close()
        return try ConvergenceDevice(putBack: self)
    }

    func count(_ sql: String) throws -> Int { try queue.read { try Int.fetchOne($0, sql: sql) ?? 0 } }
}

/// A database's file, copied while nobody has it open.
enum StoreFile {
    static func copy(_ from: URL, _ to: URL) throws {
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: to.path + suffix) }
        try FileManager.default.copyItem(at: from, to: to)
    }
}
