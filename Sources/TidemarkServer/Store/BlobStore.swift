public import Foundation
public import TidemarkWire

/// A store that also keeps blobs: the bytes that attachments of records name (A12).
///
/// Blobs belong to a scope, never to a sub-scope, and are shared with no other. Each is whole from the moment it is
/// there; what comes before are parts, each of which belongs to one caller. All functions are called from any task,
/// several at once, and throw ``BlobRefusal``, ``StoreUnavailable`` for troubles that pass by themselves, and an error
/// of the store's own for the rest. Moments that they take are in milliseconds since 1970.
public protocol BlobStore: ChangeStore, BlobReader, BlobPartStore, BlobTender {}

/// Reads blobs. It is called from any task, several at once.
public protocol BlobReader: Sendable {
    /// The blob of a hash; `nil` where the scope has none that is whole.
    ///
    /// - Throws: ``StoreUnavailable`` for what passes by itself; `CancellationError` in a cancelled task; an error of
    ///   the store's own for the rest.
    func blob(_ hash: String, in scope: Scope) async throws -> StoredBlob?

    /// Bytes of a blob from an offset below its size on: at least one, at most `limit`.
    ///
    /// - Throws: ``BlobRefusal/moved`` where the blob is gone; else as ``BlobReader/blob(_:in:)`` does.
    func bytes(of blob: StoredBlob, in scope: Scope, from offset: Int64, limit: Int) async throws -> [UInt8]

    /// At most `limit` blobs of a scope behind a hash, in the order of their hashes, that were last seen before a
    /// moment.
    ///
    /// - Throws: as ``BlobReader/blob(_:in:)`` does.
    func blobs(
        in scope: Scope, after hash: String?, seenBefore moment: Int64, limit: Int
    ) async throws -> [StoredBlob]
}

/// Takes blobs in, piece by piece. It is called from any task, several at once.
public protocol BlobPartStore: Sendable {
    /// The part that is kept for its caller.
    ///
    /// - Throws: as ``BlobReader/blob(_:in:)`` does.
    func part(_ name: BlobPartName) async throws -> BlobPart?

    /// Begins a part, in the place of the one that has its name, and reserves room for all of it.
    ///
    /// - Throws: ``BlobRefusal`` where there is no room, or the scope was erased; else as ``BlobReader/blob(_:in:)``
    ///   does.
    func begin(_ name: BlobPartName, size: Int64, within room: BlobRoom, at moment: Int64) async throws -> BlobPart

    /// Appends bytes where a part ends, at most as many as its ``BlobPart/room``. Whatever ends the process, the first
    /// of them are there or none.
    ///
    /// - Parameters:
    ///   - bytes: the bytes, at least one.
    ///   - part: the part as it is known.
    ///   - isLast: whether its caller sends no more for now: then all that is kept survives a power cut. `false` for
    ///     the bytes that complete a part, since it is finished next.
    ///   - moment: now, in milliseconds since 1970.
    /// - Throws: ``BlobRefusal/moved`` where the part is gone, or has gone on meanwhile; else as
    ///   ``BlobReader/blob(_:in:)`` does.
    func append(_ bytes: [UInt8], to part: BlobPart, isLast: Bool, at moment: Int64) async throws -> BlobPart

    /// Bytes of a part from an offset below its end on: at least one, at most `limit`.
    ///
    /// - Throws: ``BlobRefusal/moved`` where the part is gone; else as ``BlobReader/blob(_:in:)`` does.
    func bytes(of part: BlobPart, from offset: Int64, limit: Int) async throws -> [UInt8]

    /// Makes a part that is complete, and whose hash was checked, the scope's blob. All its bytes survive a power cut
    /// when this returns. Answers whether the scope had none.
    ///
    /// - Throws: ``BlobRefusal`` where the part is gone or not complete, or the scope was erased; else as
    ///   ``BlobReader/blob(_:in:)`` does.
    func finish(_ part: BlobPart, at moment: Int64) async throws -> Bool

