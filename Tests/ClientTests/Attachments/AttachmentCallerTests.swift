import Foundation
import GRDB
import Testing
import TidemarkWire

@testable import Tidemark

@Suite("Several callers of attachments")
struct AttachmentCallerTests {
    /// Bytes of one part that the server has, and that a note names.
    private func remote(_ device: PhotoDevice, seed: UInt64, in id: String) async throws -> BlobReference {
        let bytes = PhotoDevice.bytes(10_000, seed: seed)
        let reference = try #require(BlobReference(hash: AttachmentQueueTests.hash(bytes), size: 10_000))
        device.blobs.put(bytes, as: reference)
        try await device.name(reference, in: id)
        return reference
    }

    @Test("an engine that begins to run during a fetch moves bytes by itself afterwards")
    func runDuringFetch() async throws {
        let device = try await PhotoDevice.alone()
        let theirs = try await remote(device, seed: 1, in: "n1")
        device.blobs.hold("GET")
        defer { device.blobs.open() }
        let fetch = Task { try await device.files.fetch(theirs) }
        try await poll { device.blobs.waiting == 1 }
        let running = Task { try await device.engine.run() }
        defer { running.cancel() }
        // Once the row has gone up, the engine runs.
        try await poll { try await device.engine.status().pending == 0 }
        device.blobs.open()
        _ = try await fetch.value
        let own = try await device.add(PhotoDevice.bytes(20_000, seed: 2), to: "n2")
        try await poll { try await device.state(of: own) == .uploaded }
    }

    @Test("an engine whose run is cancelled while a fetch is under way returns, and the fetch goes on")
    func cancelledTurn() async throws {
        let device = try await PhotoDevice.alone()
        let theirs = try await remote(device, seed: 1, in: "n1")
        device.blobs.hold("GET")
        defer { device.blobs.open() }
        let fetch = Task { try await device.files.fetch(theirs) }
        try await poll { device.blobs.waiting == 1 }
        let hasEnded = Locked(false)
        let running = Task {
            defer { hasEnded.withLock { $0 = true } }
            try await device.engine.run()
        }
        try await poll { try await device.engine.status().pending == 0 }
        running.cancel()
        try await poll { hasEnded.withLock { $0 } }
        device.blobs.open()
        _ = try await fetch.value
    }

    @Test("a fetch that ends first leaves the other one's transfer alone, and does not wait for it")
    func twoFetches() async throws {
        let device = try await PhotoDevice.alone()
        let photos = [
            try await remote(device, seed: 1, in: "n1"), try await remote(device, seed: 2, in: "n2"),
        ]
        device.blobs.hold("GET")
        defer { device.blobs.open() }
        let hasEnded = Locked(false)
        let first = Task {
            defer { hasEnded.withLock { $0 = true } }
            return try await device.files.fetch(photos[0])
        }
        try await poll { device.blobs.waiting == 1 }
        let second = Task { try await device.files.fetch(photos[1]) }
        try await poll { device.blobs.waiting == 2 }
        device.blobs.open(one: true)
        try await poll { hasEnded.withLock { $0 } }
        _ = try await first.value
        device.blobs.open()
        _ = try await second.value
        #expect(device.blobs.count("GET") == 2)
    }

    @Test("a transfer that comes once the engine has signed out ends")
    func afterStop() async throws {
        let device = try await PhotoDevice.alone()
        // The transport is still there, as for a call that has just looked.
        await device.engine.attachmentRunner?.stop()
        let code = Locked<SyncError.Code?>(nil)
        let transfer = Task {
            do { try await device.files.transfer() } catch let error as SyncError {
                code.withLock { $0 = error.code }
            }
        }
        defer { transfer.cancel() }
        try await poll { code.withLock { $0 } == .engineDisconnected }
    }

    @Test("a failure after a success waits no longer than a first one")
    func failures() async throws {
        let device = try await PhotoDevice.alone()
        let photo = try await device.add(PhotoDevice.bytes(10_000), to: "n1")
        device.blobs.fault { _ in throw BlobServer.Cut() }
        let running = Task { try await device.engine.run() }
        defer { running.cancel() }
        try await poll { await device.engine.attachmentRunner?.failures ?? 0 > 2 }
        device.blobs.endFaults()
        try await poll { try await device.state(of: photo) == .uploaded }
        try await poll { await device.engine.attachmentRunner?.failures == 0 }
    }

    /// Adds bytes, and names them in scopes.
    private func add(_ seed: UInt64, in scopes: [String], to device: PhotoDevice) async throws -> BlobReference {
        let photo = try await device.files.add(Data(PhotoDevice.bytes(40_000, seed: seed)))
        try await device.writer.write { [text = photo.description] db in
            for scope in scopes {
                try db.execute(
                    sql: "INSERT INTO note (id, photo, w) VALUES (?, ?, ?)",
                    arguments: ["n\(seed)-\(scope)", text, scope])
            }
        }
        // The engine does not run: this has it look.
        try await device.files.pin(photo)
        return photo
    }

    @Test("bytes under way that another scope names, too, take nobody's place")
    func twoScopes() async throws {
        let device = try await PhotoDevice.spread()
        let blobs = device.blobs
        _ = try await add(1, in: ["1", "2"], to: device)
        try await device.writer.write { try $0.execute(sql: "UPDATE tidemark_blob SET priority = 1") }
        blobs.hold("HEAD")
        defer { blobs.open() }
        let transfer = Task { try await device.files.transfer() }
        try await poll { blobs.waiting == 1 }
        _ = try await add(2, in: ["1"], to: device)
        try await poll { blobs.waiting == 2 }
        _ = try await add(3, in: ["1"], to: device)
        try await poll { blobs.waiting == 3 }
        blobs.open()
        try await transfer.value
        #expect(blobs.count("HEAD") == 4, "Each begins once in each of its scopes.")
    }

    @Test("a file that other scopes wait for takes no room from others")
    func besides() async throws {
        let scopes = ["1", "2", "3", "4"]
        let device = try await PhotoDevice.spread(over: scopes.compactMap { Scope("w:\($0)") }) { configuration in
            configuration.parallelTransfers = 2
        }
        let blobs = device.blobs
        _ = try await add(1, in: scopes, to: device)
        let other = try await add(2, in: ["1"], to: device)
        blobs.hold("HEAD")
        defer { blobs.open() }
        let transfer = Task { try await device.files.transfer() }
        try await poll { blobs.waiting == 1 }
        try await poll { blobs.log.contains("HEAD \(other.hash.prefix(6))") }
        blobs.open()
        try await transfer.value
    }

    @Test("a file travels once at a time, whichever scopes name it")
    func onceAtATime() async throws {
        let device = try await PhotoDevice.spread()
        let blobs = device.blobs
        let shared = try await add(1, in: ["1", "2"], to: device)
        blobs.hold("HEAD")
        defer { blobs.open() }
        let transfer = Task { try await device.files.transfer() }
        try await poll { blobs.waiting == 1 }
        let other = try await add(2, in: ["1"], to: device)
        try await poll { blobs.log.contains("HEAD \(other.hash.prefix(6))") }
        // What is begun together is noted in one transaction: it would be there beside the other one by now.
        #expect(try await device.count("tidemark_blob WHERE moving = 1 AND reference = '\(shared)'") == 1)
        #expect(try await device.count("tidemark_blob WHERE moving = 1") == 2)
        blobs.open()
        try await transfer.value
        for scope: Scope in ["w:1", "w:2"] { #expect(blobs.blob(shared, in: scope) != nil) }
    }
}
