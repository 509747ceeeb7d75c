/// A row of the log with all that the store knows of it, for one who checks what the engine has written.
package struct LogEntry: Hashable, Sendable {
    /// Its place in its scope.
    package var version: Version
    /// The entity's name; empty for an idmap.
    package var entity: String
    /// The record's id.
    package var record: String
    /// The kind of the row.
    package var kind: RowKind
    /// The bytes as they were appended, those of a tombstone included; `nil` where there were none.
    package var payload: [UInt8]?
    /// When it was committed, in milliseconds since 1970.
    package var time: Int64
    /// The version that took its place; `nil` while none has.
    package var supersededBy: Version?

    /// Makes a row from its parts.
    package init(
        version: Version, entity: String, record: String, kind: RowKind, payload: [UInt8]?, time: Int64,
        supersededBy: Version?
    ) {
        self.version = version
        self.entity = entity
        self.record = record
        self.kind = kind
        self.payload = payload
        self.time = time
        self.supersededBy = supersededBy
    }
}