    /// Keeps a whole blob of one piece whose hash was checked: a part of its name is begun, gets all bytes and is
    /// finished in one change. All its bytes survive a power cut when this returns. Answers whether the scope had none.
    ///
    /// - Throws: ``BlobRefusal`` where there is no room, or the scope was erased; else as ``BlobReader/blob(_:in:)``
    ///   does.
    func keep(_ bytes: [UInt8], as name: BlobPartName, within room: BlobRoom, at moment: Int64) async throws -> Bool

    /// Removes a part; does nothing where it is gone or another has its name.
    ///
    /// - Throws: as ``BlobReader/blob(_:in:)`` does.
    func drop(_ part: BlobPart) async throws

    /// At most `limit` parts that got no bytes since a moment: of a scope and a caller, or of all.
    ///
    /// - Throws: as ``BlobReader/blob(_:in:)`` does.
    func parts(
        in scope: Scope?, of principal: String?, writtenBefore moment: Int64, limit: Int
    ) async throws -> [BlobPart]
}

/// Keeps and removes blobs. It is called from any task, several at once.
public protocol BlobTender: Sendable {
    /// Notes that blobs were named or asked for at a moment; one that was seen later stays so. Answers the hashes of
    /// which the scope has no blob.
    ///
    /// - Throws: as ``BlobReader/blob(_:in:)`` does.
    func noteSeen(_ hashes: [String], in scope: Scope, at moment: Int64) async throws -> [String]

    /// Removes a blob unless it was seen since a moment. Answers whether it went.
    ///
    /// - Throws: as ``BlobReader/blob(_:in:)`` does.
    func remove(_ blob: StoredBlob, in scope: Scope, seenBefore moment: Int64) async throws -> Bool

    /// At most `limit` scopes behind one, in the order of their names, that hold blobs or parts.
    ///
    /// - Throws: as ``BlobReader/blob(_:in:)`` does.
    func blobScopes(after scope: Scope?, limit: Int) async throws -> [BlobScope]

    /// Notes that all names of blobs in a scope were looked at, beginning at a moment.
    ///
    /// - Throws: as ``BlobReader/blob(_:in:)`` does.
    func noteScan(of scope: Scope, at moment: Int64) async throws

    /// Counts a scope's blobs and parts, or a caller's parts there.
    ///
    /// - Throws: as ``BlobReader/blob(_:in:)`` does.
    func blobTally(of scope: Scope, by principal: String?) async throws -> BlobTally

    /// Removes what a process has left behind in a scope that was ended between two steps.
    ///
    /// - Throws: as ``BlobReader/blob(_:in:)`` does.
    func tidyBlobs(of scope: Scope) async throws
}

/// A blob that a scope has.
public struct StoredBlob: Hashable, Sendable {
    /// The SHA-256 of its bytes, as 64 lowercase hexadecimal digits.
    public var hash: String
    /// How many bytes there are.
    public var size: Int64
    /// When it was noted as named, sent or asked for, to the millisecond. The last use may be up to an hour later,
    /// since uses are noted once an hour.
    public var seen: Date
    /// Where the store has it: the store's own affair.
    public var place: Int64

    /// Makes a blob from its parts.
    public init(hash: String, size: Int64, seen: Date, place: Int64 = 0) {
        self.hash = hash
        self.size = size
        self.seen = seen
        self.place = place
    }
}

/// The full name of a part: nobody goes on with another's upload, nor hears of it.
public struct BlobPartName: Hashable, Sendable {
    /// The scope itself, no sub-scope.
    public var scope: Scope
    /// The token's `sub`.
    public var principal: String
    /// The hash that the whole is to have.
    public var hash: String

    /// Makes a name from its parts.
    public init(scope: Scope, principal: String, hash: String) {
        self.scope = scope
        self.principal = principal
        self.hash = hash
    }
}

