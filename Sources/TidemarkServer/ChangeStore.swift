public import TidemarkWire

/// Where a server keeps its log: the seam between the engine and a database.
///
/// A store gives transactions and rows; every rule is the engine's. Two implementations must behave alike, so the seam
/// is small and each of its promises is tested by one suite for all stores.
public protocol ChangeStore: Sendable {
    /// A random key that was made with the store and lives in it; it marks checkpoints as this store's.
    var tokenKey: [UInt8] { get }

    /// Runs `body` on a consistent view of one scope. Other scopes and writers are not held up. A body may run again,
    /// where the store was lost meanwhile. Those who wait take turns, by `caller`: whom it is for, and empty for the
    /// server itself.
    func read<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeReader) throws -> Result
    ) async throws -> Result

    /// Runs `body` as the only writer of one scope and returns when all that it wrote is durable.
    ///
    /// Bodies that arrive together may share one commit; an error thrown by one undoes that one alone. A body may run
    /// more than once, as long as nothing of its former run is there: it has no effect but through its writer. Those
    /// who wait take turns, by `caller`; one whose task was cancelled before its turn is not run.
    func write<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result

    /// Removes at most `limit` rows that were superseded before a moment (milliseconds since 1970; a row is superseded
    /// at the moment given with its successor), the first of them first, and raises each scope's sweep floor before.
    /// Returns how many rows went.
    func sweep(supersededBefore moment: Int64, limit: Int) async throws -> Int

    /// The names of at most `limit` scopes behind one, in the order of their bytes.
    func scopes(after scope: Scope?, limit: Int) async throws -> [Scope]

    /// The time by which history ages, as it was kept last, in milliseconds since 1970. Until it is kept for the first
    /// time it is that of the first write of a row, a verdict or an id: a clock that jumps before anybody looks must
    /// not make everything old. `nil` for a store that nobody wrote to.
    func ageClock() async throws -> Int64?

    /// Keeps the time by which history ages.
    func setAgeClock(_ moment: Int64) async throws

    /// The refused edits that are kept, of one scope or of all, newest first; with `id`, the one of this number.
    func rejections(in scope: Scope?, id: Int64?, limit: Int) async throws -> [StoredRejection]

    /// Takes a refused edit off the list; `false` where it is not there (any more).
    func discardRejection(_ id: Int64) async throws -> Bool

    /// Takes the bytes of what was removed out of the store's own files, where the store can: other readers go on, and
    /// writers may wait for as long as it takes.
    func purge() async throws

    /// Tells the heads of scopes that other nodes on the same database may have moved, soon after they have, until it
    /// is cancelled. It may tell what is known, and what this node did; in what `watched` names when it is asked, it
    /// leaves nothing out for long. Where there are no other nodes there is nothing to tell.
    func watch(
        _ watched: @escaping @Sendable () -> Set<Scope>, seen: @escaping @Sendable ([Scope: Version]) -> Void
    ) async throws
}

extension ChangeStore {
    /// Reads for the server itself.
    public func read<Result: Sendable>(
        _ scope: Scope, _ body: @escaping @Sendable (any ScopeReader) throws -> Result
    ) async throws -> Result { try await read(scope, for: "", body) }

    /// Writes for the server itself.
    public func write<Result: Sendable>(
        _ scope: Scope, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result { try await write(scope, for: "", body) }

    /// Does nothing: for a store whose files are not its own.
    public func purge() async throws {}

    /// For a store of one node: waits until it is cancelled.
    public func watch(
        _ watched: @escaping @Sendable () -> Set<Scope>, seen: @escaping @Sendable ([Scope: Version]) -> Void
    ) async throws {
        while true { try await Task.sleep(for: .seconds(3600)) }
    }
}

/// Thrown by a store that cannot do its work for a while: its disk is full or does not answer, or somebody else has
/// locked it for too long. It may be asked for again, and nothing of it is done but where ``mayBeDone`` says so.
public struct StoreUnavailable: Error, Hashable, Sendable, CustomStringConvertible {
    /// What the store says, for the operator's log.
    public var description: String
    /// Whether what was asked for may be done all the same: the store was lost at the commit, and could not be asked
    /// since. A device that asks again finds its lane's mark; a program has to look what is there.
    public var mayBeDone: Bool

    /// Makes an error with what the store says.
    public init(_ description: String, mayBeDone: Bool = false) {
        self.description = description
        self.mayBeDone = mayBeDone
    }
}

/// A consistent view of one scope. Valid only inside the closure that it was given to.
public protocol ScopeReader {
    /// The scope's head, floors and incarnations; all zero for a scope that nobody wrote to.
    var state: ScopeState { get }

