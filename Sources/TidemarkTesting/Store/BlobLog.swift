import Foundation
import TidemarkServer
import TidemarkWire

/// The blobs and parts that a store in memory holds: a value, so that a backup has them.
struct BlobLog: Sendable {
    struct ScopeBlobs: Sendable {
        var blobs: [String: (blob: StoredBlob, bytes: [UInt8])] = [:]
        var parts: [Int64: (part: BlobPart, bytes: [UInt8])] = [:]
        var scanned: Int64 = 0

        var tally: BlobTally {
            let bytes = blobs.values.reduce(0) { $0 + $1.blob.size } + parts.values.reduce(0) { $0 + $1.part.size }
            return BlobTally(blobs: blobs.count, parts: parts.count, bytes: bytes)
        }

        func part(_ name: BlobPartName) -> (part: BlobPart, bytes: [UInt8])? {
            parts.values.first { $0.part.name.hash == name.hash && $0.part.name.isOf(name.principal) }
        }

        func tally(by principal: String) -> BlobTally {
            let own = parts.values.filter { $0.part.name.isOf(principal) }
            return BlobTally(parts: own.count, bytes: own.reduce(0) { $0 + $1.part.size })
        }
    }

    /// A scope stays until it is looked at and holds nothing.
    var scopes: [Scope: ScopeBlobs] = [:]
    /// The place of the part that was begun last; none comes twice.
    var lastPlace: Int64 = 0

    /// The part, where it is as its caller knows it.
    ///
    /// - Throws: ``BlobRefusal/moved`` where it is not.
    func current(_ part: BlobPart) throws -> (part: BlobPart, bytes: [UInt8]) {
        guard let found = scopes[part.name.scope]?.parts[part.place], found.part.kept == part.kept else {
            throw BlobRefusal.moved
        }
        return found
    }

    mutating func begin(_ name: BlobPartName, size: Int64, within room: BlobRoom, at moment: Int64) throws -> BlobPart {
        var held = scopes[name.scope, default: ScopeBlobs()]
        if let former = held.part(name) { held.parts[former.part.place] = nil }
        let (own, added) = (held.tally(by: name.principal), BlobTally(parts: 1, bytes: size).weight)
        guard own.parts < room.parts, own.weight + added <= room.caller else { throw BlobRefusal.callerFull }
        guard held.tally.weight + added <= room.scope else { throw BlobRefusal.scopeFull }
        lastPlace += 1
        let part = BlobPart(name: name, size: size, kept: 0, written: moment, place: lastPlace)
        held.parts[part.place] = (part, [])
        scopes[name.scope] = held
        return part
    }

    mutating func finish(_ part: BlobPart, at moment: Int64) throws -> Bool {
        guard let (part, bytes) = scopes[part.name.scope]?.parts[part.place], part.isComplete else {
            throw BlobRefusal.moved
        }
        let (scope, hash) = (part.name.scope, part.name.hash)
        scopes[scope]?.parts[part.place] = nil
        let now = Date(milliseconds: moment)
        if let seen = scopes[scope]?.blobs[hash]?.blob.seen {
            scopes[scope]?.blobs[hash]?.blob.seen = max(seen, now)
            return false
        }
        scopes[scope]?.blobs[hash] = (StoredBlob(hash: hash, size: part.size, seen: now), bytes)
        return true
    }
}

extension BlobPartName {
    /// By bytes, as a database has it: `String` would call two callers one that are not.
    func isOf(_ principal: String) -> Bool { self.principal.hasSameBytes(as: principal) }
}