/// A blob of which some bytes have come.
public struct BlobPart: Hashable, Sendable {
    /// Bytes that are written and read at once. A store may keep them so, as well.
    public static let pieceBytes = BlobAddress.pieceBytes

    /// Its name.
    public var name: BlobPartName
    /// Bytes of the whole.
    public var size: Int64
    /// Bytes that are kept.
    public var kept: Int64
    /// When it got bytes last, in milliseconds since 1970; an upload under way is noted every few MiB.
    public var written: Int64
    /// Where the store has it. No two parts had the same place ever, also not of one name.
    public var place: Int64

    /// Makes a part from its parts.
    public init(name: BlobPartName, size: Int64, kept: Int64, written: Int64, place: Int64) {
        self.name = name
        self.size = size
        self.kept = kept
        self.written = written
        self.place = place
    }

    /// Whether all bytes have come.
    public var isComplete: Bool { kept == size }

    /// Bytes that complete the piece which is being filled, or the whole.
    public var room: Int {
        let piece = Int64(Self.pieceBytes)
        return Int(min(piece - kept % piece, size - kept))
    }
}

/// The room that there is for a new part.
public struct BlobRoom: Hashable, Sendable {
    /// Bytes of the scope, for blobs and parts as ``BlobTally/weight`` has them.
    public var scope: Int64
    /// Bytes of the caller's parts in the scope, likewise.
    public var caller: Int64
    /// How many parts the caller may have in the scope.
    public var parts: Int

    /// Makes room.
    public init(scope: Int64, caller: Int64, parts: Int) {
        self.scope = scope
        self.caller = caller
        self.parts = parts
    }
}

/// Blobs and parts, counted.
public struct BlobTally: Hashable, Sendable {
    /// Blobs that are whole.
    public var blobs = 0
    /// Parts.
    public var parts = 0
    /// Bytes of the blobs, and of what the parts are to become.
    public var bytes: Int64 = 0

    /// Makes a tally; without arguments it is one of nothing.
    public init(blobs: Int = 0, parts: Int = 0, bytes: Int64 = 0) {
        self.blobs = blobs
        self.parts = parts
        self.bytes = bytes
    }

    /// Bytes that a blob or a part is reckoned to take beside its own.
    package static let blobWeight: Int64 = 256

    /// About how many bytes of a disk that is.
    public var weight: Int64 { bytes + Int64(blobs + parts) * Self.blobWeight }
}

/// A scope that holds blobs or parts.
public struct BlobScope: Hashable, Sendable {
    /// The scope.
    public var scope: Scope
    /// When its records' names of blobs were looked at last, in milliseconds since 1970.
    public var scanned: Int64

    /// Makes one from its parts.
    public init(scope: Scope, scanned: Int64) {
        self.scope = scope
        self.scanned = scanned
    }
}

/// Thrown by a store that does not do what it was asked to: a name that stays. Compare it with the constants here; a
/// later version may add some.
public struct BlobRefusal: Error, RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The name, such as `scope_full`.
    public var rawValue: String

    /// Makes a refusal from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    private init(_ rawValue: String) { self.rawValue = rawValue }

    /// The name.
    public var description: String { rawValue }

    /// The part or the blob is gone, or somebody else went on with it.
    public static let moved = BlobRefusal("moved")
    /// The scope has no room.
    public static let scopeFull = BlobRefusal("scope_full")
    /// The caller has no room for more parts.
    public static let callerFull = BlobRefusal("caller_full")
    /// The scope was erased.
    public static let erased = BlobRefusal("erased")

    /// All refusals of this version, for documents and tests.
    public static let all: [BlobRefusal] = [.moved, .scopeFull, .callerFull, .erased]

    /// Whether an error is this refusal: for `catch BlobRefusal.moved`.
    public static func ~= (refusal: BlobRefusal, error: any Error) -> Bool { error as? BlobRefusal == refusal }
}
