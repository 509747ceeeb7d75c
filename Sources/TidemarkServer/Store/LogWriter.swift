public import TidemarkWire

/// Writes the log of one scope: rows come in at its head, and leave behind its floors. It is used on one thread, as
/// ``ScopeWriter`` is.
public protocol LogWriter: LogReader {
    /// Appends a row at `state.head + 1`, marks the record's former row superseded, and returns the version. The
    /// entity's digest is kept in step, in the same transaction (`DigestKeeper`), and so are `state.entities`,
    /// `state.size` and `state.superseded`.
    ///
    /// The row's time is `moment` (milliseconds since 1970), or one more than the scope's last where that is later.
    ///
    /// - Throws: ``RowRefusal`` and ``GrantsWanted`` of a ``TableScopeWriter``; the protocol's problem `internal_error`
    ///   where the entity's digest cannot be read; else an error of the store's own, as ``ScopeWriter`` says.
    func append(_ row: NewRow, at moment: Int64) throws -> Version

    /// Raises the retention floor to a version, then removes deletions and idmaps from the former floor up to there,
    /// also `events` where that is said, and the openings that are forgotten by then (`forgetOpenings()`). Does nothing
    /// where the floor stands there or above.
    ///
    /// - Throws: an error of the store's own, as ``ScopeWriter`` says.
    func expire(through version: Version, events: Bool) throws

    /// Removes superseded rows, at most `limit` of them and those first that were superseded first, until what is left
    /// of them weighs no more than `weight` (`ScopeSize.weight`), and raises the sweep floor before. Returns how many
    /// rows went.
    ///
    /// - Throws: an error of the store's own, as ``ScopeWriter`` says.
    @discardableResult
    func sweep(supersededBeyond weight: Int64, limit: Int) throws -> Int
}
