import Foundation
import GRDB
import Tidemark
import TidemarkCore
import TidemarkServer
import TidemarkWire

/// What the user or the app does with the file of an attachment.
enum FileAct: String, Hashable, Sendable, CaseIterable {
    case fetch, look, pin, unpin, evict, retry
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension SimulatedApp {
    var hasFiles: Bool { tables.contains { !$0.attachments.isEmpty } }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension World {
    /// Bytes of a blob that one request of a device carries, and that the server keeps of one that is cut: small, so
    /// that a picture of a few hundred bytes has many parts.
    private static let partBytes = 128
    static let pieceBytes = 64

    /// What a device's engine is given for its files.
    func fileConfiguration(of device: SimulatedDevice) -> AttachmentConfiguration? {
        guard app.hasFiles else { return nil }
        var choices = SplitMix64(seed: plan.seed ^ 0x66_696c_6573)
        var configuration = AttachmentConfiguration(folder: device.folder)
        configuration.partBytes = Self.partBytes
        configuration.cacheLimit = [nil, nil, 500, 1500][Int(choices.next() % 4)]
        configuration.parallelTransfers = [1, 2, 4][Int(choices.next() % 3)]
        return configuration
    }

    // MARK: What is done with files

    /// The app adds bytes, and then writes their reference.
    func add(_ adding: SimulatedApp.Act.Adding, _ act: SimulatedApp.Act, _ device: SimulatedDevice, _ choices: Choices)
    {
        guard let process = device.process, let engine = process.engine else { return }
        var drawn = choices
        let (bytes, name, number) = (adding.bytes(&drawn), act.name, device.number)
        let rest = drawn
        oracle?.adds(bytes)
        process.start { [self] in
            do {
                let reference = try await engine.attachments.add(Data(bytes))
                guard process.isAlive else { return }
                oracle?.look()
                var choices = rest
                try write(devices[number]) { db in try adding.perform(db, &choices, reference) }
                oracle?.added(bytes, reference, by: number)
            } catch {
                if !Self.isForgiven(error) { oracle?.check { throw Violation("act", "\(name): \(error)") } }
            }
            if process.isAlive { oracle?.acted(on: number) }
        }
        quiesce()
    }

    private func write(_ device: SimulatedDevice, _ body: (Database) throws -> Void) throws {
        try device.file.queue.write(body)
    }

    /// Something is done with one of the files that rows on the device name.
    func perform(_ act: FileAct, on device: SimulatedDevice, _ choice: UInt64) throws {
        guard app.hasFiles, let process = device.process, let files = process.engine?.attachments else { return }
        let named = try device.references()
        guard !named.isEmpty else { return }
        let (reference, number) = (named[Int(choice % UInt64(named.count))], device.number)
        process.start { [self] in
            do { try await Self.perform(act, files, reference) } catch {
                note("\(act) of \(reference.hash.prefix(6)) on \(number): \(error)")
            }
        }
        quiesce()
    }

    private static func perform(_ act: FileAct, _ files: Attachments, _ reference: BlobReference) async throws {
        switch act {
        case .fetch: _ = try await files.fetch(reference)
        case .look: _ = files.url(for: reference)
        case .pin: try await files.pin(reference)
        case .unpin: try await files.unpin(reference)
        case .evict: try await files.evict(reference)
        case .retry: try await files.retry(reference)
        }
    }

    /// A device's file is another one: what comes of its folder.
    func replaceFolder(
        of device: SimulatedDevice, with image: SimulatedDevice.FolderImage?
    ) throws -> SimulatedDevice.FolderFate {
        guard app.hasFiles, let fate = SimulatedDevice.FolderFate(rawValue: draw() % 3) else { return .stays }
        note("folder of \(device.number) \(fate)")
        switch fate {
        case .stays: break
        case .isGone: try device.replaceFolder(with: nil)
        case .comesAlong: try device.replaceFolder(with: image)
        }
        return fate
    }

    // MARK: The end

    /// The faults end: every disk has room, and people try again what had failed.
    func calmFiles() throws {
        guard app.hasFiles else { return }
        server.disk.isFull = false
        for device in devices { device.isDiskFull = false }
        wakeAll()
        for device in devices {
            guard let process = device.process, let files = process.engine?.attachments else { continue }
            for reference in try device.references(where: "failed = 1") {
                process.start { try? await files.retry(reference) }
                quiesce()
            }
        }
        flow()
    }

    /// What keeps files from being where they are wanted.
    func fileLeftovers(of device: SimulatedDevice) throws -> [String] {
        guard app.hasFiles else { return [] }
        var found: [String] = []
        try device.file.queue.unsafeRead { db in
            var sources = [
                ("names of files not looked at", "tidemark_blob_change"), ("uploads", "tidemark_blob WHERE task = 1"),
                ("downloads", "tidemark_blob WHERE task = 2 AND NOT awaited"),
            ]
            // A file that was put back may tell of others that its folder has no more.
            if !lostDevices.contains(device.number) {
                sources.append(("files given up", "tidemark_blob WHERE failed = 1"))
            }
            for (name, source) in sources {
                let count = try Int.fetchOne(db.cachedStatement(sql: "SELECT count(*) FROM \(source)")) ?? 0
                if count > 0 { found.append("device \(device.number): \(count) \(name)") }
            }
            let awaited = try Row.fetchAll(
                db.cachedStatement(sql: "SELECT reference, scope FROM tidemark_blob WHERE task = 2 AND awaited"))
            for row in awaited {
                guard let reference = BlobReference(row[0] as String), let scope = Scope(row[1] as String),
                    server.blobs?.scopes[scope]?.blobs[reference.hash] != nil
                else { continue }
                found.append("\(Self.awaited)device \(device.number): \(reference.hash.prefix(6))")
            }
        }
        return found
    }

    private static let awaited = "awaited and there: "

    /// A file that nobody had uploaded is asked for again after 15 minutes at last.
    static func patience(with leftovers: [String]) -> Int64 {
        leftovers.allSatisfy { $0.hasPrefix(awaited) } ? 16 * 60_000 : 0
    }

    /// Every device asks for every file that its rows name.
    func fetchAll() throws {
        guard app.hasFiles else { return }
        oracle?.checkFiles()
        for device in devices {
            for reference in try device.references() {
                try oracle?.checkMissing(reference, on: device.number)
                guard let process = device.process, let files = process.engine?.attachments,
                    oracle?.isThere(reference, for: device.number) == true
                else { continue }
                process.start { _ = try? await files.fetch(reference) }
                quiesce()
                flow()
                oracle?.checkFiles()
                oracle?.checkFetched(reference, on: device.number)
                try oracle?.report()
            }
        }
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension SimulatedDevice {
    /// What rows name, as the engine knows it.
    func references(where condition: String = "1") throws -> [BlobReference] {
        try file.queue.unsafeRead { db in
            try String.fetchAll(
                db.cachedStatement(
                    sql: "SELECT DISTINCT reference FROM tidemark_blob WHERE \(condition) ORDER BY reference"))
        }.compactMap { BlobReference($0) }
    }

    /// The whole files of its folder, by their names.
    func files() -> [String: URL] {
        var files: [String: URL] = [:]
        let manager = FileManager.default
        for name in (try? manager.contentsOfDirectory(atPath: folder.path)) ?? [] where name.count == 2 {
            let home = folder.appending(path: name)
            for hash in (try? manager.contentsOfDirectory(atPath: home.path)) ?? [] {
                files[hash] = home.appending(path: hash)
            }
        }
        return files
    }

    /// What comes of the folder where the app's file is put back, or comes from another device.
    enum FolderFate: UInt64 {
        /// It stays as it is.
        case stays
        /// The device is a new one.
        case isGone
        /// It comes along with the file.
        case comesAlong
    }

    typealias FolderImage = [String: Data]

    func folderImage() -> FolderImage {
        var image: FolderImage = [:]
        for path in (try? FileManager.default.subpathsOfDirectory(atPath: folder.path)) ?? [] {
            image[path] = try? Data(contentsOf: folder.appending(path: path))
        }
        return image
    }

    func replaceFolder(with image: FolderImage?) throws {
        try? FileManager.default.removeItem(at: folder)
        for (path, contents) in image ?? [:] {
            let url = folder.appending(path: path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try contents.write(to: url)
        }
    }
}
