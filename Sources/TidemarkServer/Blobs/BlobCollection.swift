import TidemarkCore
import TidemarkWire

/// Removes blobs that no record names any more, and parts that got no bytes for a day (A12).
extension SyncServer {
    /// A scope's names of blobs are looked at once in so long, in milliseconds.
    private static let scanInterval: Int64 = 86_400_000
    /// A blob is kept for so long at least since it was named, sent or asked for, in milliseconds.
    private static let leastKept: Int64 = 7 * 86_400_000
    /// Scopes, blobs and parts that are asked for at once.
    private static let blobBatch = 256

    /// Takes away blobs that nothing names. Times of scans and of parts' last bytes are the wall clock's, and so are
    /// compared with it: the clock of ages may lag behind it for days.
    ///
    /// - Parameters:
    ///   - present: the moment by which history ages, and blobs with it.
    ///   - wall: the wall clock. Both are in milliseconds since 1970.
    func collectBlobs(
        at present: Int64, wall: Int64, _ compaction: inout Compaction, isRehearsal: Bool
    ) async throws {
        guard let blobs = store as? any BlobStore else { return }
        try await collectParts(blobs, at: wall, &compaction, isRehearsal: isRehearsal)
        // A program that does not know the attachments, such as a command without the server's file, takes none away.
        guard declarations.entities.contains(where: { !$0.attachments.isEmpty }) else { return }
        var last: Scope?
        while true {
            let scopes = try await blobs.blobScopes(after: last, limit: Self.blobBatch)
            for scope in scopes {
                try Task.checkCancellation()
                // A moment ahead was noted by a clock that was wrong.
                let isRecent = wall.saturatingSubtracting(Self.scanInterval) < scope.scanned && scope.scanned <= wall
                guard isRehearsal || !isRecent else { continue }
                try await collect(blobs, of: scope.scope, at: present, &compaction, isRehearsal: isRehearsal)
            }
            guard scopes.count == Self.blobBatch else { return }
            last = scopes.last?.scope
        }
    }

    private func collectParts(
        _ blobs: any BlobStore, at wall: Int64, _ compaction: inout Compaction, isRehearsal: Bool
    ) async throws {
        let moment = wall.saturatingSubtracting(Self.partLifetime)
        if isRehearsal {
            compaction.parts = try await blobs.parts(in: nil, of: nil, writtenBefore: moment, limit: .max).count
            return
        }
        while true {
            let parts = try await blobs.parts(in: nil, of: nil, writtenBefore: moment, limit: Self.blobBatch)
            for part in parts { try await blobs.drop(part) }
            compaction.parts += parts.count
            guard parts.count == Self.blobBatch else { return }
        }
    }

    private func collect(
        _ blobs: any BlobStore, of scope: Scope, at present: Int64, _ compaction: inout Compaction, isRehearsal: Bool
    ) async throws {
        let now = configuration.moment()
        // A rehearsal notes what is named, too: that removes nothing.
        var seen: [Scope: Version] = [:]
        _ = try await noteNames(in: scope, blobs, at: now, &seen)
        if let retention = configuration.retention?.milliseconds {
            let kept = max(retention, Self.leastKept).saturatingAdding(Self.seenStep)
            let moment = present.saturatingSubtracting(kept)
            var last: String?
            while true {
                let unnamed = try await blobs.blobs(
                    in: scope, after: last, seenBefore: moment, limit: Self.blobBatch)
                // A record may have named one of them since.
                if !unnamed.isEmpty { _ = try await noteNames(in: scope, blobs, at: now, &seen) }
                for blob in unnamed {
                    if isRehearsal {
                        compaction.note(blob)
                    } else if try await blobs.remove(blob, in: scope, seenBefore: moment) {
                        compaction.note(blob)
                    }
                }
                guard unnamed.count == Self.blobBatch else { break }
                last = unnamed.last?.hash
            }
        }
        guard !isRehearsal else { return }
        try await blobs.tidyBlobs(of: scope)
        try await blobs.noteScan(of: scope, at: now)
    }

    /// Notes all blobs that live records of a scope and its sub-scopes name, page by page, and then those that were
    /// named meanwhile. Returns how many names there are of blobs that the scope lacks.
    ///
    /// - Parameter seen: through which version each of them was looked at before, and is now.
    func noteNames(
        in scope: Scope, _ blobs: any BlobStore, at moment: Int64, _ seen: inout [Scope: Version]
    ) async throws -> Int {
        let entities = declarations.entities.filter { !$0.attachments.isEmpty }
        guard !entities.isEmpty else { return 0 }
        var missing = 0
        for place in try await [scope] + subscopes(of: scope) {
            let known = seen[place]
            let head = if let known { known } else { try await store.read(place) { $0.state.head } }
            for entity in entities where known == nil {
                var page = NamePage()
                repeat {
                    try Task.checkCancellation()
                    page = try await names(of: entity, in: place, after: page.last)
                    missing += try await note(page.hashes, in: scope, blobs, at: moment)
                } while page.isFull
            }
            var added = NamePage(version: head)
            repeat {
                added = try await names(since: added.version, in: place, of: entities)
                missing += try await note(added.hashes, in: scope, blobs, at: moment)
            } while added.isFull
            seen[place] = added.version
        }
        return missing
    }

    private func note(
        _ hashes: Set<String>, in scope: Scope, _ blobs: any BlobStore, at moment: Int64
    ) async throws -> Int {
        guard !hashes.isEmpty else { return 0 }
        return try await blobs.noteSeen(hashes.sorted(), in: scope, at: moment).count
    }

    private func names(of entity: EntityDeclaration, in place: Scope, after record: RecordID?) async throws -> NamePage
    {
        try await store.read(place) { reader in
            var page = NamePage()
            guard reader.state.erasedAt == nil else { return page }
            let name = self.spelling(of: entity.name, in: reader.state)
            try reader.records(of: name, above: 0, at: nil, after: record) { page.take($0, entity) }
            return page
        }
    }

    /// The names in what was committed behind a version.
    private func names(
        since version: Version, in place: Scope, of entities: [EntityDeclaration]
    ) async throws -> NamePage {
        try await store.read(place) { reader in
            var page = NamePage(version: version)
            try reader.changes(after: version, through: reader.state.head, tombstonesAfter: .max) { change in
                let name = String(decoding: change.entity, as: UTF8.self)
                guard let entity = entities.first(where: { Identifier.isSameName($0.name, name) }) else { return true }
                return page.take(change, entity)
            }
            return page
        }
    }
}

/// Names of blobs in some records.
private struct NamePage {
    /// Records that one read looks at, at most: others wait for its reader.
    private static let records = 1000
    private static let bytes = 4 << 20

    var hashes: Set<String> = []
    var last: RecordID?
    var version: Version = 0
    var isFull = false
    private var count = 0
    private var size = 0

    init(version: Version = 0) { self.version = version }

    /// Answers whether there is room for more.
    mutating func take(_ change: BorrowedChange, _ entity: EntityDeclaration) -> Bool {
        (count, size) = (count + 1, size + change.payload.count)
        (last, version) = (RecordID(String(decoding: change.record, as: UTF8.self)) ?? last, change.version)
        if let fields = try? DataObject(stored: Array(change.payload)) {
            hashes.formUnion(entity.references(in: fields).map(\.hash))
        }
        isFull = count >= Self.records || size >= Self.bytes
        return !isFull
    }
}

extension Compaction {
    fileprivate mutating func note(_ blob: StoredBlob) {
        blobs += 1
        blobBytes += blob.size
    }
}
