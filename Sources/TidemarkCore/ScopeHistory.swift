package import TidemarkWire

/// The part of a scope's history that checkpoints need.
package struct ScopeHistory: Hashable, Sendable {
    package var head: Version
    /// Rows superseded at or below this version are gone.
    package var sweepFloor: Version
    /// Tombstones at or below this version are gone.
    package var retentionFloor: Version
    /// Each opening of the store that wrote here, with the head that it found, oldest first.
    package var incarnations: [Incarnation]

    package struct Incarnation: Hashable, Sendable {
        package var id: Int64
        package var start: Version

        package init(id: Int64, start: Version) {
            self.id = id
            self.start = start
        }
    }

    package init(head: Version, sweepFloor: Version, retentionFloor: Version, incarnations: [Incarnation]) {
        self.head = head
        self.sweepFloor = sweepFloor
        self.retentionFloor = retentionFloor
        self.incarnations = incarnations
    }
}
