import Foundation
import GRDB
import Testing
import TidemarkWire

@testable import Tidemark

@Suite("Downloads of attachments")
struct AttachmentDownloadTests {
    /// A device with a row from elsewhere that names bytes, which the server has.
    private func world(
        _ bytes: [UInt8], column: String = "photo", isUploaded: Bool = true
    ) async throws -> (device: PhotoDevice, reference: BlobReference) {
        let directory = try TestDirectory()
        let blobs = PhotoDevice.blobs(before: try PhotoDevice.server(in: directory))
        let ada = try await PhotoDevice("ada", in: directory, blobs: blobs)
        let reference = try await ada.add(bytes, to: "n1", column: column)
        try await ada.sync()
        if isUploaded { blobs.put(bytes, as: reference) }
        let bob = try await PhotoDevice("bob", in: directory, blobs: blobs)
        try await bob.sync()
        return (bob, reference)
    }

    @Test("a download that is cut goes on where it was, and takes hardly more than the bytes")
    func cut() async throws {
        let bytes = PhotoDevice.bytes(400_000)
        let (device, photo) = try await world(bytes, column: "thumb")
        device.blobs.cut(every: 160_000)
        try await device.transfer { device.files.url(for: photo) != nil }
        #expect(try device.files.data(for: photo) == Data(bytes))
        #expect(device.blobs.bytesDown <= 440_000)
    }

    @Test("parts become smaller on a network that cuts each of them")
    func narrow() async throws {
        let directory = try TestDirectory()
        let blobs = PhotoDevice.blobs(before: try PhotoDevice.server(in: directory))
        let ada = try await PhotoDevice("ada", in: directory, blobs: blobs)
        let bytes = PhotoDevice.bytes(300_000)
        let thumb = try await ada.add(bytes, to: "n1", column: "thumb")
        try await ada.sync()
        blobs.put(bytes, as: thumb)
        let bob = try await PhotoDevice("bob", in: directory, blobs: blobs) { $0.partBytes = 1 << 20 }
        try await bob.sync()
        blobs.cut(every: 80_000)
        try await bob.transfer { bob.files.url(for: thumb) != nil }
        #expect(try bob.files.data(for: thumb) == Data(bytes))
    }

    @Test("bytes that were all here when a process ended say nothing of what the server has")
    func complete() async throws {
        let bytes = PhotoDevice.bytes(40_000)
        let (device, thumb) = try await world(bytes, column: "thumb", isUploaded: false)
        try? await device.files.transfer()
        try Data(bytes).write(to: device.folder.appending(path: "unfinished/\(thumb.hash).part"))
        await #expect(throws: SyncError.self) { _ = try await device.files.fetch(thumb) }
        #expect(try await device.count("tidemark_blob WHERE stored = 1") == 0)
        device.blobs.put(bytes, as: thumb)
        _ = try await device.files.fetch(thumb)
        #expect(try device.files.data(for: thumb) == Data(bytes))
        #expect(device.blobs.bytesDown == 0)
    }

    @Test("a process that ends amid a download leaves what has come to the next one")
    func reopened() async throws {
        let bytes = PhotoDevice.bytes(100_000)
        let (device, thumb) = try await world(bytes, column: "thumb")
        let blobs = device.blobs
        blobs.fault { request in
            if request.method == "GET", blobs.bytesDown >= 49_152 { throw BlobServer.Cut() }
            return nil
        }
        try? await device.files.transfer()
        #expect(device.files.url(for: thumb) == nil, "What is not whole is not shown.")
        blobs.endFaults()
        let next = try await PhotoDevice("bob", in: device.directory, blobs: blobs)
        try await next.files.transfer()
        #expect(try next.files.data(for: thumb) == Data(bytes))
        #expect(blobs.bytesDown == 100_000)
    }

    static let fullDevice = "/dev/full"

