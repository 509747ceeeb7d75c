import Foundation
import TidemarkCore
import TidemarkServer
import TidemarkWire

/// The files of a store's blobs and parts, beside its database: a folder for each scope, named after its hash, since
/// scopes may differ in case alone and file systems may not.
///
/// A part grows under its number, and becomes the blob by its renaming. Files belong to rows of the database: what has
/// no row is not there, and what has a row and no file is not there either.
struct BlobFiles: Sendable {
    /// Files are read and written on threads that serve nobody else.
    private static let queue = DispatchQueue(label: "tidemark.blobs", attributes: .concurrent)

    private let folder: String

    init(database path: String) { folder = path + "-blobs" }

    func run<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            Self.queue.async { continuation.resume(with: Swift.Result { try work() }) }
        }
    }

    // MARK: Places

    func home(_ scope: Scope) -> String {
        let key = SHA256.digest(Array(scope.name.utf8)).prefix(16)
        return folder + "/" + key.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    private func partsHome(_ scope: Scope) -> String { home(scope) + "/parts" }

    private func path(of part: BlobPart) -> String { partsHome(part.name.scope) + "/\(part.place)" }

    private func path(of hash: String, in scope: Scope) -> String { home(scope) + "/" + hash }

    /// Makes the folders of a scope, durably.
    func prepare(_ scope: Scope) throws {
        let parts = partsHome(scope)
        guard try File.size(at: parts) == nil else { return }
        for path in [folder, home(scope), parts] {
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw File.failure("cannot make \(path)") }
        }
        for path in [parts, home(scope), folder, URL(filePath: folder).deletingLastPathComponent().path] {
            try File.sync(path)
        }
    }

    // MARK: Parts

    /// Makes the empty file of a part, inside the transaction that writes its row. A database that was put back is
    /// older than the folder: then its next number may be that of a file with another caller's bytes. That file's name
    /// goes, and not its bytes: where a machine went down in the midst of a renaming, they may be a blob's as well.
    func create(_ part: BlobPart) throws {
        remove(part)
        _ = try File(path(of: part), O_RDWR | O_CREAT | O_EXCL)
    }

    /// Bytes that are kept of a part, `nil` where its file is lost.
    func kept(of part: BlobPart) throws -> Int64? {
        if let size = try File.size(at: path(of: part)) { return min(size, part.size) }
        return try isWhole(part.name.hash, part.size, in: part.name.scope) ? part.size : nil
    }

    /// Appends bytes under the file's lock, and only where the file is as long as the caller knows it. So two
    /// requests for one part never write over each other's bytes. It makes no file: nobody would count or remove the
    /// file of a part that was dropped meanwhile.
    func append(_ bytes: [UInt8], to part: BlobPart, isDurable: Bool) throws {
        let file = try File(path(of: part), O_RDWR)
        try file.lock()
        guard try file.size == part.kept else { throw BlobRefusal.moved }
        do { try file.write(bytes, at: part.kept) } catch {
            try? file.cut(at: part.kept)
            throw error
        }
        if isDurable { try file.sync() }
    }

    func bytes(of part: BlobPart, from offset: Int64, limit: Int) throws -> [UInt8] {
        do { return try File(path(of: part), O_RDONLY).read(from: offset, limit: limit) } catch BlobRefusal.moved {
            // It was renamed, and the process ended before its row was written.
            return try bytes(of: part.name.hash, in: part.name.scope, from: offset, limit: limit)
        }
    }

    /// Brings all bytes of a complete part to the disk.
    func sync(_ part: BlobPart) throws {
        guard try File.size(at: path(of: part)) != nil || !isWhole(part.name.hash, part.size, in: part.name.scope)
        else { return }
        let file = try File(path(of: part), O_RDWR)
        try file.lock()
        guard try file.size == part.size else { throw BlobRefusal.moved }
        try file.sync()
    }

    /// Makes a part that is all on the disk the blob; does nothing where it is the blob already.
    func rename(_ part: BlobPart) throws {
        let blob = path(of: part.name.hash, in: part.name.scope)
        if Foundation.rename(path(of: part), blob) != 0 {
            guard errno == ENOENT else { throw File.failure("cannot rename a part to \(blob)") }
            guard try isWhole(part.name.hash, part.size, in: part.name.scope) else { throw BlobRefusal.moved }
        }
        // The name among the parts may come back, for ``create(_:)`` or for ``names(in:)`` to find.
        try File.sync(home(part.name.scope))
    }

    func remove(_ part: BlobPart) { unlink(path(of: part)) }

    // MARK: Drafts

    private static let draftPrefix = "draft-"
    /// The file of a draft that is older, in seconds, was left by a process that has ended.
    private static let draftAge = 3600

    /// Writes the bytes of a whole blob, durably, to a file that bears no part's number. Answers its path.
    func draft(_ bytes: [UInt8], in scope: Scope) throws -> String {
        try prepare(scope)
        let path = partsHome(scope) + "/" + Self.draftPrefix + String(UInt64.random(in: .min ... .max), radix: 16)
        do {
            let file = try File(path, O_RDWR | O_CREAT | O_EXCL)
            try file.write(bytes, at: 0)
            try file.sync()
        } catch {
            unlink(path)
            throw error
        }
        return path
    }

    /// Makes a draft the blob, in the place of a file that is not whole.
    func rename(draft: String, to hash: String, in scope: Scope) throws {
        guard Foundation.rename(draft, path(of: hash, in: scope)) == 0 else {
            throw errno == ENOENT ? BlobRefusal.moved : File.failure("cannot rename \(draft)")
        }
        try File.sync(home(scope))
    }

    func remove(draft: String) { unlink(draft) }

    /// Removes drafts whose process was ended.
    func removeOldDrafts(in scope: Scope) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: partsHome(scope))) ?? [] {
            guard name.hasPrefix(Self.draftPrefix) else { continue }
            var status = stat()
            let path = partsHome(scope) + "/" + name
            if stat(path, &status) == 0, time(nil) - File.changed(status) > Self.draftAge { unlink(path) }
        }
    }

    // MARK: Blobs

    func isWhole(_ hash: String, _ size: Int64, in scope: Scope) throws -> Bool {
        try File.size(at: path(of: hash, in: scope)) == size
    }

    func bytes(of hash: String, in scope: Scope, from offset: Int64, limit: Int) throws -> [UInt8] {
        try File(path(of: hash, in: scope), O_RDONLY).read(from: offset, limit: limit)
    }

    func remove(_ hash: String, in scope: Scope) { unlink(path(of: hash, in: scope)) }

    // MARK: What is left over

    /// The names of the files of a scope: hashes of blobs, numbers of parts.
    func names(in scope: Scope) -> (blobs: [String], parts: [Int64]) {
        let blobs = (try? FileManager.default.contentsOfDirectory(atPath: home(scope))) ?? []
        let parts = (try? FileManager.default.contentsOfDirectory(atPath: partsHome(scope))) ?? []
        return (blobs.filter { BlobReference.isHash($0) }, parts.compactMap { Int64($0) })
    }

    func remove(partAt place: Int64, in scope: Scope) { unlink(partsHome(scope) + "/\(place)") }

    // MARK: Copies

    /// Makes the folder of a scope in a copy that nobody has yet.
    func makeHome(_ scope: Scope) throws {
        for path in [folder, home(scope)] {
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw File.failure("cannot make \(path)") }
        }
    }

    /// Takes in a blob of another folder: under a second name where the file system gives one, since nobody writes to
    /// the file of a blob, and else by its bytes. Answers whether it was there, whole.
    func take(
        _ hash: String, _ size: Int64, of scope: Scope, from source: BlobFiles, isLinking: Bool
    ) throws -> Bool {
        guard try source.isWhole(hash, size, in: scope) else { return false }
        let (old, new) = (source.path(of: hash, in: scope), path(of: hash, in: scope))
        if !isLinking || link(old, new) != 0 {
            do { try FileManager.default.copyItem(atPath: old, toPath: new) } catch {
                guard try source.isWhole(hash, size, in: scope) else {
                    unlink(new)
                    return false
                }
                throw StoreUnavailable("cannot copy \(old): \(error.localizedDescription)")
            }
            try File.sync(new)
        }
        guard try isWhole(hash, size, in: scope) else { throw StoreUnavailable("\(new) is not whole") }
        return true
    }

    /// Brings the names of a scope's files to the disk.
    func syncHome(_ scope: Scope) throws { try File.sync(home(scope)) }

    /// Brings the names of all scopes' folders to the disk.
    func syncFolder() throws {
        guard try File.size(at: folder) != nil else { return }
        try File.sync(folder)
    }

    /// Lets those read and write a file who may read and write another.
    static func takeMode(of old: String, for new: String) throws {
        var status = stat()
        guard stat(old, &status) == 0, chmod(new, status.st_mode & 0o777) == 0 else {
            throw File.failure("cannot set the mode of \(new)")
        }
    }

    /// Brings a file, or the names in a folder, to the disk.
    static func sync(_ path: String) throws { try File.sync(path) }
}