    /// The newest row of a record, tombstones included; `nil` for one that never was, or whose tombstone is gone: a row
    /// that is superseded is never the newest.
    func newest(entity: String, record: RecordID) throws -> StoredRecord?

    /// The row of a record that was live as of a version, while the store keeps it; without payload for a tombstone.
    func row(entity: String, record: RecordID, at version: Version) throws -> StoredRecord?

    /// Visits the newest row of a record, whatever it is; does nothing for a record that never was.
    func newest(entity: String, record: RecordID, _ visit: (BorrowedChange) -> Void) throws

    /// The digest that is kept of an entity's live records, as the store was given it; `nil` where no state of a record
    /// of the entity was ever appended. It belongs to `state.head`.
    func digest(of entity: String) throws -> [UInt8]?

    /// Visits rows with a version in (`position`, `horizon`] that are live as of `horizon`, in version order, without
    /// tombstones and idmaps at or below `tombstonesAfter`, until `visit` answers `false`. Each comes with its
    /// ``BorrowedChange/fieldVersions``.
    func changes(
        after position: Version, through horizon: Version, tombstonesAfter: Version,
        _ visit: (BorrowedChange) -> Bool
    ) throws

    /// Visits an entity's rows with a version above `base` that are live as of `horizon` (`nil`: that are newest), in
    /// the byte order of their records and behind `record`, until `visit` answers `false`. Tombstones are left out
    /// where `base` is 0.
    func records(
        of entity: String, above base: Version, at horizon: Version?, after record: RecordID?,
        _ visit: (BorrowedChange) -> Bool
    ) throws

    /// How far a lane has come; zero for one that was never seen.
    func lane(_ lane: LaneName) throws -> Int64

    /// A device's lanes and how far each has come, the last used first, at most `limit` of them.
    func lanes(of device: DeviceName, limit: Int) throws -> [(lane: String, number: Int64)]

    /// What is known of a device; `nil` for one that was never heard of, or too long ago.
    func standing(of device: DeviceName) throws -> DeviceStanding?

    /// The lowest version that a device of the scope holds on to; `nil` where none does.
    func slowest() throws -> Version?

    /// Looks at rows with a version in (`version`, `last`] in their order, at most `limit` of them, as long as they
    /// were committed before a moment. Answers the version of the last that was (`version` itself where there is none),
    /// and how many of them `expire(through:events:)` would remove.
    func aged(
        after version: Version, through last: Version, before moment: Int64, events: Bool, limit: Int
    ) throws -> (through: Version, rows: Int)

    /// How many devices were last heard of before one moment, and how many lanes were last used before another by
    /// devices that are not known.
    func unheard(devicesBefore: Int64, lanesBefore: Int64) throws -> (devices: Int, lanes: Int)

    /// What was answered to an operation, while it is kept.
    func verdict(_ lane: LaneName, _ number: Int64) throws -> StoredVerdict?

    /// The engine's note on what a principal has deleted of an entity lately, or, of the entity without a name, on what
    /// he has added to the scope, as it was given.
    func tally(by principal: String, of entity: String) throws -> [UInt8]?

    /// The id that a device's temporary one stands for, in whatever scope it was assigned; `nil` for none.
    func id(for name: TemporaryName) throws -> RecordID?

    /// Where a record of this id was given it under a temporary one, by whatever device; `nil`: nowhere.
    func assignment(of record: RecordID, entity: String) throws -> AssignmentPlace?

    /// What is kept in the scope under a principal's name, or, with `nil`, all that an erasure of the scope removes.
    func held(by principal: String?) throws -> Erasure
}

/// The one writer of a scope, for the length of a transaction.
public protocol ScopeWriter: ScopeReader {
    /// Whether another write waits for this one to end: then a long one is cut short (`Limits.pushTime`).
    var othersWait: Bool { get }
    /// Whether writes that are done wait for this one, because they share its commit: then it is cut shorter still.
    var holdsUpOthers: Bool { get }
    /// Fields of an entity that only the server's own programs write, beside those that are declared so.
    func serverFields(of entity: String) -> [String]

    /// Appends a row at `state.head + 1`, marks the record's former row superseded, and returns the version. The
    /// entity's digest is kept in step, in the same transaction (`DigestKeeper`), and so are `state.entities`,
    /// `state.size` and `state.superseded`.
    ///
    /// The row's time is `moment` (milliseconds since 1970), or one more than the scope's last where that is later.
    func append(_ row: NewRow, at moment: Int64) throws -> Version