    @Test(
        "a disk that is full amid a download is told, records go on, and what had come is not asked for again",
        .enabled(if: FileManager.default.fileExists(atPath: AttachmentDownloadTests.fullDevice)))
    func fullDisk() async throws {
        let bytes = PhotoDevice.bytes(100_000)
        let (device, thumb) = try await world(bytes, column: "thumb")
        let blobs = device.blobs
        let workshop = device.folder.appending(path: "unfinished")
        let (partial, kept) = (workshop.appending(path: "\(thumb.hash).part"), workshop.appending(path: "kept"))
        blobs.fault { request in
            let files = FileManager.default
            guard request.method == "GET", blobs.bytesDown >= 32_768, !files.fileExists(atPath: kept.path) else {
                return nil
            }
            // The next bytes go where there is no room.
            try files.moveItem(at: partial, to: kept)
            try files.createSymbolicLink(atPath: partial.path, withDestinationPath: Self.fullDevice)
            return nil
        }
        let error = await #expect(throws: SyncError.self) { try await device.files.transfer() }
        #expect(error?.code == .folderFailed)
        #expect(try await device.count("tidemark_attachment WHERE state = 'remote' AND reason = 'folder_failed'") == 1)
        #expect(device.files.url(for: thumb) == nil)
        try await device.name(nil, in: "n2")
        try await device.sync()
        #expect(try await device.engine.status().pending == 0)

        blobs.endFaults()
        try FileManager.default.removeItem(at: partial)
        try FileManager.default.moveItem(at: kept, to: partial)
        let before = blobs.bytesDown
        try await device.transfer { device.files.url(for: thumb) != nil }
        #expect(try device.files.data(for: thumb) == Data(bytes))
        #expect(blobs.bytesDown - before == 100_000 - 32_768)
    }

    @Test("other bytes than the reference says are never shown, and given up after some attempts")
    func wrong() async throws {
        let bytes = PhotoDevice.bytes(40_000)
        let (device, thumb) = try await world(bytes, column: "thumb")
        var other = bytes
        other[39_999] ^= 1
        device.blobs.put(other, as: thumb)
        try await device.transfer { try await device.state(of: thumb) == .failed(.wrongBytes) }
        #expect(device.files.url(for: thumb) == nil)
        let left = FileManager.default.enumerator(at: device.folder, includingPropertiesForKeys: nil)?.allObjects ?? []
        let files = left.compactMap { $0 as? URL }.filter { !$0.hasDirectoryPath }
        #expect(files.map(\.lastPathComponent) == ["mark"])
        device.blobs.put(bytes, as: thumb)
        #expect(try Data(contentsOf: try await device.files.fetch(thumb)) == Data(bytes))
    }

    @Test("bytes that nobody has uploaded are awaited, and come once they are there")
    func awaited() async throws {
        let bytes = PhotoDevice.bytes(40_000)
        let (device, thumb) = try await world(bytes, column: "thumb", isUploaded: false)
        try? await device.files.transfer()
        #expect(try await device.state(of: thumb) == .awaited)
        let error = await #expect(throws: SyncError.self) { try await device.files.fetch(thumb) }
        #expect(error?.code == .attachmentUnavailable)
        #expect(try await device.state(of: thumb) == .awaited)
        device.blobs.put(bytes, as: thumb)
        try await device.transfer { device.files.url(for: thumb) != nil }
    }

    @Test("a clock that is set back by a year makes no file wait for a year")
    func setBack() async throws {
        let bytes = PhotoDevice.bytes(40_000)
        let (device, thumb) = try await world(bytes, column: "thumb", isUploaded: false)
        try? await device.files.transfer()
        #expect(try await device.state(of: thumb) == .awaited)
        try await device.writer.write { db in
            try db.execute(
                sql: "UPDATE tidemark_blob SET next_attempt = next_attempt + ?", arguments: [365 * 86_400_000])
        }
        device.blobs.put(bytes, as: thumb)
        try await device.files.transfer()
        #expect(device.files.url(for: thumb) != nil)
    }

    @Test("bytes that were long awaited come in large parts")
    func awaitedParts() async throws {
        let bytes = PhotoDevice.bytes(300_000)
        let (device, thumb) = try await world(bytes, column: "thumb", isUploaded: false)
        try? await device.files.transfer()
        #expect(try await device.state(of: thumb) == .awaited)
        try await device.writer.write { db in
            try db.execute(sql: "UPDATE tidemark_blob SET attempts = 10, next_attempt = 1")
        }
        device.blobs.put(bytes, as: thumb)
        let asked = device.blobs.count("GET")
        let next = try await PhotoDevice("bob", in: device.directory, blobs: device.blobs) { $0.partBytes = 1 << 20 }
        try await next.files.transfer()
        #expect(next.files.url(for: thumb) != nil)
        #expect(device.blobs.count("GET") == asked + 1)
    }

