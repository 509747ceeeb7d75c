import Foundation
import GRDB
import Synchronization
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// A server collects bytes that no record names: those whose records wait on a device.
@Suite("Attachments whose records come late")
struct AttachmentRecordTests {
    /// The bytes were sent so many days ago, and the server has collected them.
    private func collect(_ photo: BlobReference, after days: Int64, _ device: PhotoDevice) async throws {
        try await device.writer.write { db in
            try db.execute(
                sql: "UPDATE tidemark_blob SET stored_at = stored_at - ?", arguments: [days * 24 * 60 * 60 * 1000])
        }
        device.blobs.lose(photo)
    }

    @Test("bytes that were sent days before the server took their record are asked for, and sent again")
    func collected() async throws {
        let device = try await PhotoDevice.alone()
        let bytes = PhotoDevice.bytes(20_000)
        let photo = try await device.add(bytes, to: "n1")
        try await device.files.transfer()
        #expect(try await device.state(of: photo) == .uploaded)
        try await collect(photo, after: 8, device)
        try await device.sync()
        #expect(try await device.state(of: photo) == .local)
        try await device.files.transfer()
        #expect(try await device.state(of: photo) == .uploaded)
        #expect(device.blobs.blob(photo) == bytes)

        let requests = device.blobs.log.count
        try await device.writer.write { try $0.execute(sql: "UPDATE note SET title = 'new'") }
        try await device.sync()
        try await device.files.transfer()
        #expect(device.blobs.log.count == requests, "An edit that names no bytes doubts none.")
    }

