import Foundation
public import TidemarkServer
import TidemarkWire

/// Blobs are values in memory, and a backup has them as they were. A piece of a part may have any length.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension MemoryStore: BlobStore {
    var heldBlobs: BlobLog { look(\.blobs) }

    /// Finds a blob.
    public func blob(_ hash: String, in scope: Scope) -> StoredBlob? {
        look { $0.blobs.scopes[scope]?.blobs[hash]?.blob }
    }

    /// Reads from a blob.
    ///
    /// - Throws: ``BlobRefusal/moved`` where it is gone.
    public func bytes(of blob: StoredBlob, in scope: Scope, from offset: Int64, limit: Int) throws -> [UInt8] {
        try Self.some(of: look { $0.blobs.scopes[scope]?.blobs[blob.hash]?.bytes }, from: offset, limit: limit)
    }

    /// Lists blobs.
    public func blobs(in scope: Scope, after hash: String?, seenBefore moment: Int64, limit: Int) -> [StoredBlob] {
        let all = look { $0.blobs.scopes[scope]?.blobs.values.map(\.blob) ?? [] }
        let found = all.filter { $0.hash > hash ?? "" && $0.seen.milliseconds < moment }.sorted { $0.hash < $1.hash }
        return Array(found.prefix(max(0, limit)))
    }

    private static func some(of bytes: [UInt8]?, from offset: Int64, limit: Int) throws -> [UInt8] {
        guard let bytes, offset < bytes.count else { throw BlobRefusal.moved }
        return Array(bytes[Int(offset)...].prefix(limit))
    }

    // MARK: Parts

    /// Finds a part.
    public func part(_ name: BlobPartName) -> BlobPart? { look { $0.blobs.scopes[name.scope]?.part(name)?.part } }

    /// Begins a part.
    ///
    /// - Throws: ``BlobRefusal`` where there is no room, or the scope was erased.
    public func begin(_ name: BlobPartName, size: Int64, within room: BlobRoom, at moment: Int64) throws -> BlobPart {
        try change { log in
            try Self.checkErased(name.scope, log)
            return try log.blobs.begin(name, size: size, within: room, at: moment)
        }
    }

    private static func checkErased(_ scope: Scope, _ log: MemoryLog) throws {
        guard log.places[scope].flatMap({ log.scopes[$0].state.erasedAt }) == nil else { throw BlobRefusal.erased }
    }

    /// Appends bytes, however many.
    ///
    /// - Throws: ``BlobRefusal/moved`` where the part is gone or has gone on.
    public func append(_ bytes: [UInt8], to part: BlobPart, isLast: Bool, at moment: Int64) throws -> BlobPart {
        try change { log in
            var grown = try log.blobs.current(part).part
            guard grown.kept + Int64(bytes.count) <= grown.size else { throw BlobRefusal.moved }
            grown.kept += Int64(bytes.count)
            if isLast { grown.written = max(grown.written, moment) }
            log.blobs.scopes[part.name.scope]?.parts[part.place]?.part = grown
            // In place: a copy for each piece would make a large blob's cost grow with its square.
            log.blobs.scopes[part.name.scope]?.parts[part.place]?.bytes += bytes
            return grown
        }
    }

    /// Reads from a part.
    ///
    /// - Throws: ``BlobRefusal/moved`` where it is gone.
    public func bytes(of part: BlobPart, from offset: Int64, limit: Int) throws -> [UInt8] {
        let bytes = look { $0.blobs.scopes[part.name.scope]?.parts[part.place]?.bytes }
        return try Self.some(of: bytes, from: offset, limit: limit)
    }

    /// Keeps a whole blob.
    ///
    /// - Throws: ``BlobRefusal`` where there is no room, or the scope was erased.
    public func keep(
        _ bytes: [UInt8], as name: BlobPartName, within room: BlobRoom, at moment: Int64
    ) throws -> Bool {
        try change { log in
            try Self.checkErased(name.scope, log)
            var part = try log.blobs.begin(name, size: Int64(bytes.count), within: room, at: moment)
            part.kept = part.size
            log.blobs.scopes[name.scope]?.parts[part.place] = (part, bytes)
            return try log.blobs.finish(part, at: moment)
        }
    }

    /// Makes a part the blob.
    ///
    /// - Throws: ``BlobRefusal`` where it is gone or not complete, or the scope was erased.
    public func finish(_ part: BlobPart, at moment: Int64) throws -> Bool {
        try change { log in
            try Self.checkErased(part.name.scope, log)
            return try log.blobs.finish(part, at: moment)
        }
    }

    /// Removes a part.
    public func drop(_ part: BlobPart) { change { $0.blobs.scopes[part.name.scope]?.parts[part.place] = nil } }

    /// Lists parts in the order in which they were begun.
    public func parts(
        in scope: Scope?, of principal: String?, writtenBefore moment: Int64, limit: Int
    ) -> [BlobPart] {
        let all = look { log in log.blobs.scopes.values.flatMap { $0.parts.values.map(\.part) } }
        let found = all.filter { part in
            (scope.map { $0 == part.name.scope } ?? true) && (principal.map { part.name.isOf($0) } ?? true)
                && part.written < moment
        }
        return Array(found.sorted { $0.place < $1.place }.prefix(max(0, limit)))
    }

    // MARK: Keeping and removing

    /// Notes moments.
    public func noteSeen(_ hashes: [String], in scope: Scope, at moment: Int64) -> [String] {
        change { log in
            hashes.filter { hash in
                guard let seen = log.blobs.scopes[scope]?.blobs[hash]?.blob.seen else { return true }
                log.blobs.scopes[scope]?.blobs[hash]?.blob.seen = max(seen, Date(milliseconds: moment))
                return false
            }
        }
    }

    /// Removes a blob.
    public func remove(_ blob: StoredBlob, in scope: Scope, seenBefore moment: Int64) -> Bool {
        change { log in
            guard let seen = log.blobs.scopes[scope]?.blobs[blob.hash]?.blob.seen, seen.milliseconds < moment else {
                return false
            }
            log.blobs.scopes[scope]?.blobs[blob.hash] = nil
            return true
        }
    }

    /// Lists scopes in the order of their names.
    public func blobScopes(after scope: Scope?, limit: Int) -> [BlobScope] {
        let all = look { log in log.blobs.scopes.map { BlobScope(scope: $0, scanned: $1.scanned) } }
        let found = all.filter { entry in scope.map { $0 < entry.scope } ?? true }.sorted { $0.scope < $1.scope }
        return Array(found.prefix(max(0, limit)))
    }

    /// Notes a scan; a scope that holds nothing is taken off the list.
    public func noteScan(of scope: Scope, at moment: Int64) {
        change { log in
            log.blobs.scopes[scope]?.scanned = moment
            if log.blobs.scopes[scope]?.tally == BlobTally() { log.blobs.scopes[scope] = nil }
        }
    }

    /// Counts.
    public func blobTally(of scope: Scope, by principal: String?) -> BlobTally {
        look { log in
            guard let held = log.blobs.scopes[scope] else { return BlobTally() }
            return principal.map { held.tally(by: $0) } ?? held.tally
        }
    }

    /// Does nothing: all is done at once, and leaves nothing behind.
    public func tidyBlobs(of _: Scope) {}
}