    @Test("the answer of a portal's login is not taken for the server's")
    func portal() async throws {
        let bytes = PhotoDevice.bytes(40_000)
        let (device, thumb) = try await world(bytes, column: "thumb")
        device.blobs.fault { _ in TransportResponse(status: 404, headers: ["Content-Type": "text/html"]) }
        await #expect(throws: SyncError.self) { try await device.files.transfer() }
        #expect(try await device.state(of: thumb) == .remote, "No server has said that it lacks the bytes.")
        device.blobs.endFaults()
        device.blobs.fault { _ in
            TransportResponse(status: 200, headers: ["Content-Type": "text/html"], body: Array("login".utf8))
        }
        await #expect(throws: SyncError.self) { try await device.files.transfer() }
        device.blobs.endFaults()
        try await device.transfer { try device.files.data(for: thumb) == Data(bytes) }
    }

    @Test("a blob that no row names is not fetched")
    func unnamed() async throws {
        let device = try await PhotoDevice.alone()
        let reference = try #require(BlobReference(hash: String(repeating: "a", count: 64), size: 5))
        let error = await #expect(throws: SyncError.self) { try await device.files.fetch(reference) }
        #expect(error?.code == .attachmentUnavailable)
        #expect(device.blobs.log.isEmpty)
    }

    @Test("bytes that are here are uploaded to a scope where the app names them, not where somebody else's row does")
    func scopes() async throws {
        let device = try await PhotoDevice.spread()
        let blobs = device.blobs
        let photo = try await device.files.add(Data(PhotoDevice.bytes(30_000)))
        try await device.writer.write { [text = photo.description] db in
            try db.execute(sql: "INSERT INTO note (id, photo, w) VALUES ('n1', ?, '1')", arguments: [text])
            // As a page is applied.
            try CaptureSuppression.raise(db)
            try db.execute(sql: "INSERT INTO note (id, photo, w) VALUES ('n2', ?, '2')", arguments: [text])
            try CaptureSuppression.lower(db)
        }
        try await device.files.transfer()
        #expect(blobs.blob(photo, in: "w:1") != nil)
        #expect(blobs.blob(photo, in: "w:2") == nil)
        try await device.writer.write { [text = photo.description] db in
            try db.execute(sql: "INSERT INTO note (id, photo, w) VALUES ('n3', ?, '2')", arguments: [text])
        }
        try await device.files.transfer()
        #expect(blobs.blob(photo, in: "w:2") != nil)
    }

    /// Names bytes in scopes as a page does, on a device that never had them.
    private func named(_ bytes: [UInt8], in scopes: [String], of device: PhotoDevice) async throws -> BlobReference {
        let photo = try await device.files.add(Data(bytes))
        try FileManager.default.removeItem(at: try #require(device.files.url(for: photo)))
        try await device.writer.write { [text = photo.description] db in
            try db.execute(sql: "DELETE FROM tidemark_blob_file")
            try CaptureSuppression.raise(db)
            for scope in scopes {
                try db.execute(
                    sql: "INSERT INTO note (id, photo, w) VALUES (?, ?, ?)", arguments: ["n\(scope)", text, scope])
            }
            try CaptureSuppression.lower(db)
        }
        return photo
    }

    @Test(
        "a row that moves to another scope, or is copied there, takes bytes along that are not here",
        arguments: ["UPDATE note SET w = '2'", "INSERT INTO note (id, photo, w) SELECT 'n2', photo, '2' FROM note"])
    func moved(sql: String) async throws {
        let device = try await PhotoDevice.spread()
        let blobs = device.blobs
        let bytes = PhotoDevice.bytes(30_000)
        let photo = try await named(bytes, in: ["1"], of: device)
        blobs.put(bytes, as: photo, in: "w:1")
        try await device.files.transfer()
        #expect(try await device.state(of: photo) == .remote)
        try await device.writer.write { try $0.execute(sql: sql) }
        try await device.files.transfer()
        #expect(blobs.blob(photo, in: "w:2") == bytes)
    }

    @Test("a fetch asks each scope that names a file before it says that it is missing", arguments: [true, false])
    func eachScope(isThere: Bool) async throws {
        let device = try await PhotoDevice.spread()
        let blobs = device.blobs
        // A wait that is over at once would let the first scope be asked again before the second.
        var patient = SyncConfiguration()
        patient.backoff = .init(base: .seconds(600), maximum: .seconds(600), jitter: .zero)
        await device.engine.use(patient)
        let bytes = PhotoDevice.bytes(30_000)
        let photo = try await named(bytes, in: ["1", "2"], of: device)
        if isThere { blobs.put(bytes, as: photo, in: "w:2") }
        if isThere {
            #expect(try Data(contentsOf: await device.files.fetch(photo)) == Data(bytes))
        } else {
            let error = await #expect(throws: SyncError.self) { try await device.files.fetch(photo) }
            #expect(error?.code == .attachmentUnavailable)
            #expect(blobs.count("GET") == 2)
        }
    }
}
