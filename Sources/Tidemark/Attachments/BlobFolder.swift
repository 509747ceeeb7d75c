import Foundation
import TidemarkCore
import TidemarkWire

/// The folder of an app's attachments. A whole file is called by its hash. One that is not whole, or not looked at yet,
/// lies apart, and comes to its place by being renamed, so that a file which is found there may be shown.
struct BlobFolder: Sendable {
    let configuration: AttachmentConfiguration
    private var root: URL { configuration.folder }
    private var workshop: URL { root.appending(path: "unfinished") }

    /// Bytes that are in memory at once while a file is copied or hashed.
    static let pieceBytes = 256 << 10

    func url(of reference: BlobReference) -> URL {
        root.appending(path: String(reference.hash.prefix(2))).appending(path: reference.hash)
    }

    /// Where a download stands.
    func partial(of reference: BlobReference) -> URL { workshop.appending(path: "\(reference.hash).part") }

    func contains(_ reference: BlobReference) -> Bool { size(of: url(of: reference)) == reference.size }

    /// `nil` where there is no such file.
    func size(of url: URL) -> Int64? { FileStamp(of: url)?.size }

    /// `nil` where there is no such file.
    func stamp(of reference: BlobReference) -> FileStamp? { FileStamp(of: url(of: reference)) }

    /// - Throws: ``SyncError`` `folder_failed` where it cannot be made.
    func prepare() throws {
        try failing {
            try makeFolder(
                root, isBackedUp: configuration.isBackedUp, isLocked: configuration.isLockedWithDevice)
            try FileManager.default.createDirectory(at: workshop, withIntermediateDirectories: true)
        }
    }

    // MARK: New files

    /// A file that is written, and not in its place yet.
    struct Draft {
        var url: URL
        var reference: BlobReference
    }

    /// Writes bytes to a file of their own, on the disk when this returns.
    ///
    /// - Parameter next: gives the next bytes, at most ``pieceBytes``; none at the end.
    /// - Throws: ``SyncError``: `folder_failed`, or `configuration_invalid` where there are more bytes than an
    ///   attachment may have; `CancellationError`. Nothing is left then.
    func draft(_ next: () throws -> Data) async throws -> Draft {
        try prepare()
        let url = workshop.appending(path: "\(randomHex(bytes: 16)).new")
        do {
            var (hash, size) = (SHA256(), Int64(0))
            let file = try failing {
                try Dependencies.current.use(url, for: .fileWrite) { try Data().write(to: url) }
                return try FileHandle(forWritingTo: url)
            }
            defer { try? file.close() }
            while case let piece = try failing(next), !piece.isEmpty {
                piece.withUnsafeBytes { hash.update($0) }
                size += Int64(piece.count)
                try failing {
                    try Dependencies.current.use(url, for: .fileWrite) { try file.write(contentsOf: piece) }
                }
                try Task.checkCancellation()
                // Others are to have their turn on this thread.
                await Task.yield()
            }
            if Dependencies.current.fsyncsFiles { try failing { try file.synchronize() } }
            guard let reference = BlobReference(hash: Self.hex(hash.finish()), size: size) else {
                throw SyncError(
                    .configurationInvalid, "The attachment is larger than any may be.",
                    hint: "Up to \(BlobReference.sizeLimit) bytes.")
            }
            return Draft(url: url, reference: reference)
        } catch {
            discard(url)
            throw error
        }
    }

