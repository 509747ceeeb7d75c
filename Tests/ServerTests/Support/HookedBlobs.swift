import TidemarkWire

@testable import TidemarkServer

/// A store of blobs in which something happens before it is asked.
final class HookedBlobs: BlobStore {
    /// What is told of before it is done.
    enum Step: Hashable, Sendable {
        case append(count: Int)
        case keep(count: Int)
        case read(offset: Int64)
        case readBlob
        case remove
    }

    private let base: any BlobStore
    private let before: @Sendable (Step) async throws -> Void

    init(_ base: any BlobStore, before: @escaping @Sendable (Step) async throws -> Void) {
        (self.base, self.before) = (base, before)
    }

    // MARK: Blobs

    func blob(_ hash: String, in scope: Scope) async throws -> StoredBlob? { try await base.blob(hash, in: scope) }

    func bytes(of blob: StoredBlob, in scope: Scope, from offset: Int64, limit: Int) async throws -> [UInt8] {
        try await before(.readBlob)
        return try await base.bytes(of: blob, in: scope, from: offset, limit: limit)
    }

    func blobs(
        in scope: Scope, after hash: String?, seenBefore moment: Int64, limit: Int
    ) async throws -> [StoredBlob] {
        try await base.blobs(in: scope, after: hash, seenBefore: moment, limit: limit)
    }

    // MARK: Parts

    func part(_ name: BlobPartName) async throws -> BlobPart? { try await base.part(name) }

    func begin(
        _ name: BlobPartName, size: Int64, within room: BlobRoom, at moment: Int64
    ) async throws -> BlobPart {
        try await base.begin(name, size: size, within: room, at: moment)
    }

    func append(_ bytes: [UInt8], to part: BlobPart, isLast: Bool, at moment: Int64) async throws -> BlobPart {
        try await before(.append(count: bytes.count))
        return try await base.append(bytes, to: part, isLast: isLast, at: moment)
    }

    func bytes(of part: BlobPart, from offset: Int64, limit: Int) async throws -> [UInt8] {
        try await before(.read(offset: offset))
        return try await base.bytes(of: part, from: offset, limit: limit)
    }

    func finish(_ part: BlobPart, at moment: Int64) async throws -> Bool { try await base.finish(part, at: moment) }

    func keep(_ bytes: [UInt8], as name: BlobPartName, within room: BlobRoom, at moment: Int64) async throws -> Bool {
        try await before(.keep(count: bytes.count))
        return try await base.keep(bytes, as: name, within: room, at: moment)
    }

    func drop(_ part: BlobPart) async throws { try await base.drop(part) }

    func parts(
        in scope: Scope?, of principal: String?, writtenBefore moment: Int64, limit: Int
    ) async throws -> [BlobPart] {
        try await base.parts(in: scope, of: principal, writtenBefore: moment, limit: limit)
    }

    // MARK: Keeping and removing

    func noteSeen(_ hashes: [String], in scope: Scope, at moment: Int64) async throws -> [String] {
        try await base.noteSeen(hashes, in: scope, at: moment)
    }

    func remove(_ blob: StoredBlob, in scope: Scope, seenBefore moment: Int64) async throws -> Bool {
        try await before(.remove)
        return try await base.remove(blob, in: scope, seenBefore: moment)
    }

    func blobScopes(after scope: Scope?, limit: Int) async throws -> [BlobScope] {
        try await base.blobScopes(after: scope, limit: limit)
    }

    func noteScan(of scope: Scope, at moment: Int64) async throws { try await base.noteScan(of: scope, at: moment) }

    func blobTally(of scope: Scope, by principal: String?) async throws -> BlobTally {
        try await base.blobTally(of: scope, by: principal)
    }

    func tidyBlobs(of scope: Scope) async throws { try await base.tidyBlobs(of: scope) }

    // MARK: The log

    var tokenKey: [UInt8] { base.tokenKey }

    func read<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeReader) throws -> Result
    ) async throws -> Result { try await base.read(scope, for: caller, body) }

    func write<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result { try await base.write(scope, for: caller, body) }

    func sweep(supersededBefore moment: Int64, limit: Int) async throws -> Int {
        try await base.sweep(supersededBefore: moment, limit: limit)
    }

    func scopes(after scope: Scope?, limit: Int) async throws -> [Scope] {
        try await base.scopes(after: scope, limit: limit)
    }

    func ageClock() async throws -> Int64? { try await base.ageClock() }

    func setAgeClock(_ moment: Int64) async throws { try await base.setAgeClock(moment) }

    func devices(_ query: FleetQuery) async throws -> FleetPage { try await base.devices(query) }

    func rejections(in scope: Scope?, id: Int64?, limit: Int) async throws -> [StoredRejection] {
        try await base.rejections(in: scope, id: id, limit: limit)
    }

    func discardRejection(_ id: Int64) async throws -> Bool { try await base.discardRejection(id) }
}
