import TidemarkServer

/// The disk of a server, for blobs.
///
/// Unchecked because everything of a world happens on the world's own thread.
final class ServerDisk: @unchecked Sendable {
    var isFull = false
}

/// The store of a server whose apps have attachments. Blobs are changed as rows are: it has happened when the server
/// dies over it, or not.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
struct MortalBlobStore: BlobStore {
    let store: MemoryStore
    let life: ServerLife
    let disk: ServerDisk
    private var rows: MortalStore { MortalStore(store, life) }

    /// - Parameter needsRoom: whether more is on the disk then.
    private func change<Result>(
        _ point: String, needsRoom: Bool = false, _ body: () throws -> Result
    ) async throws -> Result {
        try await life.use(point) { dies in
            if dies { throw ServerLife.Over() }
            if needsRoom, disk.isFull { throw StoreUnavailable("The disk is full.") }
            return try body()
        }
    }

    // MARK: Blobs

    func blob(_ hash: String, in scope: Scope) async throws -> StoredBlob? {
        try await life.use("blob") { _ in store.blob(hash, in: scope) }
    }

    func bytes(of blob: StoredBlob, in scope: Scope, from offset: Int64, limit: Int) async throws -> [UInt8] {
        try await life.use("blob bytes") { _ in try store.bytes(of: blob, in: scope, from: offset, limit: limit) }
    }

    func blobs(in scope: Scope, after hash: String?, seenBefore moment: Int64, limit: Int) async throws -> [StoredBlob]
    {
        try await life.use("blobs") { _ in store.blobs(in: scope, after: hash, seenBefore: moment, limit: limit) }
    }

    func part(_ name: BlobPartName) async throws -> BlobPart? { try await life.use("part") { _ in store.part(name) } }

    func begin(_ name: BlobPartName, size: Int64, within room: BlobRoom, at moment: Int64) async throws -> BlobPart {
        try await change("begin part", needsRoom: true) { try store.begin(name, size: size, within: room, at: moment) }
    }

    func append(_ bytes: [UInt8], to part: BlobPart, isLast: Bool, at moment: Int64) async throws -> BlobPart {
        try await change("append to part", needsRoom: true) {
            try store.append(bytes, to: part, isLast: isLast, at: moment)
        }
    }

    func bytes(of part: BlobPart, from offset: Int64, limit: Int) async throws -> [UInt8] {
        try await life.use("part bytes") { _ in try store.bytes(of: part, from: offset, limit: limit) }
    }

    func finish(_ part: BlobPart, at moment: Int64) async throws -> Bool {
        try await change("finish part") { try store.finish(part, at: moment) }
    }

    func keep(_ bytes: [UInt8], as name: BlobPartName, within room: BlobRoom, at moment: Int64) async throws -> Bool {
        try await change("keep blob", needsRoom: true) { try store.keep(bytes, as: name, within: room, at: moment) }
    }

    func drop(_ part: BlobPart) async throws { try await change("drop part") { store.drop(part) } }

    func parts(
        in scope: Scope?, of principal: String?, writtenBefore moment: Int64, limit: Int
    ) async throws -> [BlobPart] {
        try await life.use("parts") { _ in
            store.parts(in: scope, of: principal, writtenBefore: moment, limit: limit)
        }
    }

    func noteSeen(_ hashes: [String], in scope: Scope, at moment: Int64) async throws -> [String] {
        try await change("note blobs") { store.noteSeen(hashes, in: scope, at: moment) }
    }

    func remove(_ blob: StoredBlob, in scope: Scope, seenBefore moment: Int64) async throws -> Bool {
        try await change("remove blob") { store.remove(blob, in: scope, seenBefore: moment) }
    }

    func blobScopes(after scope: Scope?, limit: Int) async throws -> [BlobScope] {
        try await life.use("blob scopes") { _ in store.blobScopes(after: scope, limit: limit) }
    }

    func noteScan(of scope: Scope, at moment: Int64) async throws {
        try await change("note scan") { store.noteScan(of: scope, at: moment) }
    }

    func blobTally(of scope: Scope, by principal: String?) async throws -> BlobTally {
        try await life.use("blob tally") { _ in store.blobTally(of: scope, by: principal) }
    }

    func tidyBlobs(of scope: Scope) async throws { try await change("tidy blobs") { store.tidyBlobs(of: scope) } }

    // MARK: Rows

    var tokenKey: [UInt8] { store.tokenKey }

    func read<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeReader) throws -> Result
    ) async throws -> Result { try await rows.read(scope, for: caller, body) }

    func write<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result { try await rows.write(scope, for: caller, body) }

    func sweep(supersededBefore moment: Int64, limit: Int) async throws -> Int {
        try await rows.sweep(supersededBefore: moment, limit: limit)
    }

    func scopes(after scope: Scope?, limit: Int) async throws -> [Scope] {
        try await rows.scopes(after: scope, limit: limit)
    }

    func ageClock() async throws -> Int64? { try await rows.ageClock() }
    func setAgeClock(_ moment: Int64) async throws { try await rows.setAgeClock(moment) }

    func rejections(in scope: Scope?, id: Int64?, limit: Int) async throws -> [StoredRejection] {
        try await rows.rejections(in: scope, id: id, limit: limit)
    }

    func devices(_ query: FleetQuery) async throws -> FleetPage { try await rows.devices(query) }
    func discardRejection(_ id: Int64) async throws -> Bool { try await rows.discardRejection(id) }
}
