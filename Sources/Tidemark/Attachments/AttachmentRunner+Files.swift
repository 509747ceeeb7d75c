import Foundation
import GRDB
import TidemarkCore
import TidemarkWire

/// Files that come, that make room, and that nothing names any more. Each goes in a write transaction, in which others
/// come, too.
extension AttachmentRunner {
    /// Bytes that the app makes: on the disk before their reference can be in a row.
    func add(_ draft: BlobFolder.Draft) async throws -> BlobReference {
        let folder = folder
        do {
            _ = try await schemaCache.install()
            try await write { db, now in
                try folder.place(draft.url, as: draft.reference)
                try BlobFiles.add(db, draft.reference, now: now)
                // A damaged file is whole again.
                try Blob.change(db, draft.reference, now: now) { blob in
                    guard blob.isFailed || !blob.isStored else { return }
                    blob.clear()
                }
            }
        } catch {
            folder.discard(draft)
            throw error
        }
        try folder.fsyncName(of: draft.reference)
        signalWork()
        try await makeRoom(for: draft.reference)
        return draft.reference
    }

    // MARK: Room

    /// Files that go in one transaction, at most.
    private static var batch: Int { 50 }

    /// Removes the files that were not used for longest, until all fit again, but for the one that came last.
    ///
    /// - Parameters:
    ///   - new: what has just come; `nil` where something may go now that could not before.
    ///   - isThorough: whether it looks at all files, however many may not go.
    func makeRoom(for new: BlobReference?, isThorough: Bool = false) async throws {
        guard let limit = folder.configuration.cacheLimit else { return }
        if let new { newest = new }
        try await writeUses()
        let known = cached.map { $0 + (new?.size ?? 0) }
        if let known, known <= limit {
            cached = known
            return
        }
        let (schema, newest) = (try await schemaCache.install(), newest)
        var (total, last, stuck) = (try await file.read { try BlobFiles.total($0) }, BlobFiles.Candidate?.none, 0)
        while total > limit, isThorough || stuck < Self.stuckLimit {
            let files = try await file.read { [last] db in
                try BlobFiles.candidates(db, after: last, limit: Self.batch).map { file in
                    (file, mayGo: try file.reference != newest && BlobFiles.isEvictable(db, schema, file.reference))
                }
            }
            let able = files.filter(\.mayGo).map(\.0)
            (last, stuck) = (files.last?.0, stuck + files.count - able.count)
            if !able.isEmpty { total = try await evict(able, schema, downTo: limit) }
            if files.count < Self.batch { break }
        }
        cached = total
    }

    /// Evicts files, as long as there are more bytes than the limit, and returns how many there are then.
    private func evict(
        _ files: [BlobFiles.Candidate], _ schema: SyncSchema, downTo limit: Int64
    ) async throws -> Int64 {
        let folder = folder
        return try await write { db, now in
            var total = try BlobFiles.total(db)
            for file in files where total > limit {
                // A row may have named it since.
                guard try BlobFiles.isEvictable(db, schema, file.reference) else { continue }
                try Self.evict(db, folder, file.reference, now: now)
                total -= file.reference.size
            }
            return total
        }
    }

    /// After so many files that may not go, none is looked for behind them until the day is over: where records wait,
    /// each file that comes would have all others looked at.
    private static var stuckLimit: Int { 200 }

    /// Looks again at files that could not make room: the server may have taken their records since.
    func makeRoomWhenIdle() async throws {
        guard let limit = folder.configuration.cacheLimit, cached.map({ $0 > limit }) ?? true else { return }
        try await makeRoom(for: nil)
    }

    func evict(_ reference: BlobReference) async throws -> Bool {
        let (folder, schema) = (folder, try await schemaCache.install())
        cached = nil
        return try await write { db, now in
            guard try BlobFiles.isEvictable(db, schema, reference) else { return false }
            try Self.evict(db, folder, reference, now: now)
            return true
        }
    }

    private static func evict(_ db: Database, _ folder: BlobFolder, _ reference: BlobReference, now: Int64) throws {
        try folder.remove(reference)
        try BlobFiles.remove(db, reference, now: now)
        // It would come back at once.
        try Blob.change(db, reference, now: now) { ($0.wanted, $0.moved) = (.not, 0) }
    }

