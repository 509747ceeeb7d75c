// Names are equal only where their bytes are, as they are for a database: Swift's `String` calls `"é"` in one scalar
// and in two equal, and nobody speaks for another's device because his name looks the same. Hashes need no care: what
// is equal by bytes has the same one.

extension LaneName {
    /// Compares bytes, never Unicode equivalence.
    public static func == (lhs: LaneName, rhs: LaneName) -> Bool {
        lhs.principal.hasSameBytes(as: rhs.principal) && lhs.client.hasSameBytes(as: rhs.client)
            && lhs.lane.hasSameBytes(as: rhs.lane)
    }
}

extension DeviceName {
    /// Compares bytes, never Unicode equivalence.
    public static func == (lhs: DeviceName, rhs: DeviceName) -> Bool {
        lhs.principal.hasSameBytes(as: rhs.principal) && lhs.client.hasSameBytes(as: rhs.client)
    }
}

extension TemporaryName {
    /// Compares bytes, never Unicode equivalence.
    public static func == (lhs: TemporaryName, rhs: TemporaryName) -> Bool {
        lhs.principal.hasSameBytes(as: rhs.principal) && lhs.client.hasSameBytes(as: rhs.client)
            && lhs.entity.hasSameBytes(as: rhs.entity)
            && lhs.id == rhs.id
    }
}
