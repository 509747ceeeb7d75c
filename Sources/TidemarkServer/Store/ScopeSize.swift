/// How much rows of a scope are, tombstones and events among them: how many, and the bytes of their fields. Quotas
/// count those that nothing has taken the place of, the window's budget the others.
public struct ScopeSize: Hashable, Sendable {
    /// How many rows.
    public var rows: Int64
    /// The bytes of their fields, and of what tombstones keep of them.
    public var bytes: Int64

    /// Makes a size from its parts.
    public init(rows: Int64 = 0, bytes: Int64 = 0) {
        self.rows = rows
        self.bytes = bytes
    }

    /// The size of both together.
    public static func + (lhs: Self, rhs: Self) -> Self {
        Self(rows: lhs.rows + rhs.rows, bytes: lhs.bytes + rhs.bytes)
    }
    /// The difference of two sizes; it may be negative.
    public static func - (lhs: Self, rhs: Self) -> Self {
        Self(rows: lhs.rows - rhs.rows, bytes: lhs.bytes - rhs.bytes)
    }
}

extension ScopeSize {
    /// Bytes that a row is reckoned to take beside its fields: its names, its note and its places in indexes.
    package static let rowWeight: Int64 = 256

    /// About how many bytes of a disk that is.
    package var weight: Int64 { bytes + rows * Self.rowWeight }

    /// The size of one row: its fields, or, of a tombstone, those that it keeps. The note beside live fields is never
    /// much larger than they are, and counts for nothing: else an edit that makes a record no larger would add to it.
    package init(of kind: RowKind, payload: [UInt8]?, note: [UInt8]?) {
        self.init(rows: 1, bytes: Int64((kind == .delete ? note : payload)?.count ?? 0))
    }
}

extension NewRow {
    /// The size that the row adds to its scope.
    package var size: ScopeSize { ScopeSize(of: kind, payload: payload, note: fieldVersions) }
}

extension StoredRecord {
    /// The size that the row has in its scope.
    package var size: ScopeSize {
        ScopeSize(of: payload == nil ? .delete : .upsert, payload: payload, note: fieldVersions)
    }
}