    /// Records that a lane has come to `number`, with what was answered there.
    func store(_ verdict: StoredVerdict, _ lane: LaneName, _ number: Int64, at moment: Int64) throws

    /// Keeps such a note; it may go with devices that were last heard of before its moment.
    func store(tally note: [UInt8], by principal: String, of entity: String, at moment: Int64) throws

    /// Remembers for a year at least what a temporary id stands for: as long as it may be named again. It was assigned
    /// in this scope.
    func store(_ id: RecordID, for name: TemporaryName, at moment: Int64) throws

    /// Runs a part of the transaction that may fail: an error undoes what the part wrote, and only that.
    func attempt<Result>(_ body: () throws -> Result) throws -> Result

    /// Keeps a refused edit for the operator, and of the scope's about the `limit` newest: nobody pushes out another's.
    func keep(_ rejection: StoredRejection, limit: Int) throws

    /// Remembers a device, in a scope that was written to. A standing without a version leaves the one that is known,
    /// and its oldest where it has none itself; one with a version takes the place of both.
    func note(_ standing: DeviceStanding, of device: DeviceName) throws

    /// Forgets, as `forget(devicesBefore:lanesBefore:limit:)` does, those of a device's owner's that were silent for
    /// longest, so that at most `limit` are left, that one among them; of two that are as old the last by name goes.
    func forgetDevices(beyond limit: Int, besides device: DeviceName) throws

    /// Raises the retention floor to a version, then removes deletions and idmaps from the former floor up to there,
    /// also `events` where that is said, and the openings that are forgotten by then (`forgetOpenings()`). Does nothing
    /// where the floor stands there or above.
    func expire(through version: Version, events: Bool) throws

    /// Removes superseded rows, at most `limit` of them and those first that were superseded first, until what is left
    /// of them weighs no more than `weight` (`ScopeSize.weight`), and raises the sweep floor before. Returns how many
    /// rows went.
    @discardableResult
    func sweep(supersededBeyond weight: Int64, limit: Int) throws -> Int

    /// Forgets devices that were last heard of before a moment, with the verdicts kept for them, and lanes that were
    /// last used before another by devices that are not known; at most `limit` of each. Answers how many went. The
    /// lanes of a device count as used when that was last heard of.
    func forget(devicesBefore: Int64, lanesBefore: Int64, limit: Int) throws -> (devices: Int, lanes: Int)

    /// Drops the stored verdicts of a lane up to `number`; the lane's own mark stays.
    func forgetVerdicts(_ lane: LaneName, through number: Int64) throws

    /// Marks the scope as erased since a moment: it has no entities, digests, openings and sizes any more, and its head
    /// is one more, so that whoever watches it looks. Does nothing where it is marked.
    func markErased(at moment: Int64) throws

    /// Removes some of what ``ScopeReader/held(by:)`` counts, at most `limit` of it and, of the scope's rows, few large
    /// ones at once; nothing only where nothing is left. Answers what went.
    func erase(of principal: String?, limit: Int) throws -> Erasure
}

/// What a store knows of a scope apart from its rows.
public struct ScopeState: Hashable, Sendable {
    /// The newest version.
    public var head: Version = 0
    /// When that was committed, in milliseconds since 1970: every later row is later.
    public var lastTime: Int64 = 0
    /// Rows superseded at or below this version are gone.
    public var sweepFloor: Version = 0
    /// Tombstones at or below this version are gone.
    public var retentionFloor: Version = 0
    /// The openings of the store that wrote in this scope, oldest first: random id, and the head that each found.
    public var incarnations: [(id: Int64, start: Version)] = []
    /// The entities of which rows were ever appended, each as its first row spelled it.
    public var entities = EntityNames()
    /// What the scope keeps, in step with its rows.
    public var size = ScopeSize()
    /// The rows that others have taken the place of and that are still kept, for readers in mid-walk.
    public var superseded = ScopeSize()

    /// When the scope was erased, in milliseconds since 1970; `nil`: it was not.
    public var erasedAt: Int64?

    /// A scope that nobody wrote to.
    public init() {}

    /// What is left of a scope that was erased.
    public static func erased(at moment: Int64, head: Version) -> ScopeState {
        var state = ScopeState()
        (state.head, state.erasedAt) = (head, moment)
        return state
    }

