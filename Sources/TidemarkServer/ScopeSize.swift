/// How much a scope keeps, as quotas count it: its rows that nothing has taken the place of, tombstones and events
/// among them, and the bytes of their fields.
public struct ScopeSize: Hashable, Sendable {
    /// Rows that nothing has taken the place of.
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
    /// What the one has more than the other; less is negative.
    public static func - (lhs: Self, rhs: Self) -> Self {
        Self(rows: lhs.rows - rhs.rows, bytes: lhs.bytes - rhs.bytes)
    }
}

extension ScopeSize {
    /// One row's: its fields, or, of a tombstone, what it keeps of them. The note beside live fields is never much
    /// larger than they are, and counts for nothing: else an edit that makes a record no larger would add to it.
    package init(of kind: RowKind, payload: [UInt8]?, note: [UInt8]?) {
        self.init(rows: 1, bytes: Int64((kind == .delete ? note : payload)?.count ?? 0))
    }
}

extension NewRow {
    /// What the row adds to its scope.
    package var size: ScopeSize { ScopeSize(of: kind, payload: payload, note: fieldVersions) }
}

extension StoredRecord {
    /// What the row takes of its scope.
    package var size: ScopeSize {
        ScopeSize(of: payload == nil ? .delete : .upsert, payload: payload, note: fieldVersions)
    }
}
