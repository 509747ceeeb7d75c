import Foundation
import GRDB
import Testing
import TidemarkCore
import TidemarkWire

@testable import Tidemark

@Suite("The queue of attachments")
struct AttachmentQueueTests {
    @Test("no more files travel at once than the app lets")
    func bound() async throws {
        let device = try await PhotoDevice.alone { $0.parallelTransfers = 3 }
        for number in 0..<12 { try await device.add(PhotoDevice.bytes(20_000, seed: UInt64(number)), to: "n\(number)") }
        device.blobs.hold("HEAD")
        let transfer = Task { try await device.files.transfer() }
        try await poll { device.blobs.waiting == 3 }
        device.blobs.open()
        try await transfer.value
        #expect(device.blobs.mostAtOnce == 3)
        #expect(try await device.count("tidemark_attachment WHERE state = 'uploaded'") == 12)
    }

    @Test(
        "a server's wait is kept, for 15 minutes at most: no file is tried meanwhile",
        arguments: [507, 503], ["3600", "99999999999999999"])
    func asked(status: Int, header: String) async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(10_000), to: "n1")
        device.blobs.fault { request in
            guard request.method == "PUT" else { return nil }
            return BlobServer.problem(status, "quota_exceeded", ["Retry-After": header])
        }
        await #expect(throws: SyncError.self) { try await device.files.transfer() }
        #expect(device.blobs.count("PUT") == 1)
        let until = try await device.writer.read { db in
            try Int64.fetchOne(db, sql: "SELECT next_attempt FROM tidemark_blob") ?? 0
        }
        let rest = until - Int64(Date().timeIntervalSince1970 * 1000)
        #expect(rest > 14 * 60_000 && rest <= 15 * 60_000)
        device.blobs.endFaults()
        try await device.files.transfer()
        #expect(try await device.state(of: photo) == .uploaded)
    }

    @Test("a blob that the user looks at takes the place of one that travels by itself, at its next part")
    func priority() async throws {
        let device = try await PhotoDevice.alone { $0.parallelTransfers = 1 }
        let large = try await device.add(PhotoDevice.bytes(200_000), to: "n1")
        let wanted = PhotoDevice.bytes(10_000, seed: 2)
        let photo = try #require(BlobReference(hash: Self.hash(wanted), size: 10_000))
        device.blobs.put(wanted, as: photo)
        try await device.name(photo, in: "n2")
        device.blobs.hold("PUT")
        let running = Task { try await device.engine.run() }
        defer { running.cancel() }
        try await poll { device.blobs.waiting == 1 }
        let fetch = Task { try await device.files.fetch(photo) }
        try await poll {
            try await device.count("tidemark_attachment JOIN tidemark_blob USING (reference) WHERE priority = 1") == 1
        }
        // One part of the large file gets through, and no other before the fetched one is here.
        try await poll {
            device.blobs.open(one: true)
            return device.files.url(for: photo) != nil
        }
        _ = try await fetch.value
        #expect(device.blobs.blob(large) == nil)
        let puts = device.blobs.count("PUT")
        #expect(puts < 12, "The file of 13 parts was put off.")
        device.blobs.open()
        try await poll { try await device.state(of: large) == .uploaded }
    }

    @Test(
        "of what goes up and what comes down the most urgent begins first, and of equals the oldest",
        arguments: [true, false])
    func merged(isUrgent: Bool) async throws {
        let device = try await PhotoDevice.alone { $0.parallelTransfers = 1 }
        let bytes = PhotoDevice.bytes(10_000, seed: 2)
        let theirs = try #require(BlobReference(hash: Self.hash(bytes), size: 10_000))
        device.blobs.put(bytes, as: theirs)
        func nameTheirs() async throws {
            try await device.name(theirs, in: "n2", column: "thumb")
            // The engine does not run: this has it look.
            try await device.files.unpin(theirs)
        }
        func addOwn() async throws -> BlobReference {
            let own = try await device.add(PhotoDevice.bytes(10_000), to: "n1")
            try await device.files.unpin(own)
            return own
        }
        if !isUrgent { try await nameTheirs() }
        let own = try await addOwn()
        if isUrgent {
            try await nameTheirs()
            try await device.writer.write { [text = theirs.description] db in
                try db.execute(sql: "UPDATE tidemark_blob SET priority = 1 WHERE reference = ?", arguments: [text])
            }
        }
        try await device.files.transfer()
        #expect(device.blobs.log.first == "GET \(theirs.hash.prefix(6))")
        #expect(device.blobs.blob(own) != nil)
    }

    @Test("where bytes cost money, only what the app lets travels, and what it asks for")
    func metered() async throws {
        let directory = try TestDirectory()
        let blobs = PhotoDevice.blobs(before: try PhotoDevice.server(in: directory))
        let device = try await PhotoDevice(in: directory, blobs: blobs) { configuration in
            (configuration.uploadsOnMetered, configuration.downloadsOnMetered) = (false, false)
        }
        var conditions = SyncConditions()
        conditions.isMetered = true
        await device.engine.adapt(to: conditions)
        let own = try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        let bytes = PhotoDevice.bytes(20_000, seed: 2)
        let theirs = try #require(BlobReference(hash: Self.hash(bytes), size: 20_000))
        blobs.put(bytes, as: theirs)
        try await device.name(theirs, in: "n2", column: "thumb")
        try await device.files.transfer()
        #expect(blobs.log.isEmpty)
        _ = try await device.files.fetch(theirs)
        #expect(device.files.url(for: theirs) != nil)
        #expect(try await device.state(of: own) == .local)
        conditions.isMetered = false
        await device.engine.adapt(to: conditions)
        try await device.files.transfer()
        #expect(try await device.state(of: own) == .uploaded)
    }

    @Test("files that rows cease to name while others are under way do not travel")
    func ceased() async throws {
        let device = try await PhotoDevice.alone { $0.parallelTransfers = 2 }
        let photos = try await addMany(to: device)
        let transfer = Task { try await device.files.transfer() }
        try await waitForThird(device)
        let next = try await device.writer.read { db in
            try String.fetchAll(
                db, sql: "SELECT reference FROM tidemark_blob WHERE task NOT NULL AND moving = 0 ORDER BY id LIMIT 2")
        }
        for (number, photo) in photos.enumerated() where next.contains(photo.description) {
            try await device.name(nil, in: "n\(number)")
        }
        device.blobs.open()
        try await transfer.value
        #expect(next.count == 2)
        for photo in photos {
            #expect((device.blobs.blob(photo) != nil) == !next.contains(photo.description))
        }
    }

    @Test("a row that is written while all files wait after a failure has its state at once")
    func paused() async throws {
        let device = try await PhotoDevice.alone { $0.parallelTransfers = 2 }
        try await addMany(to: device)
        let running = Task { try await device.engine.run() }
        defer { running.cancel() }
        try await waitForThird(device)
        device.blobs.fault { request in
            guard request.method == "PUT" else { return nil }
            return BlobServer.problem(503, "unavailable", ["Retry-After": "3600"])
        }
        device.blobs.open()
        try await poll { try await device.count("tidemark_attachment WHERE reason = 'unavailable'") == 2 }
        let photo = try await device.add(PhotoDevice.bytes(10_000, seed: 7), to: "n7")
        try await poll { try await device.state(of: photo) == .local }
    }

    /// Seven files, whose uploads are held.
    @discardableResult
    private func addMany(to device: PhotoDevice) async throws -> [BlobReference] {
        var photos: [BlobReference] = []
        for number in 0..<7 {
            photos.append(try await device.add(PhotoDevice.bytes(10_000, seed: UInt64(number)), to: "n\(number)"))
        }
        device.blobs.hold("PUT")
        return photos
    }

    /// Lets the first of them through: two are under way then, and the queue was seen to hold more.
    private func waitForThird(_ device: PhotoDevice) async throws {
        try await poll { device.blobs.waiting == 2 }
        device.blobs.open(one: true)
        try await poll { device.blobs.count("PUT") == 3 && device.blobs.waiting == 2 }
    }

    @Test("records are exchanged while bytes are under way, and no transaction waits for them")
    func records() async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(100_000), to: "n1")
        device.blobs.hold("PUT")
        let running = Task { try await device.engine.run() }
        defer { running.cancel() }
        try await poll { device.blobs.waiting == 1 }
        try await device.name(nil, in: "n2")
        try await device.engine.syncNow()
        #expect(try await device.engine.status().pending == 0)
        device.blobs.open()
        try await poll { try await device.state(of: photo) == .uploaded }
    }

    @Test("a folder that takes no file is told, and nothing is lost")
    func noRoom() async throws {
        let device = try await PhotoDevice.alone()
        try FileManager.default.createDirectory(
            at: device.folder.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data().write(to: device.folder)
        let error = await #expect(throws: SyncError.self) { try await device.files.add(Data([1])) }
        #expect(error?.code == .folderFailed)

        let bytes = PhotoDevice.bytes(20_000)
        let theirs = try #require(BlobReference(hash: Self.hash(bytes), size: 20_000))
        device.blobs.put(bytes, as: theirs)
        try await device.name(theirs, in: "n1", column: "thumb")
        let failure = await #expect(throws: SyncError.self) { try await device.files.transfer() }
        #expect(failure?.code == .folderFailed)
        try FileManager.default.removeItem(at: device.folder)
        try await device.transfer { device.files.url(for: theirs) != nil }
    }

    @Test("the app hears how much waits")
    func progress() async throws {
        let device = try await PhotoDevice.alone()
        try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        device.blobs.fault { _ in throw BlobServer.Cut() }
        try? await device.files.transfer()
        var updates = device.files.progress.makeAsyncIterator()
        let waiting = await updates.next()
        #expect(waiting?.uploads == 1)
        #expect(waiting?.bytesLeft == 20_000)
        device.blobs.endFaults()
        try await device.files.transfer()
        var last = waiting
        while last?.uploads != 0 { last = await updates.next() }
        #expect(last == AttachmentProgress())
    }

    @Test("signing out ends transfers, and nothing travels any more")
    func disconnect() async throws {
        let device = try await PhotoDevice.alone()
        try await device.add(PhotoDevice.bytes(20_000), to: "n1")
        await device.engine.disconnect()
        let error = await #expect(throws: SyncError.self) { try await device.files.transfer() }
        #expect(error?.code == .engineDisconnected)
        #expect(device.blobs.log.isEmpty)
    }

    static func hash(_ bytes: [UInt8]) -> String {
        SHA256.digest(bytes).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
}
