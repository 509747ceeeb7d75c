public import TidemarkWire

/// Reads the log of one scope: its rows, what is known of the scope apart from them, and the digests kept of them. It
/// is used on one thread, as ``ScopeReader`` is.
public protocol LogReader {
    /// The scope's head, floors and incarnations; all zero for a scope that nobody wrote to.
    var state: ScopeState { get }

    /// The newest row of a record, tombstones included; `nil` for one that never was, or whose tombstone is gone: a row
    /// that is superseded is never the newest.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func newest(entity: String, record: RecordID) throws -> StoredRecord?

    /// The row of a record that was live as of a version, while the store keeps it; without payload for a tombstone.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func row(entity: String, record: RecordID, at version: Version) throws -> StoredRecord?

    /// Visits the newest row of a record, whatever it is; does nothing for a record that never was.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func newest(entity: String, record: RecordID, _ visit: (BorrowedChange) -> Void) throws

    /// The digest that is kept of an entity's live records, as the store was given it; `nil` where no state of a record
    /// of the entity was ever appended. It belongs to `state.head`.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func digest(of entity: String) throws -> [UInt8]?

    /// Visits rows with a version in (`position`, `horizon`] that are live as of `horizon`, in version order, without
    /// tombstones and idmaps at or below `tombstonesAfter`, until `visit` answers `false`. Each comes with its
    /// ``BorrowedChange/fieldVersions``.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func changes(
        after position: Version, through horizon: Version, tombstonesAfter: Version,
        _ visit: (BorrowedChange) -> Bool
    ) throws

    /// Visits an entity's rows with a version above `base` that are live as of `horizon` (`nil`: that are newest), in
    /// the byte order of their records and behind `record`, until `visit` answers `false`. Tombstones are left out
    /// where `base` is 0.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func records(
        of entity: String, above base: Version, at horizon: Version?, after record: RecordID?,
        _ visit: (BorrowedChange) -> Bool
    ) throws

    /// Looks at rows with a version in (`version`, `last`] in their order, at most `limit` of them, as long as they
    /// were committed before a moment. Answers the version of the last that was (`version` itself where there is none),
    /// and how many of them `expire(through:events:)` would remove.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func aged(
        after version: Version, through last: Version, before moment: Int64, events: Bool, limit: Int
    ) throws -> (through: Version, rows: Int)
}
