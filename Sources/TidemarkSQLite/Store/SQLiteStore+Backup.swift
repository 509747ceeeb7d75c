import Foundation
import GRDB
import TidemarkServer
import TidemarkWire

/// Counts of what a copy of a store holds.
public struct StoreBackup: Hashable, Sendable {
    /// Blobs that the copied database has rows of.
    public var expected = 0
    /// Blobs that are in the copy.
    public var blobs = 0
    /// Their bytes.
    public var bytes: Int64 = 0
    /// Blobs whose files are gone, or not whole. The copy has no rows of them.
    public var missing = 0

    /// Nothing.
    public init() {}
}

extension StoreBackup: CustomStringConvertible {
    /// A sentence for a log: `Copied 3 of 4 blobs, 120 bytes; 1 is gone or not whole.`
    public var description: String {
        "Copied \(blobs) of \(counted(expected, "blob")), \(counted(bytes, "byte"))"
            + (missing > 0 ? "; \(missing) \(missing == 1 ? "is" : "are") gone or not whole." : ".")
    }
}

/// Why no copy was made, in words for the operator.
public struct BackupRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason.
    public var description: String

    /// Makes a refusal with its reason, for tests.
    public init(description: String) {
        self.description = description
    }
}

extension SQLiteStore {
    /// Makes a copy of the store in a new folder: the database as it is at one moment, under its own name, and beside
    /// it the blobs that it has rows of. Whoever writes to the store, in this process or another, goes on. The folder
    /// has its name once all of it is on the disk.
    ///
    /// The database is copied first. A blob that is finished meanwhile is not in the copy; one that goes meanwhile,
    /// since nothing has named it for long or its scope was erased, is left out with its row. Unfinished uploads are
    /// left out: their devices begin anew.
    ///
    /// - Parameters:
    ///   - folder: what is made. Nothing may be there.
    ///   - isLinking: whether blobs are hard links where the file system gives them; else all bytes are copied.
    ///   - progress: hears of each blob, on the thread that copies it.
    /// - Throws: ``BackupRefusal`` where the folder cannot be made; `StoreUnavailable` where the disk is full, or
    ///   another process stands in the way for now; `CancellationError` when cancelled; GRDB's `DatabaseError` for
    ///   anything else. No folder is left then.
    public func backUp(
        to folder: String, isLinking: Bool = true, progress: @escaping @Sendable (StoreBackup) -> Void = { _ in }
    ) async throws -> StoreBackup {
        var folder = folder
        while folder.count > 1, folder.hasSuffix("/") { folder.removeLast() }
        let writer = BackupWriter(
            pool: pool, files: files, folder: folder, isLinking: isLinking, progress: progress)
        return try await Unavailability.told {
            try await withTaskCancellationHandler {
                try await writer.files.run { try writer.run() }
            } onCancel: {
                writer.isCancelled.withLock { $0 = true }
            }
        }
    }
}

/// Writes one copy, on a thread of its own.
private struct BackupWriter: Sendable {
    let pool: DatabasePool
    let files: BlobFiles
    let folder: String
    let isLinking: Bool
    let progress: @Sendable (StoreBackup) -> Void
    /// Looked at before each blob, and between the steps in which the database is copied.
    let isCancelled = Guarded(false)

    /// Rows that are looked at together.
    private static let batch = 500
    /// Pages of the database that are copied in one step.
    private static let step: CInt = 4096

    func run() throws -> StoreBackup {
        let partial = folder + ".partial"
        guard !FileManager.default.fileExists(atPath: folder) else {
            throw BackupRefusal(description: "\(folder) is there already")
        }
        guard mkdir(partial, 0o700) == 0 else {
            if errno == EEXIST {
                throw BackupRefusal(description: "\(partial) is there: of a copy under way, or of one that was ended")
            }
            throw BackupRefusal(description: "\(partial) cannot be made: \(String(cString: strerror(errno)))")
        }
        var made = partial
        do {
            let backup = try write(into: partial)
            // It takes the place of nothing but an empty folder.
            guard rename(partial, folder) == 0 else {
                throw BackupRefusal(description: "\(folder) cannot be made: \(String(cString: strerror(errno)))")
            }
            made = folder
            try BlobFiles.sync(parent)
            return backup
        } catch {
            try? FileManager.default.removeItem(atPath: made)
            throw error
        }
    }