    /// Notes when files were used last.
    func writeUses() async throws {
        let uses = uses.withLock { uses in
            defer { uses = [:] }
            return uses
        }
        guard !uses.isEmpty else { return }
        try await write { db, _ in for (reference, time) in uses { try BlobFiles.touch(db, reference, at: time) } }
    }

    // MARK: Another folder

    private static var folderKey: String { "attachment_folder" }

    /// Looks for each file where the folder is not the one that the app's file knows: on a device that was set up from
    /// a backup, which mostly holds the one and not the other.
    func knowFolder() async throws {
        let known = try await file.read { try Meta.get($0, Self.folderKey) }
        guard known == nil || folder.mark != known else { return }
        let folder = folder
        cached = nil
        var last: Int64 = 0
        while let files = try await file.read({ [last] in try BlobFiles.all($0, after: last, limit: Self.batch) }).last
        {
            try await write { [last] db, now in
                for (_, reference) in try BlobFiles.all(db, after: last, limit: Self.batch)
                where !folder.contains(reference) {
                    try BlobFiles.remove(db, reference, now: now)
                    // It may have been uploaded since the backup was made.
                    try Blob.change(db, reference, now: now) { blob in
                        if blob.offers, !blob.isStored { blob.wanted = .automatically }
                    }
                }
            }
            last = files.id
        }
        let mark = randomHex(bytes: 16)
        try folder.set(mark: mark)
        try await write { db, _ in try Meta.set(db, Self.folderKey, mark) }
    }

    // MARK: Files that nothing names

    /// So long a file stays that no row names: the app may be about to write its reference, or an undo may.
    static var orphanMilliseconds: Int64 { 7 * 24 * 60 * 60 * 1000 }

    /// How often files are looked for that nothing names, in milliseconds.
    private static var tidyMilliseconds: Int64 { 24 * 60 * 60 * 1000 }
    private static var tidyKey: String { "attachment_tidied" }

    /// Tidies once a day, however often a process starts.
    func tidyWhenDue() async throws {
        if tidiedAt == nil {
            tidiedAt = try await file.read { db in try Meta.get(db, Self.tidyKey).flatMap { Int64($0) } }
        }
        let now = wallClockMilliseconds()
        if let tidiedAt, 0..<Self.tidyMilliseconds ~= now.saturatingSubtracting(tidiedAt) { return }
        tidiedAt = now
        do {
            try await tidy()
            try await digest()
        } catch let error as CancellationError {
            tidiedAt = nil
            throw error
        }
        try await write { db, _ in try Meta.set(db, Self.tidyKey, String(now)) }
    }

    /// Removes what nothing names any more, and files that no table knows, since a process ended before it noted them.
    func tidy() async throws {
        try await writeUses()
        try await write { db, _ in try BlobChanges.noteAll(db) }
        try await removeOrphans()
        try await makeRoom(for: nil, isThorough: true)
        let folder = folder
        let time = Date(milliseconds: wallClockMilliseconds() - Self.orphanMilliseconds)
        let old = try folder.old(before: time)
        for start in stride(from: 0, to: old.count, by: Self.batch) {
            try await write { db, _ in
                for url in old[start..<min(start + Self.batch, old.count)] {
                    let isKnown = try BlobFiles.contains(db, hash: url.lastPathComponent)
                    if !isKnown { try? FileManager.default.removeItem(at: url) }
                }
            }
        }
    }

    /// - Parameter onlyLost: whether only those go that go at once, since their scope has left the device.
    func removeOrphans(onlyLost: Bool = false) async throws {
        if onlyLost, try await file.read({ try BlobFiles.orphans($0, upTo: 0, limit: 1) }).isEmpty { return }
        let (folder, schema) = (folder, try await schemaCache.install())
        cached = nil
        var last: BlobFiles.Orphan?
        repeat {
            last = try await write { [last] db, now in
                let time = onlyLost ? 0 : now - Self.orphanMilliseconds
                let found = try BlobFiles.orphans(db, upTo: time, after: last, limit: Self.batch)
                for orphan in found {
                    guard let reference = orphan.reference, try !orphan.isKept(db, schema) else { continue }
                    try folder.remove(reference)
                    try BlobFiles.remove(db, reference, now: now)
                }
                return found.count < Self.batch ? nil : found.last
            }
        } while last != nil
    }
}
