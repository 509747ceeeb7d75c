import Foundation
import GRDB
import Tidemark
import TidemarkServer

/// What worlds of one app can share when they are played one after the other: files that are open, and what is in them
/// before anything has happened.
///
/// Unchecked because it belongs to one thread.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class Laboratory: @unchecked Sendable {
    let app: SimulatedApp
    private let directory = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID().uuidString)")
    /// Where the server's store is, in worlds that have it on a file.
    var serverFile: URL { directory.appending(path: "server.sqlite") }
    /// Where a second store is that goes on from a copy of the first.
    var serverCopy: URL { directory.appending(path: "server-copy.sqlite") }
    /// By whether they enforce foreign keys: switching that on an open connection prepares all its statements again.
    private var files: [Bool: [SimulatedFile]] = [:]
    /// A file with the app's schema and capture, and nothing else; it has no name among a user's devices yet.
    private let installed: Data
    private let firstSchema: Int64
    /// Holds each device's records against their machine, where that is wanted: it takes several times as long.
    var audit: RecordAudit?

    init(app: SimulatedApp) async throws {
        self.app = app
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let file = try SimulatedFile(at: directory.appending(path: "0.sqlite"))
        try await file.queue.write { db in try app.migrate(db) }
        try await SyncEngine(
            for: file.queue, tables: app.tables, scopes: app.scopes,
            transport: InProcessTransport(to: SyncServer(store: MemoryStore())) { _ in .none },
            attachments: AttachmentConfiguration(folder: directory)
        ).install()
        try await file.queue.write { db in
            try db.execute(sql: "DELETE FROM tidemark_meta WHERE key = 'clientId'")
        }
        installed = try file.contents()
        firstSchema = try await file.queue.read { db in try Int64.fetchOne(db, sql: "PRAGMA schema_version") } ?? 0
        file.firstSchema = firstSchema
        (reader, oracleTables) = try await file.queue.read { db in
            (try FileReader(db), try app.tables.map { try OracleTable(db, $0, app: app) })
        }
        files = [true: [file]]
    }

    deinit {
        for file in files.values.joined() { try? file.queue.close() }
        try? FileManager.default.removeItem(at: directory)
    }

    /// Reads files of this app.
    let reader: FileReader
    /// What the schema says, to the oracle.
    let oracleTables: [OracleTable]

    /// Where a device has the files of its attachments.
    func folder(_ number: Int) -> URL { directory.appending(path: "files-\(number)") }

    /// The file of a device, as it is before the app's first start.
    func file(_ number: Int, hasForeignKeys: Bool) throws -> SimulatedFile {
        var files = self.files[hasForeignKeys, default: []]
        while files.count <= number {
            let name = "\(files.count)\(hasForeignKeys ? "" : "-keyless").sqlite"
            files.append(try SimulatedFile(at: directory.appending(path: name), hasForeignKeys: hasForeignKeys))
        }
        self.files[hasForeignKeys] = files
        files[number].firstSchema = firstSchema
        try files[number].replace(with: installed)
        return files[number]
    }
}