    private func checkCancelled() throws {
        if isCancelled.withLock({ $0 }) { throw CancellationError() }
    }

    /// The folder in which the new one stands.
    private var parent: String {
        guard let slash = folder.lastIndex(of: "/") else { return "." }
        return slash == folder.startIndex ? "/" : String(folder[..<slash])
    }

    private func write(into partial: String) throws -> StoreBackup {
        let path = partial + "/" + URL(filePath: pool.path).lastPathComponent
        let copy = try DatabaseQueue(path: path)
        var backup = StoreBackup()
        do {
            try pool.backup(to: copy, pagesPerStep: Self.step) { _ in try checkCancelled() }
            try fill(copy, BlobFiles(database: path), &backup)
            // One file is the whole database: nobody has to think of a WAL.
            try copy.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA journal_mode = DELETE") }
        } catch {
            try? copy.close()
            throw error
        }
        try copy.close()
        try BlobFiles.takeMode(of: pool.path, for: path)
        try BlobFiles.sync(path)
        try BlobFiles.sync(partial)
        return backup
    }

    private func fill(_ copy: DatabaseQueue, _ own: BlobFiles, _ backup: inout StoreBackup) throws {
        backup.expected = try copy.write { db in
            try db.execute(sql: "DELETE FROM blob_part")
            return try Int.fetchOne(db, sql: "SELECT count(*) FROM blob") ?? 0
        }
        var last: BlobRow?
        var home: Scope?
        while true {
            let rows = try copy.read { [last] db in try BlobRow.page(db, after: last, limit: Self.batch) }
            var gone: [BlobRow] = []
            for row in rows {
                try checkCancelled()
                guard let scope = Scope(row.scope) else {
                    gone.append(row)
                    continue
                }
                if scope != home {
                    if let home { try own.syncHome(home) }
                    try own.makeHome(scope)
                    home = scope
                }
                if try own.take(row.hash, row.size, of: scope, from: files, isLinking: isLinking) {
                    backup.blobs += 1
                    backup.bytes += row.size
                } else {
                    gone.append(row)
                }
                progress(backup)
            }
            backup.missing += gone.count
            try copy.write { [gone] db in for row in gone { try row.remove(db) } }
            guard rows.count == Self.batch else { break }
            last = rows.last
        }
        if let home { try own.syncHome(home) }
        try own.syncFolder()
        try copy.write { db in try BlobRow.recount(db) }
    }
}

/// The row of a blob in a copy.
private struct BlobRow: Sendable {
    var scope, hash: String
    var size: Int64

    static func page(_ db: Database, after last: BlobRow?, limit: Int) throws -> [BlobRow] {
        try Row.fetchAll(
            db, sql: "SELECT scope, hash, size FROM blob WHERE (scope, hash) > (?, ?) ORDER BY scope, hash LIMIT ?",
            arguments: [last?.scope ?? "", last?.hash ?? "", limit]
        ).map { BlobRow(scope: $0[0], hash: $0[1], size: $0[2]) }
    }

    func remove(_ db: Database) throws {
        try db.execute(sql: "DELETE FROM blob WHERE scope = ? AND hash = ?", arguments: [scope, hash])
    }

    /// Counts what is left.
    static func recount(_ db: Database) throws {
        try db.execute(
            sql: """
                UPDATE blob_scope SET parts = 0,
                    blobs = (SELECT count(*) FROM blob WHERE blob.scope = blob_scope.scope),
                    bytes = (SELECT coalesce(sum(size), 0) FROM blob WHERE blob.scope = blob_scope.scope)
                """)
    }
}
