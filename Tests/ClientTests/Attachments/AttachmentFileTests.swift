import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Files of attachments on a device")
struct AttachmentFileTests {
    private static let day: Int64 = 24 * 60 * 60 * 1000

    /// Lets time pass for what the tables say of files.
    private func age(_ device: PhotoDevice, days: Int64) async throws {
        try await device.writer.write { db in
            try db.execute(
                sql: "UPDATE tidemark_blob_file SET unnamed_since = unnamed_since - ? WHERE unnamed_since > 0",
                arguments: [days * Self.day])
        }
        try await device.engine.attachmentRunner?.removeOrphans()
    }

    @Test("files that were not used for longest make room; none that was not acknowledged, and none that is pinned")
    func cache() async throws {
        let device = try await PhotoDevice.alone { ($0.cacheLimit, $0.parallelTransfers) = (50_000, 1) }
        var photos: [BlobReference] = []
        for number in 0..<4 {
            photos.append(try await device.add(PhotoDevice.bytes(20_000, seed: UInt64(number)), to: "n\(number)"))
        }
        func here() -> [Bool] { photos.map { device.files.url(for: $0) != nil } }
        #expect(here() == [true, true, true, true], "None was acknowledged yet.")
        try await device.sync()
        try await device.files.transfer()
        #expect(here() == [false, false, true, true])
        #expect(try await device.state(of: photos[0]) == .remote)

        try await device.files.pin(photos[2])
        #expect(try await !device.files.evict(photos[2]))
        photos.append(try await device.add(PhotoDevice.bytes(20_000, seed: 9), to: "n9"))
        #expect(here() == [false, false, true, false, true])
        #expect(try await !device.files.evict(photos[4]), "It is nowhere else.")

        try await device.files.unpin(photos[2])
        _ = try await device.files.fetch(photos[0])
        #expect(here() == [true, false, false, false, true])
    }

    @Test("a use counts: the file that was looked at last stays")
    func uses() async throws {
        let device = try await PhotoDevice.alone { $0.cacheLimit = 50_000 }
        let first = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        let second = try await device.add(PhotoDevice.bytes(20_000, seed: 2), to: "n2")
        try await device.sync()
        try await device.files.transfer()
        try await device.writer.write { try $0.execute(sql: "UPDATE tidemark_blob_file SET used_at = id") }
        _ = device.files.url(for: first)
        try await device.add(PhotoDevice.bytes(20_000, seed: 3), to: "n3")
        #expect(device.files.url(for: first) != nil)
        #expect(device.files.url(for: second) == nil)
    }