/// An open file, closed when nobody holds it.
private final class File {
    private let descriptor: Int32

    /// - Throws: ``BlobRefusal/moved`` where there is none.
    init(_ path: String, _ flags: Int32) throws {
        descriptor = open(path, flags | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            if errno == ENOENT { throw BlobRefusal.moved }
            throw Self.failure("cannot open \(path)")
        }
    }

    deinit { close(descriptor) }

    static func failure(_ what: String) -> StoreUnavailable {
        StoreUnavailable("\(what): \(String(cString: strerror(errno)))")
    }

    /// The size of a file, or of a folder whatever it may be; `nil` where there is none.
    static func size(at path: String) throws -> Int64? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            if errno == ENOENT { return nil }
            throw failure("cannot look at \(path)")
        }
        return Int64(status.st_size)
    }

    /// When a file was written last, in seconds since 1970.
    static func changed(_ status: stat) -> Int {
        #if canImport(Darwin)
            status.st_mtimespec.tv_sec
        #else
            status.st_mtim.tv_sec
        #endif
    }

    /// Brings a folder's names to the disk.
    static func sync(_ folder: String) throws {
        do { try File(folder, O_RDONLY).sync() } catch BlobRefusal.moved {
            throw StoreUnavailable("\(folder) is gone")
        }
    }

    /// Waits until no other holds it; it ends with this object.
    func lock() throws {
        while flock(descriptor, LOCK_EX) != 0 {
            guard errno == EINTR else { throw Self.failure("cannot lock a part") }
        }
    }

    var size: Int64 {
        get throws {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw Self.failure("cannot look at a part") }
            return Int64(status.st_size)
        }
    }

    func cut(at size: Int64) throws {
        guard ftruncate(descriptor, off_t(size)) == 0 else { throw Self.failure("cannot cut a part") }
    }

    func sync() throws {
        guard fsync(descriptor) == 0 else { throw Self.failure("cannot bring a part to the disk") }
    }

    func write(_ bytes: [UInt8], at offset: Int64) throws {
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset) + off_t(done))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Self.failure("cannot write a part") }
            done += count
        }
    }

    func read(from offset: Int64, limit: Int) throws -> [UInt8] {
        var failed = false
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            while count < limit {
                let some = pread(
                    descriptor, buffer.baseAddress.map { $0 + count }, limit - count, off_t(offset) + off_t(count))
                if some < 0, errno == EINTR { continue }
                failed = some < 0
                guard some > 0 else { break }
                count += some
            }
        }
        if failed { throw Self.failure("cannot read a blob") }
        if bytes.isEmpty { throw BlobRefusal.moved }
        return bytes
    }
}