    /// Puts a whole file into its place. Files are removed in write transactions of the app's file only, and this runs
    /// in one too, so that no file goes that has just come.
    func place(_ url: URL, as reference: BlobReference) throws {
        let target = self.url(of: reference)
        try failing {
            try FileManager.default.createDirectory(
                at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Dependencies.current.use(target, for: .filePlace) {
                guard rename(url.path, target.path) == 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
            }
        }
    }

    /// Makes sure that a file's name outlives a loss of power.
    func fsyncName(of reference: BlobReference) throws {
        guard Dependencies.current.fsyncsFiles else { return }
        for folder in [url(of: reference).deletingLastPathComponent(), root] {
            let descriptor = open(folder.path, O_RDONLY)
            guard descriptor >= 0 else { throw Self.failure(POSIXError(.init(rawValue: errno) ?? .EIO)) }
            defer { close(descriptor) }
            guard fsync(descriptor) == 0 else { throw Self.failure(POSIXError(.init(rawValue: errno) ?? .EIO)) }
        }
    }

    func discard(_ draft: Draft) { discard(draft.url) }

    private func discard(_ url: URL) {
        try? Dependencies.current.use(url, for: .fileRemove) { try FileManager.default.removeItem(at: url) }
    }

    // MARK: Files that are here

    /// The file, for reading at any place; `nil` where it is not here.
    ///
    /// - Throws: ``SyncError`` `folder_failed` where it is here and cannot be read now, as while the device is locked.
    func reader(of reference: BlobReference) throws -> BlobReader? {
        guard contains(reference) else { return nil }
        return BlobReader(file: try failing { try FileHandle(forReadingFrom: url(of: reference)) })
    }

    /// The folder's own mark, by which the app's file knows it again: a backup may bring the one without the other.
    var mark: String? {
        (try? Data(contentsOf: root.appending(path: Self.markName))).map { String(decoding: $0, as: UTF8.self) }
    }

    func set(mark: String) throws {
        try prepare()
        let url = root.appending(path: Self.markName)
        try failing {
            try Dependencies.current.use(url, for: .fileWrite) { try Data(mark.utf8).write(to: url, options: .atomic) }
        }
    }

    private static let markName = "mark"

    /// Whether a file's bytes are those of a reference.
    func isWhole(_ url: URL, _ reference: BlobReference) async throws -> Bool {
        guard size(of: url) == reference.size else { return false }
        let file = try failing { try FileHandle(forReadingFrom: url) }
        defer { try? file.close() }
        var hash = SHA256()
        while case let piece = try failing({ try file.read(upToCount: Self.pieceBytes) }) ?? Data(), !piece.isEmpty {
            piece.withUnsafeBytes { hash.update($0) }
            try Task.checkCancellation()
            // Others are to have their turn on this thread.
            await Task.yield()
        }
        return Self.hex(hash.finish()) == reference.hash
    }

    func remove(_ reference: BlobReference) throws {
        try failing {
            for url in [url(of: reference), partial(of: reference)] where size(of: url) != nil {
                try Dependencies.current.use(url, for: .fileRemove) { try FileManager.default.removeItem(at: url) }
            }
        }
    }

    /// Removes everything.
    func clear() throws {
        guard FileManager.default.fileExists(atPath: root.path) else { return }
        try failing { try FileManager.default.removeItem(at: root) }
    }

    /// Files that lie here by the names of their hashes, or unfinished, and were not written to since a time.
    func old(before time: Date) throws -> [URL] {
        guard FileManager.default.fileExists(atPath: root.path) else { return [] }
        let keys: [URLResourceKey] = [.isRegularFileKey, .contentModificationDateKey]
        let found = FileManager.default.enumerator(at: root, includingPropertiesForKeys: keys)
        var old: [URL] = []
        while let url = found?.nextObject() as? URL {
            guard url.lastPathComponent != Self.markName, let values = try? url.resourceValues(forKeys: Set(keys)),
                values.isRegularFile == true,
                let written = values.contentModificationDate, written < time
            else { continue }
            old.append(url)
        }
        return old
    }

    // MARK: Failures

    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    @discardableResult
    func failing<Result>(_ body: () throws -> Result) throws -> Result {
        do { return try body() } catch let error as SyncError { throw error } catch { throw Self.failure(error) }
    }

    static func failure(_ error: any Error) -> SyncError {
        SyncError(
            .folderFailed,
            "The folder of the attachments failed: \((error as NSError).domain) \((error as NSError).code).",
            hint: "See that the disk has room and the folder may be written; it is tried again by itself.")
    }
}

/// A file that is read in parts.
final class BlobReader {
    private let file: FileHandle

    init(file: FileHandle) { self.file = file }

    deinit { try? file.close() }

    func read(at offset: Int64, count: Int) throws -> [UInt8] {
        do {
            try file.seek(toOffset: UInt64(offset))
            return [UInt8](try file.read(upToCount: count) ?? Data())
        } catch { throw BlobFolder.failure(error) }
    }
}