    @Test("bytes that no row names go after seven days, and not before; an edit that is kept keeps them")
    func orphans() async throws {
        let device = try await PhotoDevice.alone()
        let stray = try await device.files.add(Data(PhotoDevice.bytes(20_000)))
        let named = try await device.add(PhotoDevice.bytes(20_000, seed: 2), to: "n1")
        let kept = try await device.add(PhotoDevice.bytes(20_000, seed: 3), to: "n2")
        try await device.files.transfer()
        try await device.writer.write { [kept] db in
            try db.execute(
                sql: """
                    UPDATE tidemark_blob_file SET backed = 0;
                    INSERT INTO tidemark_orphan (scope, entity, record, kind, fields, noted_at)
                    VALUES ('w:1', 'note', 'n2', 'update', CAST(? AS BLOB), 1)
                    """, arguments: [#"{"photo":"\#(kept)"}"#])
        }
        device.blobs.fault { _ in throw BlobServer.Cut() }
        try await device.name(nil, in: "n2")
        try? await device.files.transfer()
        try await device.writer.write { try $0.execute(sql: "UPDATE tidemark_blob_file SET backed = 0") }
        try await age(device, days: 6)
        #expect(device.files.url(for: stray) != nil)
        try await age(device, days: 2)
        #expect(device.files.url(for: stray) == nil)
        #expect(device.files.url(for: named) != nil)
        #expect(device.files.url(for: kept) != nil)
        try await device.writer.write { try $0.execute(sql: "DELETE FROM tidemark_orphan") }
        try await age(device, days: 0)
        #expect(device.files.url(for: kept) == nil)
    }

    @Test("unnamed files that edits keep do not stand in the way of those behind them")
    func keptOrphans() async throws {
        let device = try await PhotoDevice.alone()
        let stray = try await device.files.add(Data(PhotoDevice.bytes(20_000)))
        try await device.writer.write { db in
            let hashes = (10..<70).map { String(repeating: "0", count: 62) + String($0) }
            for hash in hashes {
                try db.execute(
                    sql: """
                        INSERT INTO tidemark_blob_file (reference, size, used_at, unnamed_since) VALUES (?, 1, 0, 1)
                        """, arguments: ["sha256:\(hash):1"])
            }
            try db.execute(
                sql: """
                    INSERT INTO tidemark_orphan (scope, entity, record, kind, fields, noted_at)
                    VALUES ('w:1', 'note', 'n1', 'update', CAST(? AS BLOB), 1)
                    """, arguments: [hashes.joined(separator: " ")])
        }
        try await age(device, days: 8)
        #expect(device.files.url(for: stray) == nil)
        #expect(try await device.count("tidemark_blob_file") == 60)
    }

    @Test("a process that starts within a day of the last look for unnamed files does not look again")
    func tidied() async throws {
        let directory = try TestDirectory()
        let blobs = PhotoDevice.blobs(before: try PhotoDevice.server(in: directory))
        let device = try await PhotoDevice(in: directory, blobs: blobs)
        let photo = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        try await device.files.transfer()
        // No trigger sees that the row goes.
        try await device.writer.write { try $0.execute(sql: "REPLACE INTO note (id, title) VALUES ('n1', 'new')") }
        let next = try await PhotoDevice(in: directory, blobs: blobs)
        try await next.files.transfer()
        #expect(try await next.state(of: photo) == .uploaded)
        try await next.writer.write { db in
            try db.execute(sql: "UPDATE tidemark_meta SET value = '1' WHERE key = 'attachment_tidied'")
        }
        let later = try await PhotoDevice(in: directory, blobs: blobs)
        try await later.files.transfer()
        #expect(try await later.state(of: photo) == nil)
    }

    @Test("a file that came just before it is fetched stays, unsent as it is")
    func cameBefore() async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        try await device.engine.attachmentRunner?.fetch(photo, priority: 1)
        #expect(try await device.state(of: photo) == .local)
        #expect(device.blobs.log.isEmpty)
    }

    @Test("adding a file that is cancelled leaves nothing behind")
    func cancelledDraft() async throws {
        let device = try await PhotoDevice.alone()
        let source = device.directory.url.appending(path: "source")
        try Data(PhotoDevice.bytes(600_000)).write(to: source)
        let adding = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await device.files.add(contentsOf: source)
        }
        adding.cancel()
        await #expect(throws: CancellationError.self) { try await adding.value }
        let left = FileManager.default.enumerator(at: device.folder, includingPropertiesForKeys: nil)?.allObjects ?? []
        #expect(left.compactMap { $0 as? URL }.filter { !$0.hasDirectoryPath }.isEmpty)
    }

    @Test("a file that came before its process ended is used again, or removed when it is old")
    func strayFile() async throws {
        let directory = try TestDirectory()
        let blobs = PhotoDevice.blobs(before: try PhotoDevice.server(in: directory))
        let device = try await PhotoDevice(in: directory, blobs: blobs)
        let known = try await device.files.add(Data(PhotoDevice.bytes(20_000)))
        let lost = try await device.files.add(Data(PhotoDevice.bytes(20_000, seed: 2)))
        let old = [FileAttributeKey.modificationDate: Date(timeIntervalSince1970: 1)]
        for file in [known, lost] {
            let url = try #require(device.files.url(for: file))
            try FileManager.default.setAttributes(old, ofItemAtPath: url.path)
        }
        try await device.writer.write { [lost] db in
            try db.execute(
                sql: "DELETE FROM tidemark_blob_file WHERE reference = ?", arguments: [lost.description])
        }
        let next = try await PhotoDevice(in: directory, blobs: blobs)
        try await next.files.transfer()
        #expect(next.files.url(for: lost) == nil)
        #expect(next.files.url(for: known) != nil)
    }

