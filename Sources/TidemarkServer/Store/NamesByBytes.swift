// Names are equal only where their bytes are, as they are for a database: Swift's `String` calls `"é"` in one scalar
// and in two equal, and nobody speaks for another's device because his name looks the same. Hashes need no care: what
// is equal by bytes has the same one.

extension LaneName {
    /// Compares bytes, never Unicode equivalence.
    public static func == (lhs: LaneName, rhs: LaneName) -> Bool {
        isSame(lhs.principal, rhs.principal) && isSame(lhs.client, rhs.client) && isSame(lhs.lane, rhs.lane)
    }
}

extension DeviceName {
    /// Compares bytes, never Unicode equivalence.
    public static func == (lhs: DeviceName, rhs: DeviceName) -> Bool {
        isSame(lhs.principal, rhs.principal) && isSame(lhs.client, rhs.client)
    }
}

extension TemporaryName {
    /// Compares bytes, never Unicode equivalence.
    public static func == (lhs: TemporaryName, rhs: TemporaryName) -> Bool {
        isSame(lhs.principal, rhs.principal) && isSame(lhs.client, rhs.client) && isSame(lhs.entity, rhs.entity)
            && lhs.id == rhs.id
    }
}

private func isSame(_ lhs: String, _ rhs: String) -> Bool { lhs.utf8.elementsEqual(rhs.utf8) }