    /// Compares all members.
    public static func == (lhs: ScopeState, rhs: ScopeState) -> Bool {
        lhs.head == rhs.head && lhs.lastTime == rhs.lastTime && lhs.sweepFloor == rhs.sweepFloor
            && lhs.retentionFloor == rhs.retentionFloor && lhs.incarnations.elementsEqual(rhs.incarnations) { $0 == $1 }
            && lhs.entities == rhs.entities && lhs.size == rhs.size && lhs.superseded == rhs.superseded
            && lhs.erasedAt == rhs.erasedAt
    }

    /// Hashes the numbers.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(head)
        hasher.combine(sweepFloor)
        hasher.combine(retentionFloor)
    }
}

/// The newest row of a record.
public struct StoredRecord: Hashable, Sendable {
    /// Its version.
    public var version: Version
    /// Its fields as canonical JSON; `nil` for a tombstone.
    public var payload: [UInt8]?
    /// The engine's note on the versions of single fields, kept as it was given.
    public var fieldVersions: [UInt8]?
    /// When it was committed, in milliseconds since 1970.
    public var time: Int64
    /// The engine's note on what was brought back of it after a loss, kept as it was given.
    public var originals: [UInt8]?

    /// Makes a record from its parts.
    public init(
        version: Version, time: Int64, payload: [UInt8]?, fieldVersions: [UInt8]?, originals: [UInt8]? = nil
    ) {
        self.originals = originals
        self.version = version
        self.time = time
        self.payload = payload
        self.fieldVersions = fieldVersions
    }
}

/// What kind of row stands in the log.
public enum RowKind: Int64, Hashable, Sendable, CaseIterable {
    /// A record's state.
    case upsert = 0
    /// A tombstone.
    case delete = 1
    /// An entry of an events entity; no other takes its place. (A state does, under the same name: an entity may be
    /// declared anew.)
    case event = 2
    /// What a device's temporary id stands for. It belongs to no entity, is never superseded, and is of use as long as
    /// a tombstone is.
    case idmap = 3

    /// Whether the row takes the place of its record's former one.
    public var supersedes: Bool {
        switch self {
        case .upsert, .delete: true
        case .event, .idmap: false
        }
    }
}

/// A row on its way into the log.
public struct NewRow: Hashable, Sendable {
    /// The record's entity.
    public var entity: String
    /// The record.
    public var record: RecordID
    /// What the row is.
    public var kind: RowKind
    /// The fields as canonical JSON. For a tombstone `nil`, or digits: the version that it was made on, where others
    /// had written since. For an idmap its members on the wire.
    public var payload: [UInt8]?
    /// The engine's note on the versions of single fields.
    public var fieldVersions: [UInt8]?
    /// The engine's note on what was brought back of the record after a loss.
    public var originals: [UInt8]?

    /// Makes a row from its parts.
    public init(
        entity: String, record: RecordID, kind: RowKind, payload: [UInt8]?, fieldVersions: [UInt8]? = nil,
        originals: [UInt8]? = nil
    ) {
        self.originals = originals
        self.entity = entity
        self.record = record
        self.kind = kind
        self.payload = payload
        self.fieldVersions = fieldVersions
    }
}

/// A row of the log as a reader sees it in passing: the bytes belong to the store and are gone after the visit.
public struct BorrowedChange {
    /// Its version.
    public var version: Version
    /// What the row is.
    public var kind: RowKind
    /// When it was committed, in milliseconds since 1970.
    public var time: Int64
    /// The entity's name.
    public var entity: UnsafeRawBufferPointer
    /// The record's id.
    public var record: UnsafeRawBufferPointer
    /// The row's payload, empty where it has none.
    public var payload: UnsafeRawBufferPointer
    /// What ``NewRow/fieldVersions`` a live row was appended with; empty where it had none or more than
    /// ``largestNote`` bytes, and where nobody asked for it.
    public var fieldVersions: UnsafeRawBufferPointer
    /// Bytes of ``fieldVersions`` that a walk reads, at most: without them a row travels whole.
    public static let largestNote = 16_384

    /// Makes a view from its parts.
    public init(
        version: Version, kind: RowKind, time: Int64, entity: UnsafeRawBufferPointer, record: UnsafeRawBufferPointer,
        payload: UnsafeRawBufferPointer, fieldVersions: UnsafeRawBufferPointer = .init(start: nil, count: 0)
    ) {
        self.version = version
        self.kind = kind
        self.time = time
        self.entity = entity
        self.record = record
        self.payload = payload
        self.fieldVersions = fieldVersions
    }
}