    @Test("a clock that was set back between the two hides nothing")
    func setBack() async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        try await device.files.transfer()
        try await collect(photo, after: -8, device)
        try await device.sync()
        try await device.files.transfer()
        #expect(device.blobs.blob(photo) != nil)
    }

    @Test("bytes that were sent just before their record are not asked for")
    func soon() async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        try await device.files.transfer()
        let requests = device.blobs.log.count
        try await device.sync()
        try await device.files.transfer()
        #expect(try await device.state(of: photo) == .uploaded)
        #expect(device.blobs.log.count == requests)
    }

    @Test("bytes that another scope has are fetched from there, where they made room meanwhile")
    func elsewhere() async throws {
        let device = try await PhotoDevice.spread()
        let bytes = PhotoDevice.bytes(20_000)
        let photo = try await device.files.add(Data(bytes))
        func write(_ id: String, in scope: String) async throws {
            try await device.writer.write { db in
                try db.execute(
                    sql: "INSERT INTO note (id, photo, w) VALUES (?, ?, ?)",
                    arguments: [id, photo.description, scope])
            }
        }
        try await write("n1", in: "1")
        try await device.sync()
        try await write("n2", in: "2")
        try await device.files.transfer()
        #expect(device.blobs.blob(photo, in: "w:2") == bytes)
        #expect(try await device.files.evict(photo))
        try await device.writer.write { try $0.execute(sql: "UPDATE tidemark_blob SET stored_at = 0") }
        device.blobs.lose(photo, in: "w:2")
        try await device.sync()
        try await device.files.transfer()
        #expect(device.blobs.blob(photo, in: "w:2") == bytes)
    }

    @Test("no file makes room before the server has a record that names it")
    func room() async throws {
        let device = try await PhotoDevice.alone { ($0.cacheLimit, $0.parallelTransfers) = (30_000, 1) }
        let photos = [
            try await device.add(PhotoDevice.bytes(20_000), to: "n1"),
            try await device.add(PhotoDevice.bytes(20_000, seed: 2), to: "n2"),
        ]
        try await device.files.transfer()
        for photo in photos {
            #expect(device.files.url(for: photo) != nil)
            #expect(try await !device.files.evict(photo))
        }
        try await device.sync()
        try await device.files.transfer()
        #expect(photos.count { device.files.url(for: $0) != nil } == 1)
    }

    @Test("a file whose record the server refused stays for a retry, which sends it again", arguments: [true, false])
    func refused(isInsert: Bool) async throws {
        let refuses = Mutex(true)
        let rule = EntityRule("note") { edit in
            edit.proposed["photo"] != .null && refuses.withLock { $0 } ? .reject(code: "no", detail: "No.") : .accept
        }
        let directory = try TestDirectory()
        let server = try Device.server(
            in: directory, entities: [.state("note", attachments: ["photo", "thumb"])], rules: [rule])
        let device = try await PhotoDevice(in: directory, blobs: PhotoDevice.blobs(before: server))
        if !isInsert {
            try await device.name(nil, in: "n1")
            try await device.sync()
        }
        let bytes = PhotoDevice.bytes(20_000)
        let photo = try await device.add(bytes, to: "n1")
        try await device.files.transfer()
        try await device.sync()
        try await device.files.transfer()
        #expect(try await !device.files.evict(photo))
        try await device.writer.write { db in
            try db.execute(sql: "UPDATE tidemark_blob_file SET unnamed_since = 1 WHERE unnamed_since NOT NULL")
        }
        try await device.engine.attachmentRunner?.removeOrphans()
        #expect(device.files.url(for: photo) != nil)
        try await collect(photo, after: 8, device)

        refuses.withLock { $0 = false }
        let refusal = try #require(try await device.engine.rejectedOperations().first)
        try await device.engine.retry(refusal)
        try await device.sync()
        try await device.files.transfer()
        #expect(device.blobs.blob(photo) == bytes)
    }

    @Test("a record that waits for another one keeps its file here")
    func blocked() async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        try await device.files.transfer()
        try await device.writer.write { db in
            try db.execute(
                sql: """
                    INSERT INTO tidemark_blocked(entity, record, blocker_entity, blocker_record, reason)
                    VALUES ('note', 'n1', 'note', 'n0', 'refused');
                    UPDATE tidemark_shadow_note SET tidemark_mark = NULL
                    """)
        }
        #expect(try await !device.files.evict(photo))
    }

    @Test("a blob that was sent of a quarantined row is known as sent for as long as that is quarantined")
    func quarantinedLong() async throws {
        let (first, blobs, photo) = try await quarantined()
        try await first.files.transfer()
        #expect(blobs.blob(photo, in: "w:2") != nil)
        try await first.engine.attachmentRunner?.tidy()
        try await first.engine.attachmentRunner?.digest()
        #expect(try await first.count("tidemark_blob WHERE scope = 'w:2' AND stored = 1") == 1)
    }

    @Test("bytes that are not here, and that no other scope has, are owed to nobody")
    func nowhere() async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        try await device.files.transfer()
        try await device.writer.write { db in
            try BlobFiles.remove(db, photo, now: 1)
            try db.execute(sql: "UPDATE tidemark_blob SET stored_at = 0")
        }
        try await device.sync()
        try await device.engine.attachmentRunner?.digest()
        #expect(try await device.writer.read { try Blob.unsent($0) } == 0)
    }

    @Test("an answer that was on its way for days is asked for again")
    func lateAnswer() async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        var blob = Blob(reference: photo, scope: Device.scope)
        let now: Int64 = 1_800_000_000_000
        let cases = [(now - 1000, true), (now - 8 * 86_400_000, false), (now + 86_400_000, false), (nil, true)]
        for (time, isStored) in cases {
            blob.offers = time != nil
            blob.noteStored(at: time, now: now)
            #expect(blob.isStored == isStored && blob.isDoubted == !isStored)
            #expect(blob.task(isHere: true) == (isStored ? nil : .upload))
        }
    }

    @Test("the file of a row that is in no scope stays")
    func unscoped() async throws {
        let device = try await PhotoDevice.spread()
        let photo = try await device.files.add(Data(PhotoDevice.bytes(20_000)))
        try await device.writer.write { db in
            try db.execute(sql: "INSERT INTO note (id, photo) VALUES ('n', ?)", arguments: [photo.description])
            try db.execute(sql: "UPDATE tidemark_blob_file SET unnamed_since = 1")
        }
        try await device.files.transfer()
        try await device.engine.attachmentRunner?.removeOrphans()
        #expect(device.files.url(for: photo) != nil)
    }

    @Test("a refused edit of a record that the server has keeps its file from no eviction")
    func refusedTitle() async throws {
        let rule = EntityRule("note") { edit in
            edit.proposed["title"] == "bad" ? .reject(code: "no", detail: "No.") : .accept
        }
        let directory = try TestDirectory()
        let server = try Device.server(
            in: directory, entities: [.state("note", attachments: ["photo", "thumb"])], rules: [rule])
        let device = try await PhotoDevice(in: directory, blobs: PhotoDevice.blobs(before: server))
        let photo = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        try await device.sync()
        try await device.files.transfer()
        try await device.writer.write { try $0.execute(sql: "UPDATE note SET title = 'bad'") }
        try await device.sync()
        #expect(try await device.engine.rejectedOperations().count == 1)
        #expect(try await device.files.evict(photo))
    }

    @Test("the bytes of a record that another scope's row keeps out of its table travel nevertheless")
    func sentNevertheless() async throws {
        let (first, blobs, photo) = try await quarantined()
        try await first.files.transfer()
        #expect(blobs.blob(photo, in: "w:2") == PhotoDevice.bytes(20_000))
    }

    /// A device whose row of a scope is quarantined before its bytes were sent.
    private func quarantined() async throws -> (device: PhotoDevice, blobs: BlobServer, photo: BlobReference) {
        let directory = try TestDirectory()
        let blobs = PhotoDevice.blobs(before: try PhotoDevice.server(in: directory))
        func device(_ name: String, _ scopes: [Scope]) async throws -> PhotoDevice {
            try await PhotoDevice(
                name, in: directory, blobs: blobs,
                tables: [.table("note", scope: .column("w", prefix: "w:"), attachments: [.attachment("photo")])],
                scopes: scopes)
        }
        let (first, second) = (try await device("first", ["w:1", "w:2"]), try await device("second", ["w:1"]))
        let photo = try await first.files.add(Data(PhotoDevice.bytes(20_000)))
        try await first.writer.write { db in
            try db.execute(sql: "INSERT INTO note (id, photo, w) VALUES ('n', ?, '2')", arguments: [photo.description])
        }
        try await second.writer.write { try $0.execute(sql: "INSERT INTO note (id, w) VALUES ('n', '1')") }
        try await second.sync()
        try await first.sync()
        #expect(try await first.count("tidemark_quarantine WHERE scope = 'w:2'") == 1)
        return (first, blobs, photo)
    }
}
