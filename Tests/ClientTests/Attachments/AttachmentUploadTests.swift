import Foundation
import GRDB
import Synchronization
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Uploads of attachments")
struct AttachmentUploadTests {
    @Test("bytes are uploaded once a row names them, and shown on another device where it asks for them")
    func roundTrip() async throws {
        let directory = try TestDirectory()
        let blobs = PhotoDevice.blobs(before: try PhotoDevice.server(in: directory))
        let ada = try await PhotoDevice("ada", in: directory, blobs: blobs)
        let bytes = PhotoDevice.bytes(100_000)
        let photo = try await ada.files.add(Data(bytes))
        try await ada.files.transfer()
        #expect(blobs.log.isEmpty, "Nothing names the bytes yet.")
        try await ada.name(photo, in: "n1")
        try await ada.files.transfer()
        #expect(try await ada.state(of: photo) == .uploaded)
        #expect(blobs.blob(photo) == bytes)
        try await ada.sync()

        let bob = try await PhotoDevice("bob", in: directory, blobs: blobs)
        try await bob.sync()
        try await bob.files.transfer()
        #expect(try await bob.state(of: photo) == .remote)
        #expect(bob.files.url(for: photo) == nil)
        let url = try await bob.files.fetch(photo)
        #expect(try Data(contentsOf: url) == Data(bytes))
        #expect(try await bob.state(of: photo) == .here)
        #expect(try bob.files.data(for: photo) == Data(bytes))
    }

    @Test("a running engine moves bytes by itself: up, and down where the column says so")
    func running() async throws {
        let directory = try TestDirectory()
        let blobs = PhotoDevice.blobs(before: try PhotoDevice.server(in: directory))
        let ada = try await PhotoDevice("ada", in: directory, blobs: blobs)
        let bob = try await PhotoDevice("bob", in: directory, blobs: blobs)
        let running = [Task { try await ada.engine.run() }, Task { try await bob.engine.run() }]
        defer { for task in running { task.cancel() } }
        let thumb = try await ada.add(PhotoDevice.bytes(40_000), to: "n1", column: "thumb")
        try await poll { try await ada.state(of: thumb) == .uploaded }
        try await ada.sync()
        await bob.engine.wake()
        try await poll { bob.files.url(for: thumb) != nil }
    }

    @Test("a file is copied in by its URL, and empty bytes are bytes, too")
    func files() async throws {
        let device = try await PhotoDevice.alone()
        let bytes = PhotoDevice.bytes(600_000)
        let source = device.directory.url.appending(path: "source")
        try Data(bytes).write(to: source)
        let photo = try await device.files.add(contentsOf: source)
        #expect(photo.size == 600_000)
        try await device.name(photo, in: "n1")
        let empty = try await device.add([], to: "n2")
        try await device.files.transfer()
        #expect(device.blobs.blob(photo) == bytes)
        #expect(device.blobs.blob(empty) == [])
        #expect(FileManager.default.fileExists(atPath: source.path))
    }

    @Test("the same bytes in ten rows are uploaded once, and not at all where the server has them")
    func once() async throws {
        let device = try await PhotoDevice.alone()
        let bytes = PhotoDevice.bytes(40_000)
        for number in 0..<10 { try await device.add(bytes, to: "n\(number)") }
        try await device.files.transfer()
        #expect(device.blobs.count("HEAD") == 1)
        #expect(device.blobs.count("PUT") == 3, "Three parts of 16 KiB.")

        let known = PhotoDevice.bytes(50_000, seed: 2)
        let reference = try await device.files.add(Data(known))
        device.blobs.put(known, as: reference)
        try await device.name(reference, in: "n1")
        try await device.files.transfer()
        #expect(try await device.state(of: reference) == .uploaded)
        #expect(device.blobs.count("PUT") == 3)
    }

    @Test("a small file is sent without a question, and asked about once that has failed")
    func small() async throws {
        let device = try await PhotoDevice.alone()
        let blobs = device.blobs
        try await device.add(PhotoDevice.bytes(10_000), to: "n1")
        try await device.files.transfer()
        #expect(blobs.log.count == 1 && blobs.count("PUT") == 1, "\(blobs.log)")
        // A part of it came across, which the device does not know of.
        let other = PhotoDevice.bytes(12_000, seed: 2)
        blobs.cut(every: 5_000)
        blobs.fault { request in
            if request.method == "HEAD" { throw BlobServer.Cut() }
            return nil
        }
        let photo = try await device.add(other, to: "n2")
        try? await device.files.transfer()
        blobs.endFaults()
        let (before, asked) = (blobs.bytesUp, blobs.count("HEAD"))
        try await device.writer.write { try $0.execute(sql: "UPDATE tidemark_blob SET attempts = 0") }
        try await device.files.transfer()
        #expect(blobs.blob(photo) == other)
        #expect(blobs.bytesUp - before <= 12_000 + 7_000, "The first request is refused, and the rest is sent.")
        #expect(blobs.count("HEAD") == asked + 1)
    }