    @Test("on a device that was set up from a backup without the folder, files are fetched again")
    func backup() async throws {
        let directory = try TestDirectory()
        let blobs = PhotoDevice.blobs(before: try PhotoDevice.server(in: directory))
        let device = try await PhotoDevice(in: directory, blobs: blobs)
        let thumb = try await device.add(PhotoDevice.bytes(20_000), to: "n1", column: "thumb")
        let photo = try await device.add(PhotoDevice.bytes(20_000, seed: 2), to: "n1")
        try await device.files.transfer()
        blobs.fault { _ in throw BlobServer.Cut() }
        let unsent = try await device.add(PhotoDevice.bytes(20_000, seed: 3), to: "n2")
        try? await device.files.transfer()
        blobs.endFaults()
        try FileManager.default.removeItem(at: device.folder)
        let next = try await PhotoDevice(in: directory, blobs: blobs)
        try await next.files.transfer()
        #expect(next.files.url(for: thumb) != nil)
        #expect(try await next.state(of: photo) == .remote)
        #expect(try await next.state(of: unsent) == .awaited)
    }

    @Test("a row that a REPLACE evicts, unseen by any trigger, does not keep its file for ever")
    func replaced() async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        try await device.files.transfer()
        try await device.writer.write { try $0.execute(sql: "REPLACE INTO note (id, title) VALUES ('n1', 'new')") }
        try await device.engine.attachmentRunner?.tidy()
        try await device.engine.attachmentRunner?.digest()
        #expect(try await device.state(of: photo) == nil)
        try await age(device, days: 8)
        #expect(device.files.url(for: photo) == nil)
    }

    @Test("the app's queries join rows with the state of their bytes")
    func view() async throws {
        let device = try await PhotoDevice.alone()
        try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        try await device.files.transfer()
        let remote = try #require(BlobReference(hash: String(repeating: "b", count: 64), size: 7))
        try await device.name(remote, in: "n2")
        try await device.name(nil, in: "n3")
        try await device.engine.attachmentRunner?.digest()
        let states = try await device.writer.read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT note.id, a.* FROM note LEFT JOIN tidemark_attachment AS a ON a.reference = note.photo
                    ORDER BY note.id
                    """
            ).map { AttachmentState(row: $0) }
        }
        #expect(states == [.uploaded, .remote, nil])
        let plan = try await device.writer.read { db in
            try Row.fetchAll(
                db,
                sql: """
                    EXPLAIN QUERY PLAN SELECT note.id, a.state FROM note
                    LEFT JOIN tidemark_attachment AS a ON a.reference = note.photo
                    """
            ).map { $0["detail"] as String }
        }
        #expect(plan.filter { $0.hasPrefix("SCAN") } == ["SCAN note"])
    }

    @Test("when the access to a scope is lost, files that the server has go, and those that it lacks stay for a while")
    func scopeLost() async throws {
        let directory = try TestDirectory()
        let server = try PhotoDevice.server(in: directory)
        let device = try await PhotoDevice(in: directory, blobs: PhotoDevice.blobs(before: server))
        let there = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        try await device.sync()
        try await device.files.transfer()
        device.blobs.fault { _ in throw BlobServer.Cut() }
        let here = try await device.add(PhotoDevice.bytes(20_000, seed: 2), to: "n2")
        try? await device.files.transfer()
        let schema = try #require(await device.engine.schemaCache.schema)
        let removal = ScopeRemoval(
            scope: Device.scope, schema: schema, declarations: Declarations(), isLoss: true, now: 1)
        try await device.writer.writeWithoutTransaction { db in _ = try removal.run(db) }
        try await device.files.transfer()
        #expect(device.files.url(for: there) == nil)
        #expect(device.files.url(for: here) != nil)
        #expect(try await device.count("tidemark_blob") == 0)
    }

    @Test("signing out for good takes the files along, once all are uploaded or may be lost")
    func removed() async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        try await device.sync()
        let error = await #expect(throws: SyncError.self) { try await device.engine.disconnectAndRemove() }
        #expect(error?.code == .unsentEdits)
        #expect(error?.detail.contains("1 attachments to upload") == true)
        try await device.files.transfer()
        #expect(device.files.url(for: photo) != nil)
        try await device.engine.disconnectAndRemove()
        #expect(!FileManager.default.fileExists(atPath: device.folder.path))
        #expect(try await device.count("sqlite_master WHERE name LIKE 'tidemark%'") == 0)
    }

    @Test("taking the library out leaves rows and files, and no index, trigger or view")
    func uninstalled() async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        try await device.sync()
        try await device.files.transfer()
        try await device.writer.write { db in _ = try SyncEngine.uninstall(db) }
        #expect(try await device.count("sqlite_master WHERE name LIKE 'tidemark%'") == 0)
        #expect(device.files.url(for: photo) != nil)
    }
}

@Suite("Declarations of attachments")
struct AttachmentDeclarationTests {
    private func code(_ body: () async throws -> Void) async -> SyncError.Code? {
        do { try await body() } catch let error as SyncError { return error.code } catch {}
        return nil
    }

    @Test("a column that the table does not have, and an engine without a folder, are refused")
    func column() async throws {
        let directory = try TestDirectory()
        let blobs = PhotoDevice.blobs(before: try PhotoDevice.server(in: directory))
        let unknown = await code {
            _ = try await PhotoDevice(
                in: directory, blobs: blobs, tables: [.table("note", attachments: [.attachment("picture")])])
        }
        #expect(unknown == .configurationInvalid)
        let folderless = await code {
            _ = try SyncEngine(
                for: DatabaseQueue(), tables: PhotoDevice.tables, scopes: [Device.scope], transport: blobs)
        }
        #expect(folderless == .configurationInvalid)
    }

    @Test("attachments that the server does not declare are refused, in whichever case; others of the server's are not")
    func mismatch() async throws {
        for (declared, isRefused) in [
            (["photo"], true), (["Photo", "THUMB"], false), (["photo", "thumb", "x"], false),
        ] {
            let directory = try TestDirectory()
            let server = try PhotoDevice.server(in: directory, attachments: declared)
            let device = try await PhotoDevice(in: directory, blobs: PhotoDevice.blobs(before: server))
            let photo = try await device.add(PhotoDevice.bytes(1000), to: "n1")
            #expect(await code { try await device.sync() } == (isRefused ? .declarationMismatch : nil))
            #expect(await code { try await device.files.transfer() } == (isRefused ? .declarationMismatch : nil))
            #expect((device.blobs.blob(photo) == nil) == isRefused)
        }
    }

    @Test("rows that named bytes before the column was declared, and those of a rebuilt table, are found")
    func declaredLater() async throws {
        let directory = try TestDirectory()
        let blobs = PhotoDevice.blobs(before: try PhotoDevice.server(in: directory))
        let first = try await PhotoDevice(in: directory, blobs: blobs, tables: [.table("note")])
        let photo = try await first.add(PhotoDevice.bytes(20_000), to: "n1")
        try await first.files.transfer()
        #expect(blobs.log.isEmpty)
        let next = try await PhotoDevice(in: directory, blobs: blobs)
        try await next.files.transfer()
        #expect(try await next.state(of: photo) == .uploaded)

        try await next.writer.write { db in
            try db.execute(
                sql: """
                    CREATE TABLE other (id TEXT PRIMARY KEY, title TEXT, photo TEXT, thumb TEXT, w TEXT, more TEXT);
                    INSERT INTO other (id, title, photo) SELECT id, title, photo FROM note;
                    DROP TABLE note; ALTER TABLE other RENAME TO note;
                    """)
        }
        let bytes = PhotoDevice.bytes(20_000, seed: 2)
        let later = try await next.add(bytes, to: "n2")
        try await next.files.transfer()
        #expect(blobs.blob(later) == bytes)
        #expect(try await next.state(of: photo) == .uploaded)
    }

    @Test("a tool that opens the file without the app leaves its attachments as they are")
    func noted() async throws {
        let device = try await PhotoDevice.alone()
        let declared = try await device.writer.read { try SyncedTable.declared(in: $0) }
        #expect(declared.map(\.attachments) == PhotoDevice.tables.map(\.attachments))
    }
}
