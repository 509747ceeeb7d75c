/// How much a scope keeps, as quotas count it: its rows that nothing has taken the place of, tombstones and events
/// among them, and the bytes that their fields and the engine's notes take.
public struct ScopeSize: Hashable, Sendable {
    /// Rows that nothing has taken the place of.
    public var rows: Int64
    /// The bytes of their payloads and notes.
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

extension NewRow {
    /// What the row adds to its scope.
    public var size: ScopeSize { ScopeSize(of: [payload, fieldVersions, originals]) }
}

extension StoredRecord {
    /// What the row takes of its scope, where its payload was read whatever its kind.
    public var size: ScopeSize { ScopeSize(of: [payload, fieldVersions, originals]) }
}

extension ScopeSize {
    fileprivate init(of parts: [[UInt8]?]) {
        self.init(rows: 1, bytes: parts.reduce(0) { $0 + Int64($1?.count ?? 0) })
    }
}
