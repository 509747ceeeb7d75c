/// Reads how far the lanes of a scope have come, and the verdicts that are kept of them. It is used on one thread, as
/// ``ScopeReader`` is.
public protocol LaneReader {
    /// How far a lane has come; zero for one that was never seen.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func lane(_ lane: LaneName) throws -> Int64

    /// A device's lanes and how far each has come, the last used first, at most `limit` of them.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func lanes(of device: DeviceName, limit: Int) throws -> [(lane: String, number: Int64)]

    /// The answer to an operation, while it is kept.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func verdict(_ lane: LaneName, _ number: Int64) throws -> StoredVerdict?
}

/// Writes the lanes of a scope and their verdicts. It is used on one thread, as ``ScopeWriter`` is.
public protocol LaneWriter: LaneReader {
    /// Records that a lane has come to `number`, with the answer there.
    ///
    /// - Throws: an error of the store's own, also where the number has a verdict already, as ``ScopeWriter`` says.
    func store(_ verdict: StoredVerdict, _ lane: LaneName, _ number: Int64, at moment: Int64) throws

    /// Drops the stored verdicts of a lane up to `number`; the lane's own mark stays.
    ///
    /// - Throws: an error of the store's own, as ``ScopeWriter`` says.
    func forgetVerdicts(_ lane: LaneName, through number: Int64) throws
}
