public import TidemarkWire

/// A row of a record: the newest, or the one that was live as of a version.
public struct StoredRecord: Hashable, Sendable {
    /// Its version.
    public var version: Version
    /// Its fields as canonical JSON; `nil` for a tombstone.
    public var payload: [UInt8]?
    /// The engine's note on the versions of single fields, kept as it was given.
    public var fieldVersions: [UInt8]?
    /// When it was committed, in milliseconds since 1970.
    public var time: Int64
    /// The engine's note on what was replayed of it after a loss, kept as it was given.
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

/// The kind of a row in the log.
public enum RowKind: Int64, Hashable, Sendable, CaseIterable {
    /// A record's state.
    case upsert = 0
    /// A tombstone.
    case delete = 1
    /// An entry of an events entity; no other takes its place. (A state does, under the same name: an entity may be
    /// declared anew.)
    case event = 2
    /// The id that a device's temporary one stands for. The row belongs to no entity, is never superseded, and is of
    /// use as long as a tombstone is.
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
    /// The kind of the row.
    public var kind: RowKind
    /// The fields as canonical JSON. Of a tombstone and an idmap the members that the change has on the wire beside its
    /// version; `nil` for a tombstone without any.
    public var payload: [UInt8]?
    /// The engine's note on the versions of single fields.
    public var fieldVersions: [UInt8]?
    /// The engine's note on what was replayed of the record after a loss.
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
    /// The kind of the row.
    public var kind: RowKind
    /// When it was committed, in milliseconds since 1970.
    public var time: Int64
    /// The entity's name.
    public var entity: UnsafeRawBufferPointer
    /// The record's id.
    public var record: UnsafeRawBufferPointer
    /// The row's payload, empty where it has none.
    public var payload: UnsafeRawBufferPointer
    /// The ``NewRow/fieldVersions`` that a live row was appended with; empty where it had none or more than
    /// ``largestNote`` bytes, and where nobody asked for it.
    public var fieldVersions: UnsafeRawBufferPointer
    /// Bytes of ``fieldVersions`` that a scan reads, at most: without them a row travels whole.
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

extension RowKind {
    /// Whether the row goes when the retention floor rises above it.
    package func expires(withEvents events: Bool) -> Bool {
        switch self {
        case .upsert: false
        case .delete, .idmap: true
        case .event: events
        }
    }
}