    @Test("an upload that is cut goes on where it was, and sends hardly more than the bytes")
    func cut() async throws {
        let device = try await PhotoDevice.alone()
        let bytes = PhotoDevice.bytes(300_000)
        device.blobs.cut(every: 21_001)
        let photo = try await device.add(bytes, to: "n1")
        try await device.transfer { try await device.state(of: photo) == .uploaded }
        #expect(device.blobs.blob(photo) == bytes)
        #expect(device.blobs.bytesUp <= 330_000)
    }

    @Test("a process that ends amid an upload leaves it to the next one")
    func reopened() async throws {
        let directory = try TestDirectory()
        let blobs = PhotoDevice.blobs(before: try PhotoDevice.server(in: directory))
        let bytes = PhotoDevice.bytes(100_000)
        let photo: BlobReference
        do {
            let first = try await PhotoDevice(in: directory, blobs: blobs)
            photo = try await first.add(bytes, to: "n1")
            blobs.fault { request in
                if request.method == "PUT", blobs.bytesUp >= 49_152 { throw BlobServer.Cut() }
                return nil
            }
            try? await first.files.transfer()
            try await first.writer.write { try $0.execute(sql: "UPDATE tidemark_blob SET moving = 1") }
            #expect(try await first.state(of: photo) == .uploading(sent: 49_152))
        }
        blobs.endFaults()
        let next = try await PhotoDevice(in: directory, blobs: blobs)
        try await next.files.transfer()
        #expect(try await next.state(of: photo) == .uploaded)
        #expect(blobs.bytesUp == 100_000)
    }

    @Test("where the server has dropped a part, the upload begins where it says")
    func dropped() async throws {
        let device = try await PhotoDevice.alone()
        let bytes = PhotoDevice.bytes(100_000)
        let blobs = device.blobs
        blobs.fault { request in
            guard request.headers["Content-Range"]?.hasPrefix("bytes 32768-") == true else { return nil }
            blobs.dropParts()
            blobs.endFaults()
            return nil
        }
        let photo = try await device.add(bytes, to: "n1")
        try await device.files.transfer()
        #expect(blobs.blob(photo) == bytes)
        #expect(blobs.count("HEAD") == 2)
    }

    @Test("a damaged file is noticed, told, and whole again when its bytes are added anew")
    func damaged() async throws {
        let device = try await PhotoDevice.alone()
        let bytes = PhotoDevice.bytes(30_000)
        let photo = try await device.add(bytes, to: "n1")
        let url = try #require(device.files.url(for: photo))
        var other = bytes
        other[7] ^= 1
        try Data(other).write(to: url)
        await #expect(throws: SyncError.self) { try await device.files.transfer() }
        #expect(try await device.state(of: photo) == .failed(.fileDamaged))
        #expect(device.files.url(for: photo) == nil)
        #expect(device.blobs.blob(photo) == nil)

        _ = try await device.files.add(Data(bytes))
        try await device.files.transfer()
        #expect(try await device.state(of: photo) == .uploaded)
    }

    @Test("a damaged file that is added anew while it is uploaded stays, and is uploaded")
    func replacedWhileDamaged() async throws {
        let device = try await PhotoDevice.alone()
        let bytes = PhotoDevice.bytes(30_000)
        let photo = try await device.add(bytes, to: "n1")
        let url = try #require(device.files.url(for: photo))
        device.blobs.hold("HEAD")
        let transfer = Task { try await device.files.transfer() }
        try await poll { device.blobs.waiting == 1 }
        // The transfer has opened this file.
        let file = try FileHandle(forWritingTo: url)
        try file.truncate(atOffset: 100)
        try file.close()
        _ = try await device.files.add(Data(bytes))
        device.blobs.open()
        try await transfer.value
        #expect(try await device.state(of: photo) == .uploaded)
        #expect(device.blobs.blob(photo) == bytes)
    }

    @Test("a file that the server finds too large is not tried again until the app says so")
    func tooLarge() async throws {
        let device = try await PhotoDevice.alone()
        device.blobs.fault { $0.method == "PUT" ? BlobServer.problem(413, "request_too_large") : nil }
        let photo = try await device.add(PhotoDevice.bytes(30_000), to: "n1")
        await #expect(throws: SyncError.self) { try await device.files.transfer() }
        #expect(try await device.state(of: photo) == .failed(.tooLarge))
        try await device.files.transfer()
        #expect(device.blobs.count("PUT") == 1)
        device.blobs.endFaults()
        try await device.files.retry(photo)
        try await device.files.transfer()
        #expect(try await device.state(of: photo) == .uploaded)
    }

