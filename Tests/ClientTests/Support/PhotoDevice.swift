import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// A device whose notes have a photo each, on a file that outlives its engines.
final class PhotoDevice: Sendable {
    static let schema = """
        CREATE TABLE IF NOT EXISTS note (id TEXT PRIMARY KEY, title TEXT, photo TEXT, thumb TEXT, w TEXT);
        """
    static let tables: [SyncedTable] = [
        .table("note", attachments: [.attachment("photo"), .attachment("thumb", download: .automatic)])
    ]

    let directory: TestDirectory
    let writer: DatabaseQueue
    let blobs: BlobServer
    let folder: URL
    let engine: SyncEngine

    /// The server of several devices, with its declaration of attachments.
    static func server(in directory: TestDirectory, attachments: [String] = ["photo", "thumb"]) throws -> SyncServer {
        try Device.server(in: directory, entities: [.state("note", attachments: attachments)])
    }

    static func blobs(before server: SyncServer) -> BlobServer {
        BlobServer(before: InProcessTransport(to: server) { _ in .readWrite(as: "ada") })
    }

    init(
        _ name: String = "device", in directory: TestDirectory, blobs: BlobServer,
        tables: [SyncedTable] = PhotoDevice.tables,
        scopes: [Scope] = [Device.scope],
        _ adjust: (inout AttachmentConfiguration) -> Void = { _ in }
    ) async throws {
        (self.directory, self.blobs) = (directory, blobs)
        folder = directory.url.appending(path: "files-of-\(name)")
        writer = try DatabaseQueue(path: directory.url.appending(path: "\(name).sqlite").path)
        try await writer.write { db in try db.execute(sql: PhotoDevice.schema) }
        var attachments = AttachmentConfiguration(folder: folder)
        attachments.partBytes = 16 << 10
        adjust(&attachments)
        var configuration = SyncConfiguration()
        configuration.backoff = .init(base: .milliseconds(1), maximum: .milliseconds(20), jitter: .zero)
        engine = try SyncEngine(
            for: writer, tables: tables, scopes: scopes, transport: blobs, configuration: configuration,
            attachments: attachments)
        try await engine.install()
    }

    /// A world of one device.
    static func alone(_ adjust: (inout AttachmentConfiguration) -> Void = { _ in }) async throws -> PhotoDevice {
        let directory = try TestDirectory()
        return try await PhotoDevice(
            in: directory, blobs: blobs(before: try server(in: directory)), adjust)
    }

    /// A world of one device whose notes are each in the scope `w:` with their column `w`.
    static func spread(
        over scopes: [Scope] = ["w:1", "w:2"], _ adjust: (inout AttachmentConfiguration) -> Void = { _ in }
    ) async throws -> PhotoDevice {
        let directory = try TestDirectory()
        return try await PhotoDevice(
            in: directory, blobs: blobs(before: try server(in: directory)),
            tables: [.table("note", scope: .column("w", prefix: "w:"), attachments: [.attachment("photo")])],
            scopes: scopes, adjust)
    }

    var files: Attachments { engine.attachments }

    /// Writes a note as the app does.
    func name(_ reference: BlobReference?, in id: String, column: String = "photo") async throws {
        try await writer.write { db in
            try db.execute(
                sql: """
                    INSERT INTO note (id, title, \(column)) VALUES (?1, 't', ?2)
                    ON CONFLICT (id) DO UPDATE SET \(column) = ?2
                    """, arguments: [id, reference?.description])
        }
    }

    /// Adds bytes and names them in a note.
    @discardableResult
    func add(_ bytes: [UInt8], to id: String, column: String = "photo") async throws -> BlobReference {
        let reference = try await files.add(Data(bytes))
        try await name(reference, in: id, column: column)
        return reference
    }

    func sync() async throws { try await engine.syncNow() }

    /// Transfers again and again, as a running engine does, until nothing is left to do.
    func transfer(until isDone: () async throws -> Bool) async throws {
        try await poll {
            do { try await files.transfer() } catch is SyncError {}
            return try await isDone()
        }
    }

    func state(of reference: BlobReference) async throws -> AttachmentState? { try await files.state(of: reference) }

    func count(_ sql: String) async throws -> Int { try await writer.count(of: sql) }

    static func bytes(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
        var generator = SplitMix64(seed: seed)
        return (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next() >> 32) }
    }
}