    @Test("no network, a busy server and a refusal leave the file waiting, with the reason")
    func refused() async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(30_000), to: "n1")
        let refusals = [
            (503, "unavailable"), (507, "quota_exceeded"), (500, "internal_error"), (403, "scope_read_only"),
        ]
        for (status, code) in refusals {
            device.blobs.fault { $0.method == "PUT" ? BlobServer.problem(status, code) : nil }
            await #expect(throws: SyncError.self) { try await device.files.transfer() }
            #expect(try await device.state(of: photo) == .local)
            #expect(try await device.count("tidemark_attachment WHERE reason = '\(code)'") == 1)
            device.blobs.endFaults()
        }
        device.blobs.fault { _ in throw BlobServer.Cut() }
        await #expect(throws: SyncError.self) { try await device.files.transfer() }
        device.blobs.endFaults()
        try await device.files.transfer()
        #expect(try await device.state(of: photo) == .uploaded)
    }

    @Test("when the server lost its history, files that are here are offered again, and no others")
    func lostHistory() async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(30_000), to: "n1")
        let gone = try await device.add(PhotoDevice.bytes(30_000, seed: 2), to: "n2")
        try await device.sync()
        try await device.files.transfer()
        #expect(try await device.files.evict(gone))
        device.blobs.lose(photo)
        device.blobs.lose(gone)
        let schema = try #require(await device.engine.schemaCache.schema)
        try await device.writer.write { db in
            var record = try ScopeRecord.read(db, Device.scope)
            try HistoryReset(db: db, schema: schema).forget(&record, after: 0)
        }
        #expect(try await device.state(of: photo) == .local)
        #expect(try await !device.files.evict(photo), "It may be the only copy.")
        try await device.files.transfer()
        #expect(device.blobs.blob(photo) != nil)
        #expect(try await device.state(of: gone) == .remote)
    }

    @Test("bytes that the server has lost are sent again by a device that is filled anew, and by no other")
    func refilled() async throws {
        let directory = try TestDirectory()
        let server = try PhotoDevice.server(in: directory)
        let device = try await PhotoDevice(in: directory, blobs: PhotoDevice.blobs(before: server))
        let bytes = PhotoDevice.bytes(30_000)
        let photo = try await device.add(bytes, to: "n1")
        try await device.sync()
        try await device.files.transfer()
        device.blobs.lose(photo)
        try await device.sync()
        try await device.files.transfer()
        #expect(device.blobs.blob(photo) == nil, "It was acknowledged, and nobody has told the device.")
        let known = try #require(try await server.devices().devices.first)
        try await server.remedy(.refill, for: known.name.client)
        try await device.sync()
        try await device.files.transfer()
        #expect(device.blobs.blob(photo) == bytes)
        #expect(try await device.state(of: photo) == .uploaded)
        #expect(device.blobs.count("PUT") == 4, "Two parts of 16 KiB, twice.")
    }

    @Test("a device that is filled anew sends what is new before what the server may have lost")
    func refilledBehind() async throws {
        let directory = try TestDirectory()
        let server = try PhotoDevice.server(in: directory)
        let device = try await PhotoDevice(in: directory, blobs: PhotoDevice.blobs(before: server)) { configuration in
            configuration.parallelTransfers = 1
        }
        var photos: [BlobReference] = []
        for number in 1...3 {
            photos.append(try await device.add(PhotoDevice.bytes(9000, seed: UInt64(number)), to: "n\(number)"))
        }
        try await device.sync()
        try await device.files.transfer()
        try await device.sync()
        let known = try #require(try await server.devices().devices.first)
        try await server.remedy(.refill, for: known.name.client)
        try await device.sync()
        let doubted = "tidemark_blob WHERE stored = 0 AND offers = 1 AND task = 1 AND priority < 0"
        #expect(try await device.count(doubted) == 3)
        #expect(try await device.count("tidemark_blob_file WHERE backed = 1 OR evictable = 1") == 0)
        let new = try await device.add(PhotoDevice.bytes(9000, seed: 9), to: "n4")
        let requests = device.blobs.log.count
        try await device.files.transfer()
        #expect(device.blobs.log.dropFirst(requests).first?.hasSuffix(String(new.hash.prefix(6))) == true)
        for photo in photos + [new] { #expect(try await device.state(of: photo) == .uploaded) }
        #expect(device.blobs.count("PUT") == 4, "Files that the server may have are asked about, however small.")
        #expect(try await device.count("tidemark_blob WHERE stored = 1 AND priority = 0") == 4)
    }
}
